package sesstandin_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ses"
	"github.com/aws/aws-sdk-go-v2/service/ses/types"

	"github.com/oncepost/oncepost/internal/sesstandin"
)

func recipients(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("user%d@example.com", i)
	}
	return out
}

func sized(n int) []byte {
	raw := message()
	return append(raw, strings.Repeat("0123456789abcdef\r\n", n/18+1)[:n-len(raw)]...)
}

// What SES refuses is refused with SES's code, and leaves nothing in the inbox.
func TestRefusesRawMails(t *testing.T) {
	s := start(t, sesstandin.Config{})
	multipart := "Content-Type: multipart/mixed; boundary=x"
	for _, tc := range []struct {
		name, message string
		in            *ses.SendRawEmailInput
	}{
		{"no recipient", "'To'", input(message("To: you@example.com", "X: y"), "")},
		{"51 recipients", "exceeds 50", input(message(), "", recipients(51)...)},
		{"too long", "10485760", input(sized(10<<20+1), "")},
		{"no From", "'From'", input(message("From: Shop", "X: Shop"), "")},
		{"two From", "Duplicate header", input(message("From: Shop", "From: a@example.com\r\nFrom: Shop"), "")},
		{"malformed From", "Illegal address", input(message("Shop <shop@example.com>", "<shop"), "")},
		{"no empty line", "empty line", input([]byte("From: a@example.com\r\nTo: b@example.com\r\n"), "")},
		{"header without colon", "malformed", input(message("Subject: Hello", "Subject Hello"), "")},
		{"multipart without parts", "part 1", input(message("Content-Type: text/plain; charset=utf-8", multipart), "")},
		{"multipart that breaks off", "part", input(message("Content-Type: text/plain; charset=utf-8", multipart, "It works.", "--x\r\n\r\nhi"), "")},
		{"bad base64", "base64", input(message("Subject", "Content-Transfer-Encoding: base64\r\nSubject"), "")},
		{"unknown encoding", "zip", input(message("Subject", "Content-Transfer-Encoding: zip\r\nSubject"), "")},
		{"bad content type", "Content-Type", input(message("text/plain; charset=utf-8", "text/;;"), "")},
		{"tag with a colon", "tag value", input(message(), "a:b")},
		{"tag too long", "tag value", input(message(), strings.Repeat("a", 257))},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := s.ses.SendRawEmail(t.Context(), tc.in)
			wantAPIError(t, err, "InvalidParameterValue", tc.message)
		})
	}
	s.accepted(0)
}

// One malformed recipient refuses the mail, though the others are good.
func TestRefusesAddresses(t *testing.T) {
	s := start(t, sesstandin.Config{})
	for _, bad := range []string{
		"plain", "@example.com", "a@", "a@localhost", "jürgen@example.com", "a@exämple.com", "a b@example.com", "a@example..com",
		"a@-example.com", "a@exa_mple.com", "a@[127.0.0.1]", "a@example.com, b@example.com", "a@example.com\r\nBcc: x@example.com",
		"Ju\nst <a@example.com>", strings.Repeat("a", 65) + "@example.com", "Jürgen <a@example.com>", "",
	} {
		t.Run(bad, func(t *testing.T) {
			_, err := s.ses.SendRawEmail(t.Context(), input(message(), "", "you@example.com", bad))
			wantAPIError(t, err, "InvalidParameterValue", "")
		})
	}
	s.accepted(0)
	for _, good := range []string{"a@example.com", "a+b.c@sub.example.co.uk", "=?utf-8?q?J=C3=BCrgen?= <a@example.com>", "a@xn--exmple-cua.com"} {
		if err := s.send(t.Context(), "", good); err != nil {
			t.Errorf("%s refused: %v", good, err)
		}
	}
}

func TestRefusesSendEmail(t *testing.T) {
	s := start(t, sesstandin.Config{})
	good := func() *ses.SendEmailInput {
		return &ses.SendEmailInput{
			Source:      aws.String("shop@example.com"),
			Destination: &types.Destination{ToAddresses: []string{"you@example.com"}},
			Message: &types.Message{
				Subject: &types.Content{Data: aws.String("Hello")},
				Body:    &types.Body{Text: &types.Content{Data: aws.String("hi")}},
			},
		}
	}
	for _, tc := range []struct {
		name, message string
		change        func(*ses.SendEmailInput)
	}{
		{"no source", "'From'", func(in *ses.SendEmailInput) { in.Source = aws.String("") }},
		{"no recipient", "'To'", func(in *ses.SendEmailInput) { in.Destination = &types.Destination{} }},
		{"no body", "no body", func(in *ses.SendEmailInput) { in.Message.Body = &types.Body{} }},
		{"header injection", "control", func(in *ses.SendEmailInput) { in.Message.Subject.Data = aws.String("a\r\nBcc: x@example.com") }},
		{"51 recipients", "exceeds 50", func(in *ses.SendEmailInput) { in.Destination.BccAddresses = recipients(50) }},
		{"bad reply-to", "", func(in *ses.SendEmailInput) { in.ReplyToAddresses = []string{"x"} }},
		{"too long", "10485760", func(in *ses.SendEmailInput) { in.Message.Body.Text.Data = aws.String(strings.Repeat("ä", 5<<20)) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			in := good()
			tc.change(in)
			_, err := s.ses.SendEmail(t.Context(), in)
			wantAPIError(t, err, "InvalidParameterValue", tc.message)
		})
	}
	s.accepted(0)
	if _, err := s.ses.SendEmail(t.Context(), good()); err != nil {
		t.Errorf("the good one: %v", err)
	}
}

func TestLargestMailIsAccepted(t *testing.T) {
	s := start(t, sesstandin.Config{})
	// SES's own Message-ID and Date are not counted against the sender.
	if _, err := s.ses.SendRawEmail(t.Context(), input(sized(10<<20), "", recipients(50)...)); err != nil {
		t.Fatal(err)
	}
	s.accepted(1)
}
