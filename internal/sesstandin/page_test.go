package sesstandin_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/oncepost/oncepost/internal/sesstandin"
)

// get returns a page that must be there.
func (s *stand) get(path string) (http.Header, string) {
	s.t.Helper()
	status, header, body := s.do("GET", path, "", "")
	if status != http.StatusOK {
		s.t.Fatalf("GET %s: status %d: %s", path, status, body)
	}
	return header, body
}

func TestEmptyInboxSaysWhatToDo(t *testing.T) {
	s := start(t, sesstandin.Config{})
	_, body := s.get("/")
	for _, want := range []string{"No mails yet", "AWS_ENDPOINT_URL_SES=" + s.url} {
		if !strings.Contains(body, want) {
			t.Errorf("no %q in the page", want)
		}
	}
}

func TestInboxAndMailPage(t *testing.T) {
	s := start(t, sesstandin.Config{WorkflowURL: "http://temporal.example.com/namespaces/default/workflows/{message_id}"})
	raw := message("Subject: Hello", "X-SES-MESSAGE-TAGS: event_type=welcome\r\nSubject: Hello")
	if err := s.send(t.Context(), "m1"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.ses.SendRawEmail(t.Context(), input(raw, "b64_YS9iOmM_ZA", "you@example.com")); err != nil { // a/b:c?d
		t.Fatal(err)
	}
	_, list := s.get("/")
	if strings.Index(list, "a/b:c?d") > strings.Index(list, ">m1<") || !strings.Contains(list, "welcome") {
		t.Errorf("the newest mail is not first, or its type is missing:\n%s", list)
	}
	m := s.Mails()[1]
	_, page := s.get("/mail/" + m.ID)
	for _, want := range []string{`href="http://temporal.example.com/namespaces/default/workflows/a%2Fb:c%3Fd"`, "It works.", "a/b:c?d", "shop@example.com"} {
		if !strings.Contains(page, want) {
			t.Errorf("no %s in the page:\n%s", want, page)
		}
	}
	if _, page := s.get("/mail/" + m.ID + "?view=headers"); !strings.Contains(page, "amazonses.com") {
		t.Error("the headers view lacks the Message-ID")
	}
	header, eml := s.get("/mail/" + m.ID + "/raw")
	if eml != string(m.Raw) || !strings.Contains(header.Get("Content-Disposition"), "attachment") {
		t.Errorf("raw download: %v\n%s", header, eml)
	}
	if status, _, _ := s.do("GET", "/mail/none", "", ""); status != http.StatusNotFound {
		t.Errorf("unknown mail: status %d", status)
	}
}

// Nothing in a mail can become a part of the page.
func TestHostileMail(t *testing.T) {
	const evil = `<script>alert(1)</script>"'><img src=x onerror=alert(2)>`
	s := start(t, sesstandin.Config{WorkflowURL: "http://temporal.example.com/{message_id}"})
	raw := "From: =?utf-8?q?" + qEncode(evil) + "?= <a@example.com>\r\nTo: b@example.com\r\nSubject: =?utf-8?q?" + qEncode(evil) + "?=\r\n" +
		"X-Evil: " + evil + "\r\nContent-Type: multipart/mixed; boundary=x\r\n\r\n" +
		"--x\r\nContent-Type: text/plain\r\n\r\n" + evil + "\r\n" +
		"--x\r\nContent-Type: text/html\r\n\r\n" + evil + "\r\n" +
		"--x\r\nContent-Type: text/css\r\nContent-Disposition: attachment; filename=\"=?utf-8?q?" + qEncode(evil) + "?=\"\r\n\r\nx\r\n--x--\r\n"
	if _, err := s.ses.SendRawEmail(t.Context(), input([]byte(raw), "b64_amF2YXNjcmlwdDphbGVydCgxKTwi")); err != nil {
		t.Fatal(err)
	}
	id := s.Mails()[0].ID
	if got := s.Mails()[0].Subject; got != evil {
		t.Fatalf("subject %q: the test is blunt", got)
	}
	for _, path := range []string{"/", "/live", "/?q=" + url.QueryEscape(evil), "/mail/" + id, "/mail/" + id + "?view=text", "/mail/" + id + "?view=headers", "/mail/" + id + "?view=source"} {
		header, body := s.get(path)
		if strings.Contains(body, "<script>alert") || strings.Contains(body, "<img") || strings.Contains(body, `href="javascript`) {
			t.Errorf("%s is not escaped:\n%s", path, body)
		}
		if csp := header.Get("Content-Security-Policy"); path != "/live" && (!strings.Contains(csp, "default-src 'none'") || strings.Contains(csp, "unsafe")) {
			t.Errorf("%s has the policy %q", path, csp)
		}
	}
	if _, body := s.get("/mail/" + id); !strings.Contains(body, `<iframe sandbox=""`) {
		t.Error("the HTML is not in a sandboxed frame")
	}
	header, body := s.get("/mail/" + id + "/html")
	csp := header.Get("Content-Security-Policy")
	if !strings.HasPrefix(csp, "sandbox; default-src 'none'") || !strings.Contains(body, evil) {
		t.Errorf("the HTML as it came, under the policy %q:\n%s", csp, body)
	}
}

// qEncode writes s for the inside of an encoded word.
func qEncode(s string) string {
	var b strings.Builder
	for i := range len(s) {
		fmt.Fprintf(&b, "=%02X", s[i])
	}
	return b.String()
}

func TestSearchAndPages(t *testing.T) {
	s := start(t, sesstandin.Config{})
	for i := range 105 {
		if err := s.send(t.Context(), fmt.Sprintf("m%d", i)); err != nil {
			t.Fatal(err)
		}
	}
	rows := func(path string) int {
		_, body := s.get(path)
		return strings.Count(body, "<li><a href=\"/mail/")
	}
	for path, want := range map[string]int{"/": 100, "/?page=2": 5, "/?page=99": 5, "/?page=x": 100, "/?q=M10": 6, "/live?q=none": 0} {
		if got := rows(path); got != want {
			t.Errorf("%s shows %d mails, want %d", path, got, want)
		}
	}
}

func TestFaultButtons(t *testing.T) {
	s := start(t, sesstandin.Config{})
	const form = "application/x-www-form-urlencoded"
	if status, _, _ := s.do("POST", "/faults", form, "preset=paused&once=1"); status != http.StatusSeeOther {
		t.Fatalf("status %d", status)
	}
	if _, body := s.get("/"); !strings.Contains(body, "Sending paused for this account") {
		t.Error("the page does not show the fault")
	}
	wantAPIError(t, s.send(t.Context(), ""), "MessageRejected", "paused")
	if err := s.send(t.Context(), ""); err != nil {
		t.Errorf("the second mail: %v", err)
	}
	s.do("POST", "/faults", form, "preset=paused")
	s.do("POST", "/faults", form, "")
	if got := s.Faults(); len(got) != 0 {
		t.Errorf("faults %+v after Clear", got)
	}
}
