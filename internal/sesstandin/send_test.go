package sesstandin_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ses"
	"github.com/aws/aws-sdk-go-v2/service/ses/types"

	"github.com/oncepost/oncepost/internal/sesstandin"
	"github.com/oncepost/oncepost/internal/sestag"
)

func TestSendRawEmail(t *testing.T) {
	s := start(t, sesstandin.Config{})
	const id = "payment_failed:sub_9:2026-11"
	in := input(message("Subject: Hello", "Subject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=", "To: you", "Bcc: secret@example.com\r\nTo: you"),
		sestag.Encode(id), "You <you@example.com>", "secret@example.com")
	in.ConfigurationSetName = aws.String("events")
	in.Tags = append(in.Tags, types.MessageTag{Name: aws.String("event_type"), Value: aws.String("welcome")})
	out, err := s.ses.SendRawEmail(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	mails := s.Mails()
	if len(mails) != 1 {
		t.Fatalf("%d mails", len(mails))
	}
	m := mails[0]
	for _, c := range []struct{ what, got, want string }{
		{"ID", m.ID, aws.ToString(out.MessageId)},
		{"message ID", m.MessageID, id},
		{"event type", m.EventType, "welcome"},
		{"action", m.Action, "SendRawEmail"},
		{"source", m.Source, "shop@example.com"},
		{"from", m.From, "Shop <shop@example.com>"},
		{"to", strings.Join(m.To, " "), "you@example.com secret@example.com"},
		{"subject", m.Subject, "Grüße"},
		{"text", m.Text, "It works.\r\n"},
		{"configuration set", m.ConfigurationSet, "events"},
		{"header To", m.Header("to"), "you@example.com"},
		{"header Message-ID", m.Header("Message-ID"), "<" + m.ID + "@email.amazonses.com>"},
		{"header Bcc", m.Header("Bcc"), ""},
	} {
		if c.got != c.want {
			t.Errorf("%s = %q, want %q", c.what, c.got, c.want)
		}
	}
	if date, err := time.Parse(time.RFC1123Z, m.Header("Date")); err != nil || time.Since(date) > time.Minute {
		t.Errorf("Date = %q, want SES's own (%v)", m.Header("Date"), err)
	}
	if bytes.Contains(m.Raw, []byte("mine@example.com")) || bytes.Contains(m.Raw, []byte("secret@")) {
		t.Errorf("the raw mail keeps the client's Message-ID or the Bcc:\n%s", m.Raw)
	}
}

func TestSendRawEmailTakesTheHeaderForWhatIsNotSaid(t *testing.T) {
	s := start(t, sesstandin.Config{})
	raw := message("To: you@example.com", "To: A <a@example.com>,\r\n b@example.com\r\nCc: c@example.com\r\nBcc: d@example.com\r\n"+
		"X-SES-CONFIGURATION-SET: cs\r\nX-SES-MESSAGE-TAGS: message_id=m1, event_type=welcome")
	if _, err := s.ses.SendRawEmail(t.Context(), input(raw, "")); err != nil {
		t.Fatal(err)
	}
	m := s.Mails()[0]
	if got := strings.Join(m.To, " "); got != "a@example.com b@example.com c@example.com d@example.com" {
		t.Errorf("to = %q", got)
	}
	if m.MessageID != "m1" || m.EventType != "welcome" || m.ConfigurationSet != "cs" || m.Header("X-SES-MESSAGE-TAGS") != "" {
		t.Errorf("tags %v, configuration set %q, headers %v", m.Tags, m.ConfigurationSet, m.Headers)
	}
}

func TestSendEmail(t *testing.T) {
	s := start(t, sesstandin.Config{})
	content := func(s string) *types.Content {
		return &types.Content{Data: aws.String(s), Charset: aws.String("UTF-8")}
	}
	for _, tc := range []struct{ name, text, html, contentType string }{
		{"text and HTML", "Grüße & <Küsse>\r\nzwei = 2", "<p>Grüße</p>", "multipart/alternative"},
		{"text only", strings.Repeat("lang ", 300), "", "text/plain"},
		{"HTML only", "", "<p>ü</p>", "text/html"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			body := &types.Body{}
			if tc.text != "" {
				body.Text = content(tc.text)
			}
			if tc.html != "" {
				body.Html = content(tc.html)
			}
			out, err := s.ses.SendEmail(t.Context(), &ses.SendEmailInput{
				Source:           aws.String("Shop <shop@example.com>"),
				Destination:      &types.Destination{ToAddresses: []string{"a@example.com"}, CcAddresses: []string{"c@example.com"}, BccAddresses: []string{"b@example.com"}},
				Message:          &types.Message{Subject: content("Über " + tc.name), Body: body},
				ReplyToAddresses: []string{"reply@example.com"},
				Tags:             []types.MessageTag{{Name: aws.String("message_id"), Value: aws.String("m1")}},
			})
			if err != nil {
				t.Fatal(err)
			}
			mails := s.Mails()
			m := mails[len(mails)-1]
			if m.ID != aws.ToString(out.MessageId) || m.Subject != "Über "+tc.name || m.Text != tc.text || m.HTML != tc.html {
				t.Errorf("got %+v", m)
			}
			if got := strings.Join(m.To, " "); got != "a@example.com c@example.com b@example.com" {
				t.Errorf("to = %q", got)
			}
			if !strings.HasPrefix(m.Header("Content-Type"), tc.contentType) || m.Header("Reply-To") != "reply@example.com" || m.Header("Bcc") != "" {
				t.Errorf("headers %v", m.Headers)
			}
		})
	}
}

