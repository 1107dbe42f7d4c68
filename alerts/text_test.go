package alerts

import (
	"net/mail"
	"strings"
	"testing"
	"unicode/utf8"
)

// Scenario 25: whatever a title holds is the one header Subject.
func TestHeadersCannotBeInjected(t *testing.T) {
	for name, title := range map[string]string{
		"CRLF": "down\r\nBcc: x@evil.test", "LF": "down\nBcc: x@evil.test", "CR": "down\rBcc: x@evil.test", "body": "down\r\n\r\n<script>",
		"NEL": "down\u0085Bcc: x@evil.test", "LS": "down\u2028Bcc: x@evil.test", "NUL": "down\x00Bcc: x@evil.test", "VT": "down\vBcc: x@evil.test",
		"encoded word": "=?utf-8?q?down=0D=0ABcc:_x@evil.test?=", "leading": "\r\nBcc: x@evil.test", "invalid": "down\xff\r\nBcc: x@evil.test",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			w.must(Alert{Title: title, Fields: map[string]string{"a\r\nBcc: x@evil.test": "b"}})
			m := w.last(1)
			if len(m.To) != 2 || m.Header("Bcc") != "" {
				t.Errorf("to %v, Bcc %q", m.To, m.Header("Bcc"))
			}
			msg, err := mail.ReadMessage(strings.NewReader(string(m.Raw)))
			if err != nil {
				t.Fatal(err)
			}
			for field := range msg.Header {
				switch field {
				case "From", "To", "Subject", "Auto-Submitted", "Mime-Version", "Content-Type", "Content-Transfer-Encoding", "Message-Id", "Date":
				default:
					t.Errorf("header %s", field)
				}
			}
			if strings.ContainsAny(m.Subject, "\r\n\x00\v\u0085\u2028") || !utf8.ValidString(m.Subject) {
				t.Errorf("subject %q", m.Subject)
			}
		})
	}
}

// Names with control characters are refused where the Alerter is made.
func TestNamesCannotBeInjected(t *testing.T) {
	const evil = "=?utf-8?q?Ops=0D=0ABcc=3A_x=40evil.test?= <ops@example.com>"
	for name, cfg := range map[string]Config{"sender": {From: evil, To: []string{to}}, "recipient 1 of 1": {From: from, To: []string{evil}}} {
		cfg.Endpoint = "http://127.0.0.1:1"
		if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "display name has a line break") || strings.Contains(err.Error(), "@evil") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Scenario 27, for alerts.
func TestEmojiAndKorean(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.To = []string{"김철수 🚨 <first.admin@bücher.example.com>"} })
	long := strings.Repeat("x", 998) + " " + strings.Repeat("긴", 1200)
	w.must(Alert{Title: "🚨 결제는 됐지만 저장에 실패했습니다", Detail: long, Fields: map[string]string{"고객": "👩‍👩‍👧"}})
	m := w.last(1)
	if m.Subject != "[alert] 🚨 결제는 됐지만 저장에 실패했습니다" || m.To[0] != "first.admin@xn--bcher-kva.example.com" {
		t.Errorf("subject %q, to %v", m.Subject, m.To)
	}
	if a, err := mail.ParseAddress(m.Header("To")); err == nil && a.Name != "김철수 🚨" {
		t.Errorf("to %q", m.Header("To"))
	}
	if !strings.Contains(m.Text, long) || !strings.Contains(m.Text, "고객: 👩‍👩‍👧") {
		t.Errorf("text %q", m.Text)
	}
	// SES has no SMTPUTF8: nothing but ASCII may stand in a header.
	headers, _, _ := strings.Cut(string(m.Raw), "\r\n\r\n")
	if at := strings.IndexFunc(headers, func(r rune) bool { return r > '~' }); at >= 0 {
		t.Errorf("not ASCII: %q", headers[at:])
	}
	for line := range strings.Lines(string(m.Raw)) {
		if len(line) > 1000 {
			t.Errorf("a line of %d bytes", len(line))
		}
	}
}

// An alert is never too large to leave.
func TestWhatIsTooLongIsCut(t *testing.T) {
	w := newWorld(t, nil)
	fields := map[string]string{}
	for _, r := range strings.Repeat("긴", 1) + strings.Repeat("abcdefghij", 30) {
		fields[strings.Repeat(string(r), len(fields)+1)] = strings.Repeat("🚨", 1<<20)
	}
	w.must(Alert{Title: strings.Repeat("긴", 1<<20), Detail: strings.Repeat("🚨", 5<<20), Fields: fields, Key: strings.Repeat("k", 5<<20)})
	m := w.last(1)
	if n := utf8.RuneCountInString(m.Subject); n > 220 || !strings.HasSuffix(m.Subject, "…") {
		t.Errorf("a subject of %d characters", n)
	}
	if len(m.Text) > 64<<10+50*5<<10 || !utf8.ValidString(m.Text) || strings.ContainsRune(m.Text, utf8.RuneError) || !strings.Contains(m.Text, "… (cut)") {
		t.Errorf("a text of %d bytes", len(m.Text))
	}
}

// The log gets the alert without what looks like an address, a DSN's password included.
func TestTheLogHoldsNoAddress(t *testing.T) {
	w := newWorld(t, nil)
	w.must(Alert{
		Title: "no mail to first.user@example.com", Key: "k <first.user@example.com>", Detail: "dial app:hunter2@tcp(127.0.0.1:3306)/app: refused",
		Fields: map[string]string{
			"to": "김@한국.kr", "order": "o_7", "quoted": `"first user"@example.com`, "url": "https://x/?to=first.user%40example.com&y=1",
			"dsn": "app:se,cret:x@tcp(127.0.0.1:3307)/app",
		},
	})
	for _, hidden := range []string{"first", "user", "se,cret", "example.com", "%40"} {
		if strings.Contains(w.log.String(), hidden) {
			t.Errorf("the log holds %q: %s", hidden, w.log.String())
		}
	}
	log := w.log.String()
	if strings.Contains(log, "@") || strings.Contains(log, "hunter2") || strings.Contains(log, "한국") || !strings.Contains(log, "o_7") || !strings.Contains(log, "127.0.0.1:3306") {
		t.Errorf("log %s", log)
	}
	if m := w.last(1); !strings.Contains(m.Text, "한국.kr") {
		t.Errorf("the mail has everything: %q", m.Text)
	}
}

func TestAnAlertWithoutATitle(t *testing.T) {
	w := newWorld(t, nil)
	w.must(Alert{Title: "\r\n ", Detail: "all there is"})
	if m := w.last(1); m.Subject != "[alert] alert without a title" || !strings.Contains(m.Text, "all there is") {
		t.Errorf("%q: %q", m.Subject, m.Text)
	}
}
