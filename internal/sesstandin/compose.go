package sesstandin

import (
	"bytes"
	"fmt"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
)

// compose builds the message of a SendEmail request, as SES does.
func compose(sub submission, form url.Values) (submission, *APIError) {
	to := members(form, "Destination.ToAddresses")
	cc := members(form, "Destination.CcAddresses")
	sub.recipients = slices.Concat(to, cc, members(form, "Destination.BccAddresses"))

	subject, text, html := form.Get("Message.Subject.Data"), form.Get("Message.Body.Text.Data"), form.Get("Message.Body.Html.Data")
	if sub.source == "" {
		return sub, invalid("Missing required header 'From'.")
	}
	if size := len(subject) + len(text) + len(html); size > maxMessage {
		return sub, tooLong(size)
	}
	replyTo := members(form, "ReplyToAddresses")
	for _, a := range slices.Concat([]string{sub.source}, sub.recipients, replyTo) {
		if _, refusal := checkAddress(a); refusal != nil {
			return sub, refusal
		}
	}
	if strings.ContainsFunc(subject, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return sub, invalid("The subject contains control characters.")
	}
	if text == "" && html == "" && !form.Has("Message.Body.Text.Data") && !form.Has("Message.Body.Html.Data") {
		return sub, invalid("The message has no body: give Message.Body.Text or Message.Body.Html.")
	}

	var b bytes.Buffer
	writeField(&b, "From", sub.source)
	writeField(&b, "To", strings.Join(to, ",\r\n "))
	writeField(&b, "Cc", strings.Join(cc, ",\r\n "))
	writeField(&b, "Reply-To", strings.Join(replyTo, ",\r\n "))
	writeField(&b, "Subject", mime.QEncoding.Encode("utf-8", subject))
	writeField(&b, "MIME-Version", "1.0")
	if err := writeBody(&b, text, html); err != nil {
		return sub, invalid("The message cannot be composed: %v", err)
	}
	sub.raw = b.Bytes()
	return sub, nil
}

func writeField(b *bytes.Buffer, name, value string) {
	if value != "" {
		fmt.Fprintf(b, "%s: %s\r\n", name, value)
	}
}

func writeBody(b *bytes.Buffer, text, html string) error {
	if text != "" && html != "" {
		return writeAlternative(b, text, html)
	}
	mediaType, body := "text/plain", text
	if html != "" {
		mediaType, body = "text/html", html
	}
	for _, name := range []string{"Content-Type", "Content-Transfer-Encoding"} {
		writeField(b, name, bodyHeader(mediaType).Get(name))
	}
	b.WriteString("\r\n")
	w := quotedprintable.NewWriter(b)
	if _, err := w.Write([]byte(body)); err != nil {
		return fmt.Errorf("body: %w", err)
	}
	return w.Close()
}

func writeAlternative(b *bytes.Buffer, text, html string) error {
	w := multipart.NewWriter(b)
	writeField(b, "Content-Type", fmt.Sprintf("multipart/alternative; boundary=%q", w.Boundary()))
	b.WriteString("\r\n")
	for _, part := range []struct{ mediaType, body string }{{"text/plain", text}, {"text/html", html}} {
		pw, err := w.CreatePart(bodyHeader(part.mediaType))
		if err != nil {
			return fmt.Errorf("%s part: %w", part.mediaType, err)
		}
		qw := quotedprintable.NewWriter(pw)
		if _, err := qw.Write([]byte(part.body)); err != nil {
			return fmt.Errorf("%s part: %w", part.mediaType, err)
		}
		if err := qw.Close(); err != nil {
			return fmt.Errorf("%s part: %w", part.mediaType, err)
		}
	}
	return w.Close()
}

func bodyHeader(mediaType string) textproto.MIMEHeader {
	return textproto.MIMEHeader{
		"Content-Type":              {mediaType + "; charset=UTF-8"},
		"Content-Transfer-Encoding": {"quoted-printable"},
	}
}