func TestIDsAreUnique(t *testing.T) {
	fixed := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	s := start(t, sesstandin.Config{Now: func() time.Time { return fixed }})
	seen := map[string]bool{}
	for range 50 {
		if err := s.send(t.Context(), ""); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range s.Mails() {
		if seen[m.ID] {
			t.Fatalf("ID %s twice", m.ID)
		}
		seen[m.ID] = true
	}
}

func TestAttachmentsAndNesting(t *testing.T) {
	s := start(t, sesstandin.Config{})
	raw := strings.ReplaceAll(`From: a@example.com
To: b@example.com
Content-Type: multipart/mixed; boundary=out

--out
Content-Type: multipart/alternative; boundary=in

--in
Content-Type: text/plain; charset=iso-8859-1
Content-Transfer-Encoding: quoted-printable

caf=E9
--in
Content-Type: text/html
Content-Transfer-Encoding: base64

PHA+aGk8L3A+
--in--
--out
Content-Type: application/pdf; name="bill.pdf"
Content-Disposition: attachment
Content-Transfer-Encoding: base64

`+base64.StdEncoding.EncodeToString(make([]byte, 30))+`
--out--
`, "\n", "\r\n")
	if _, err := s.ses.SendRawEmail(t.Context(), input([]byte(raw), "")); err != nil {
		t.Fatal(err)
	}
	m := s.Mails()[0]
	if m.Text != "café" || m.HTML != "<p>hi</p>" {
		t.Errorf("text %q, HTML %q", m.Text, m.HTML)
	}
	want := sesstandin.Attachment{Name: "bill.pdf", ContentType: "application/pdf", Size: 30}
	if len(m.Attachments) != 1 || m.Attachments[0] != want {
		t.Errorf("attachments %+v, want %+v", m.Attachments, want)
	}
}

func TestGetSendQuota(t *testing.T) {
	s := start(t, sesstandin.Config{})
	if err := s.send(t.Context(), "", "a@example.com", "b@example.com"); err != nil {
		t.Fatal(err)
	}
	q, err := s.ses.GetSendQuota(t.Context(), &ses.GetSendQuotaInput{})
	if err != nil {
		t.Fatal(err)
	}
	if q.Max24HourSend != -1 || q.MaxSendRate != 14 || q.SentLast24Hours != 2 {
		t.Errorf("quota %+v", q)
	}
	if got := s.Requests(); got["SendRawEmail"] != 1 || got["GetSendQuota"] != 1 {
		t.Errorf("requests %v", got)
	}
}

func TestUnknownAction(t *testing.T) {
	s := start(t, sesstandin.Config{})
	_, err := s.ses.ListIdentities(t.Context(), &ses.ListIdentitiesInput{})
	wantAPIError(t, err, "InvalidAction", "ListIdentities")
	if got := s.Requests()["unknown"]; got != 1 {
		t.Errorf("%d unknown requests", got)
	}
}

func TestTypedError(t *testing.T) {
	s := start(t, sesstandin.Config{})
	s.inject(sesstandin.Fault{Error: &sesstandin.APIError{Code: "MessageRejected", Message: "no <&> thanks"}})
	err := s.send(t.Context(), "")
	var rejected *types.MessageRejected
	if !errors.As(err, &rejected) || rejected.ErrorMessage() != "no <&> thanks" {
		t.Errorf("error %#v, want the SDK's type", err)
	}
}
