package sesstandin

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// maxRequest bounds what is read of a request: 10 MB in which every byte is percent-encoded.
const maxRequest = 3*maxMessage + 1<<20

// readForm reads the parameters of an AWS Query request.
func readForm(w http.ResponseWriter, r *http.Request) (url.Values, *APIError) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return nil, tooLong(int(tooLarge.Limit))
	}
	if err != nil {
		return nil, invalid("Could not read the request: %v", err)
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, &APIError{Status: http.StatusBadRequest, Type: "Sender", Code: "MalformedQueryString", Message: err.Error()}
	}
	return form, nil
}

// members returns the values of a list parameter: name.member.1, name.member.2, …
func members(form url.Values, name string) []string {
	var out []string
	for i := 1; ; i++ {
		key := fmt.Sprintf("%s.member.%d", name, i)
		if !form.Has(key) {
			return out
		}
		out = append(out, form.Get(key))
	}
}

// submission is a send as it was asked for, whatever the action.
type submission struct {
	action           string
	source           string   // as given; may be empty for a raw mail
	recipients       []string // as given
	tags             []Header // message tags, in order
	configurationSet string
	raw              []byte
}

func (s submission) tag(name string) string {
	for _, t := range s.tags {
		if t.Name == name {
			return t.Value
		}
	}
	return ""
}

// parseSend returns what was submitted as far as it can be read, and why it can not be taken.
// Both at once, because faults match on the recipients of a mail that is refused, too.
func parseSend(action string, form url.Values) (submission, *APIError) {
	sub := submission{
		action:           action,
		source:           form.Get("Source"),
		configurationSet: form.Get("ConfigurationSetName"),
	}
	for i := 1; form.Has(fmt.Sprintf("Tags.member.%d.Name", i)); i++ {
		key := fmt.Sprintf("Tags.member.%d.", i)
		sub.tags = append(sub.tags, Header{Name: form.Get(key + "Name"), Value: form.Get(key + "Value")})
	}
	if action == actionSendRawEmail {
		return parseRaw(sub, form)
	}
	return compose(sub, form)
}

func parseRaw(sub submission, form url.Values) (submission, *APIError) {
	sub.recipients = members(form, "Destinations")
	raw, err := base64.StdEncoding.DecodeString(form.Get("RawMessage.Data"))
	if err != nil {
		return sub, invalid("RawMessage.Data is not base64: %v", err)
	}
	if len(raw) == 0 {
		return sub, &APIError{
			Status: http.StatusBadRequest, Type: "Sender", Code: "ValidationError",
			Message: "1 validation error detected: Value null at 'rawMessage.data' failed to satisfy constraint: Member must not be null",
		}
	}
	if len(raw) > maxMessage {
		return sub, tooLong(len(raw))
	}
	fields, body, err := splitMessage(raw)
	if err != nil {
		return sub, invalid("The message cannot be parsed: %v", err)
	}
	return takeHeader(sub, fields, body)
}
