package alerts

import (
	"fmt"
	"log/slog"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Limits of what an alert holds, so that it is never too large to be sent.
const (
	maxTitle  = 200 // characters
	maxDetail = 64 << 10
	maxFields = 50
	maxField  = 4 << 10
)

// notice is an alert ready to be told: everything in it is bounded, valid UTF-8, and free of control characters.
type notice struct {
	Title    string            `json:"title"`
	Detail   string            `json:"detail,omitempty"`
	Fields   map[string]string `json:"fields,omitempty"`
	Key      string            `json:"key"`
	Repeated int               `json:"repeated"` // how many more of the same were counted
	Since    *time.Time        `json:"since,omitempty"`
	Host     string            `json:"host"`
	Time     time.Time         `json:"time"`
	Text     string            `json:"text"` // all of it
}

func newNotice(a Alert, c counted, now time.Time) notice {
	n := notice{
		Title: cutRunes(line(start(a.Title, maxTitle)), maxTitle), Detail: cut(lines(start(a.Detail, maxDetail)), maxDetail), Key: cutRunes(line(start(a.Key, maxTitle)), maxTitle),
		Repeated: c.n, Host: line(host()), Time: now.UTC(), Fields: map[string]string{},
	}
	if n.Title == "" {
		n.Title = "alert without a title" // somebody meant to say something
	}
	if c.n > 0 {
		since := c.since.UTC()
		n.Since = &since
	}
	names := slices.Sorted(maps.Keys(a.Fields))
	for _, name := range names[:min(len(names), maxFields)] {
		n.Fields[cutRunes(line(start(name, maxTitle)), maxTitle)] = cut(lines(start(a.Fields[name], maxField)), maxField)
	}
	n.Text = n.text()
	return n
}

// subject is the mail's.
func (n notice) subject() string {
	if n.Repeated > 0 {
		return fmt.Sprintf("[alert] %s (and %d more)", n.Title, n.Repeated)
	}
	return "[alert] " + n.Title
}

func (n notice) text() string {
	var b strings.Builder
	b.WriteString(n.Title + "\n")
	if n.Detail != "" {
		b.WriteString("\n" + n.Detail + "\n")
	}
	if len(n.Fields) > 0 {
		b.WriteString("\n")
	}
	for _, name := range slices.Sorted(maps.Keys(n.Fields)) {
		fmt.Fprintf(&b, "%s: %s\n", name, strings.ReplaceAll(n.Fields[name], "\n", "\n    "))
	}
	if n.Repeated > 0 {
		fmt.Fprintf(&b, "\nThe same happened %d more times since %s, which was counted and not sent.\n", n.Repeated, n.Since.Format(time.DateTime+" MST"))
	}
	fmt.Fprintf(&b, "\nFrom %s, %s\n", n.Host, n.Time.Format(time.DateTime+" MST"))
	return b.String()
}

// attrs are the alert for the log.
func (n notice) attrs() []slog.Attr {
	all := []slog.Attr{slog.String("title", mask(n.Title)), slog.String("key", mask(n.Key))}
	if n.Detail != "" {
		all = append(all, slog.String("detail", mask(n.Detail)))
	}
	if n.Repeated > 0 {
		all = append(all, slog.Int("repeated", n.Repeated), slog.Time("since", *n.Since))
	}
	var fields []any
	for _, name := range slices.Sorted(maps.Keys(n.Fields)) {
		fields = append(fields, slog.String(mask(name), mask(n.Fields[name])))
	}
	if len(fields) > 0 {
		all = append(all, slog.Group("fields", fields...))
	}
	return all
}

// addressLike is wider than addresses: a DSN's user and password fall under it too, and a quoted local part, and an @ that was
// escaped for a URL.
var addressLike = regexp.MustCompile(`("[^"\n]*"|[^\s<>"'();=]+)(@|%40)[^\s<>"'(),;:=]+`)

// mask hides addresses from the log. People get them by mail.
func mask(s string) string { return addressLike.ReplaceAllString(s, "(address)") }

// line makes one line: of a header, or of a name.
func line(s string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if breaks(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD")))
}

// lines keeps line breaks and tabs.
func lines(s string) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\r\n", "\n")
	return strings.TrimRight(strings.Map(func(r rune) rune {
		if breaks(r) && r != '\n' && r != '\t' {
			return ' '
		}
		return r
	}, s), "\n ")
}

// breaks reports a control character, or one of Unicode's own line breaks.
func breaks(r rune) bool { return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' }

// start drops most of what will be cut, so that a text of any length costs no time: eight bytes for each that may stay.
func start(s string, limit int) string {
	if len(s) <= 8*limit {
		return s
	}
	return strings.ToValidUTF8(s[:8*limit], "")
}

func cutRunes(s string, limit int) string {
	if utf8.RuneCountInString(s) <= limit {
		return s
	}
	return string([]rune(s)[:limit-1]) + "…"
}

// cut cuts between two characters.
func cut(s string, limit int) string {
	const more = "\n… (cut)"
	if len(s) <= limit {
		return s
	}
	end := limit - len(more)
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + more
}
