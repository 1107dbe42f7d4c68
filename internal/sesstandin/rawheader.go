package sesstandin

import (
	"bytes"
	"errors"
	"fmt"
	"net/mail"
	"slices"
	"strings"
)

// field is a header field with its line breaks, as it stands in the message.
type field struct {
	name string
	text []byte // "Name: value\r\n", folded lines included
}

// value returns the field's value on one line.
func (f field) value() string {
	v := string(f.text[bytes.IndexByte(f.text, ':')+1:])
	return strings.TrimSpace(strings.NewReplacer("\r\n", "", "\n", "").Replace(v))
}

// splitMessage takes a raw message apart at its first empty line. It is stricter than net/mail,
// which forgives a header that breaks off.
func splitMessage(raw []byte) ([]field, []byte, error) {
	var fields []field
	rest := raw
	for {
		line, after, found := bytes.Cut(rest, []byte("\n"))
		if !found {
			return nil, nil, errors.New("the empty line after the header is missing")
		}
		text := rest[:len(line)+1]
		rest = after
		switch {
		case len(bytes.TrimRight(line, "\r")) == 0:
			return fields, rest, nil
		case line[0] == ' ' || line[0] == '\t':
			if len(fields) == 0 {
				return nil, nil, errors.New("the header begins with a folded line")
			}
			last := &fields[len(fields)-1]
			last.text = last.text[:len(last.text)+len(text)] // the next bytes of raw
		default:
			name, _, ok := bytes.Cut(line, []byte(":"))
			if !ok || !validFieldName(name) {
				return nil, nil, fmt.Errorf("header line %q is malformed", line)
			}
			fields = append(fields, field{name: string(name), text: text})
		}
	}
}

func validFieldName(name []byte) bool {
	for _, c := range name {
		if c <= ' ' || c >= 0x7f {
			return false
		}
	}
	return len(name) > 0
}

// onceOnly are the fields that SES refuses to see twice.
var onceOnly = [...]string{"From", "To", "Cc", "Bcc", "Subject", "Reply-To", "Sender", "Date", "Message-ID", "Content-Type", "MIME-Version"}

// takeHeader takes from the header what the request did not say, and leaves the message as SES
// passes it on: without Bcc, without its own X-SES fields, without the client's Message-ID and Date.
func takeHeader(sub submission, fields []field, body []byte) (submission, *APIError) {
	values := map[string]string{}
	for _, f := range fields {
		key := strings.ToLower(f.name)
		if _, twice := values[key]; twice && slices.ContainsFunc(onceOnly[:], func(n string) bool { return strings.EqualFold(n, f.name) }) {
			return sub, invalid("Duplicate header '%s'.", f.name)
		}
		values[key] = f.value()
	}
	var kept []field
	for _, f := range fields {
		switch strings.ToLower(f.name) {
		case "message-id", "date", "bcc", "return-path":
		case "x-ses-configuration-set":
			if sub.configurationSet == "" {
				sub.configurationSet = f.value()
			}
		case "x-ses-message-tags":
			sub.tags = append(sub.tags, headerTags(f.value())...)
		case "x-ses-source-arn", "x-ses-from-arn", "x-ses-return-path-arn":
		default:
			kept = append(kept, f)
		}
	}
	if refusal := addressesFromHeader(&sub, values); refusal != nil {
		return sub, refusal
	}
	sub.raw = joinMessage(kept, body)
	return sub, nil
}

// headerTags reads "name=value, name=value". What is malformed in it fails as a tag later.
func headerTags(value string) []Header {
	var tags []Header
	for pair := range strings.SplitSeq(value, ",") {
		name, v, _ := strings.Cut(strings.TrimSpace(pair), "=") // without "=": an empty value
		tags = append(tags, Header{Name: name, Value: v})
	}
	return tags
}

func addressesFromHeader(sub *submission, values map[string]string) *APIError {
	if len(sub.recipients) == 0 {
		for _, key := range []string{"to", "cc", "bcc"} {
			list, refusal := addressList(values[key])
			if refusal != nil {
				return refusal
			}
			sub.recipients = append(sub.recipients, list...)
		}
	}
	if values["from"] == "" {
		return invalid("Missing required header 'From'.")
	}
	from, refusal := addressList(values["from"])
	if refusal != nil {
		return refusal
	}
	if sub.source == "" {
		sub.source = from[0]
	}
	return nil
}

// addressList checks every address of a header, and returns them bare.
func addressList(value string) ([]string, *APIError) {
	if value == "" {
		return nil, nil
	}
	if !isASCII(value) {
		return nil, invalid("Illegal address: non-ASCII characters must be encoded: %q", value)
	}
	list, err := mail.ParseAddressList(value)
	if err != nil {
		return nil, invalid("Illegal address: %v", err)
	}
	out := make([]string, len(list))
	for i, a := range list {
		if refusal := checkBare(a.Address); refusal != nil {
			return nil, refusal
		}
		out[i] = a.Address
	}
	return out, nil
}

func joinMessage(fields []field, body []byte) []byte {
	var b bytes.Buffer
	for _, f := range fields {
		b.Write(f.text)
	}
	b.WriteString("\r\n")
	b.Write(body)
	return b.Bytes()
}
