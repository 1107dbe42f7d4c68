package sesraw

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"mime"
	"net/mail"
	"strings"
	"unicode/utf8"

	gomail "github.com/wneessen/go-mail"
)

// Message is a mail to be composed.
type Message struct {
	From    *mail.Address
	To      []*mail.Address // at least one
	ReplyTo *mail.Address   // optional
	Subject string
	Text    string
	HTML    string // optional, the alternative to Text
	// Headers are further ones, whose values are ASCII and hold no control characters.
	Headers []Header
}

// Header is one header field.
type Header struct{ Name, Value string }

// maxMail is the largest mail that classic SES takes, encoded (its developer guide's page on quotas: 10 MB).
const maxMail = 10 << 20

// Compose writes the MIME message, with text and HTML as alternatives.
func (m Message) Compose() ([]byte, error) {
	msg := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	// The library's own setters fold at any space, and so change a name or a subject with two in a row.
	set := func(header, value string) {
		msg.SetGenHeaderPreformatted(gomail.Header(header), fold(header, value))
	}
	set("From", m.From.String())
	set("To", list(m.To))
	if m.ReplyTo != nil {
		set("Reply-To", m.ReplyTo.String())
	}
	set("Subject", subject(m.Subject))
	for _, h := range m.Headers {
		set(h.Name, h.Value)
	}
	msg.SetGenHeader("Auto-Submitted", "auto-generated") // RFC 3834: no out-of-office answers
	msg.SetBodyString(gomail.TypeTextPlain, m.Text)
	if m.HTML != "" {
		msg.AddAlternativeString(gomail.TypeTextHTML, m.HTML)
	}
	var b bytes.Buffer
	if _, err := msg.WriteTo(&b); err != nil {
		return nil, errors.New("the mail cannot be written as MIME")
	}
	if b.Len() > maxMail {
		return nil, fmt.Errorf("the mail has %d bytes as MIME, and SES takes %d", b.Len(), maxMail)
	}
	return b.Bytes(), nil
}

// subject encodes what is not plain, and what would be read as encoded though it is not: a line break can hide in that.
func subject(s string) string {
	if !strings.Contains(s, "=?") {
		return mime.QEncoding.Encode("utf-8", s)
	}
	const most = 45 // bytes, which base64 makes 60; an encoded word has at most 75
	var words []string
	word := ""
	for _, r := range s {
		if len(word)+utf8.RuneLen(r) > most {
			words, word = append(words, word), ""
		}
		word += string(r)
	}
	words = append(words, word)
	for i, w := range words {
		words[i] = "=?utf-8?b?" + base64.StdEncoding.EncodeToString([]byte(w)) + "?="
	}
	return strings.Join(words, " ")
}

func list(all []*mail.Address) string {
	var b bytes.Buffer
	for i, a := range all {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(a.String())
	}
	return b.String()
}
