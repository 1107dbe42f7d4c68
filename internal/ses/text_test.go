package ses

import (
	"bytes"
	"strings"
	"testing"
)

// Scenario 27: any text arrives as it was written, and no line is longer than SMTP takes (RFC 5321: 998 bytes and CRLF).
func TestAnyTextArrives(t *testing.T) {
	standin, url := standIn(t)
	m := newMailer(t, Config{From: "김철수 🎉 <mail@example.com>", Endpoint: url})
	for _, line := range []string{
		strings.Repeat("x", 998), strings.Repeat("x", 5000), strings.Repeat("한국어 ", 600), strings.Repeat("👩‍👩‍👧‍👦", 200),
		"a = b; ends in =", ".", ".\n.\n", "two  spaces and a tab\t.", "İ ß ﷽ \u200d\u202e", "From the start",
	} {
		mail := mailTo("김철수 🎉", "first.user@bücher.example.com")
		mail.Subject = "결제 실패 🎉 " + strings.ReplaceAll(line, "\n", " ") + "."
		mail.Text, mail.HTML = line, "<p>"+line+"</p>"
		sent(t, m, mail)
		got := standin.Mails()[len(standin.Mails())-1]
		if unix(got.Text) != line || unix(got.HTML) != mail.HTML || got.Subject != mail.Subject {
			t.Errorf("%.40q: subject %.60q, text %.60q, HTML %.60q", line, got.Subject, got.Text, got.HTML)
		}
		if got.To[0] != "first.user@xn--bcher-kva.example.com" || !strings.Contains(got.From, "김철수 🎉") {
			t.Errorf("to %s, from %s", got.To[0], got.From)
		}
		for raw := range bytes.Lines(got.Raw) {
			if len(raw) > 1000 {
				t.Errorf("%.40q: a line of %d bytes", line, len(raw))
			}
		}
	}
}

// unix undoes the line breaks of MIME.
func unix(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }
