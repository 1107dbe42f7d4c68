package templates

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

var update = flag.Bool("update", false, "write the golden files anew")

// samples are payloads for every shipped event type, with what must be escaped, kept and not rounded.
var samples = map[string]map[string]any{
	"welcome": {"company_id": "c_42", "company_name": "O'Brien & <b>Co</b> 👩‍👩‍👧‍👦", "email": "first@example.com"},
	"payment_failed": {
		"subscription_id": "sub_9007199254740993", "amount": "9900.10", "currency": "KRW", "card_last4": "4242",
		"reregister_url": "https://example.com/cards?sub=9&from=mail#top",
	},
}

func sample(eventType string) map[string]any {
	return map[string]any{
		"payload": samples[eventType],
		"to":      map[string]any{"email": "first@example.com", "name": "Żółć <i>O'Neil</i>"},
		"step":    "mail",
	}
}

func builtinSet(t *testing.T) *Set {
	t.Helper()
	s, err := Builtin()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Every shipped mail, in every locale, as it goes out.
func TestGolden(t *testing.T) {
	s := builtinSet(t)
	for _, eventType := range s.Types() {
		for locale := range s.types[eventType] {
			t.Run(eventType+"/"+locale, func(t *testing.T) {
				checkGolden(t, s, eventType, locale, "mail", eventType+"."+locale+".golden")
			})
		}
	}
	for locale := range s.types["payment_failed"] {
		t.Run("payment_failed/"+locale+"/reminder", func(t *testing.T) {
			checkGolden(t, s, "payment_failed", locale, "reminder", "payment_failed."+locale+".reminder.golden")
		})
	}
}

func checkGolden(t *testing.T, s *Set, eventType, locale, step, name string) {
	t.Helper()
	data := sample(eventType)
	data["step"] = step
	c, err := s.Render(eventType, locale, data)
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprintf("Locale: %s\nSubject: %s\n\n%s\n-- html --\n%s", c.Locale, c.Subject, c.Text, c.HTML)
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v: make it by go test ./templates -update, and look at it", err)
	}
	if got != string(want) {
		t.Errorf("the mail is\n%s\nand %s has\n%s", got, file, want)
	}
}

func TestLocaleFallsBack(t *testing.T) {
	s := builtinSet(t)
	for asked, want := range map[string]string{
		"en": "en", "ko": "ko", "ko-KR": "ko", "ko-Kore-KR": "ko", "ko_KR": "ko", "KO-kr": "ko", "en-GB": "en", "en-US-u-nu-latn": "en",
		"": "en", "fr": "en", "zh-Hant-TW": "en", "not a locale": "en", "k": "en", "../ko": "en", "ko-": "en",
	} {
		t.Run(asked, func(t *testing.T) {
			c, err := s.Render("welcome", asked, sample("welcome"))
			if err != nil {
				t.Fatal(err)
			}
			if c.Locale != want {
				t.Errorf("locale %q, want %q", c.Locale, want)
			}
		})
	}
}

// The parents that the locale data knows come first (zh-TW: zh-Hant), then the plain language, then en.
func TestLocaleFallsBackToItsLanguage(t *testing.T) {
	files := fstest.MapFS{}
	for _, locale := range []string{"en", "zh", "zh-Hant", "sr", "pt"} {
		for name, f := range mailOf(locale, "b", "c") {
			files[strings.Replace(name, "/en/", "/"+locale+"/", 1)] = f
		}
	}
	s := newSet(t, files)
	for asked, want := range map[string]string{
		"zh-TW": "zh-Hant", "zh-Hant-HK": "zh-Hant", "zh-Hans-CN": "zh", "zh-CN": "zh", "sr-Latn": "sr", "sr-Latn-RS": "sr", "sr-Cyrl": "sr",
		"pt-BR": "pt", "und-RS": "en", "und": "en", "fr-FR": "en",
	} {
		c, err := s.Render("t", asked, map[string]any{})
		if err != nil || c.Locale != want || c.Subject != want {
			t.Errorf("%s: %+v, %v, want %s", asked, c, err, want)
		}
	}
	for _, locale := range []string{"subject.txt", "body.txt", "body.html"} {
		delete(files, "t/zh-Hant/"+locale)
	}
	if c, err := newSet(t, files).Render("t", "zh-TW", map[string]any{}); err != nil || c.Locale != "zh" {
		t.Errorf("zh-TW without zh-Hant: %+v, %v", c, err)
	}
}

// A mounted ConfigMap keeps its files in folders that begin with dots, behind symbolic links; a checkout has a .git.
func TestFolderWithDotsAndLinks(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, f := range mailOf("a", "b", "c") {
		write("..2026_11_01_10_00_00.123/"+name, string(f.Data))
	}
	write(".git/refs/heads", "x")
	write("..2026_11_01_10_00_00.123/t/.hidden/x", "x")
	for link, to := range map[string]string{"..data": "..2026_11_01_10_00_00.123", "t": "..data/t"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	s, err := New(os.DirFS(dir))
	if err != nil {
		t.Fatal(err)
	}
	if types := s.Types(); !slices.Equal(types, []string{"t"}) || !s.Has("t", "en") {
		t.Errorf("types %v", types)
	}
	if c, err := s.Render("t", "en", map[string]any{}); err != nil || c.Subject != "a" {
		t.Errorf("%+v, %v", c, err)
	}
}

// A name with markup is plain in the subject and the text, and escaped exactly once in the HTML. (scenario 26)
func TestEscapedExactlyOnce(t *testing.T) {
	c, err := builtinSet(t).Render("welcome", "en", sample("welcome"))
	if err != nil {
		t.Fatal(err)
	}
	const plain, escaped = "O'Brien & <b>Co</b>", "O&#39;Brien &amp; &lt;b&gt;Co&lt;/b&gt;"
	if !strings.Contains(c.Subject, plain) || !strings.Contains(c.Text, plain) {
		t.Errorf("subject %q, text %q: want %s", c.Subject, c.Text, plain)
	}
	if strings.Count(c.HTML, escaped) != 1 || strings.Contains(c.HTML, plain) || strings.Contains(c.HTML, "&amp;amp;") {
		t.Errorf("HTML: want %s once in\n%s", escaped, c.HTML)
	}
}

// mailOf is one event type "t" with one locale.
func mailOf(subject, text, html string) fstest.MapFS {
	return fstest.MapFS{
		"t/en/subject.txt": {Data: []byte(subject)},
		"t/en/body.txt":    {Data: []byte(text)},
		"t/en/body.html":   {Data: []byte(html)},
	}
}

func newSet(t *testing.T, files fstest.MapFS) *Set {
	t.Helper()
	s, err := New(files)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// No half-empty mail: a name that is missing is an error wherever it stands, and nothing is rendered. (scenario 24)
func TestMissingNameIsAnError(t *testing.T) {
	const ask = "{{.payload.absent}}"
	for part, files := range map[string]fstest.MapFS{
		"subject": mailOf("a"+ask, "b", "c"), "text": mailOf("a", "b"+ask, "c"), "HTML": mailOf("a", "b", "<p>"+ask+"</p>"),
		"in an attribute": mailOf("a", "b", `<a href="`+ask+`">c</a>`), "nested": mailOf("a", "{{.payload.object.absent}}", "c"),
		"in a range": mailOf("a", "{{range .payload.list}}{{.absent}}{{end}}", "c"), "at the top": mailOf("{{.absent}}", "b", "c"),
		"in a condition": mailOf("a", "{{if .payload.absent}}x{{end}}", "c"),
	} {
		t.Run(part, func(t *testing.T) {
			c, err := newSet(t, files).Render("t", "en", map[string]any{"payload": map[string]any{
				"object": map[string]any{}, "list": []any{map[string]any{}},
			}})
			if err == nil || c != (Content{}) {
				t.Errorf("rendered %+v, %v", c, err)
			}
			if err != nil && !strings.Contains(err.Error(), "absent") {
				t.Errorf("the error does not say what is missing: %v", err)
			}
		})
	}
}

func TestOptionalName(t *testing.T) {
	s := newSet(t, mailOf("a", `x{{with index .payload "absent"}}{{.}}{{end}}`, "c"))
	if c, err := s.Render("t", "en", map[string]any{"payload": map[string]any{}}); err != nil || c.Text != "x" {
		t.Errorf("%+v, %v", c, err)
	}
}

// A line break in a subject would begin another header. (scenario 25)
func TestSubjectWithControlCharactersIsRefused(t *testing.T) {
	s := newSet(t, mailOf("Hello {{.payload.name}}, welcome\n", "b", "c"))
	for _, name := range []string{"a\r\nBcc: x@evil.test", "a\nb", "a\rb", "a\x00b", "a\tb", "a\x7fb", "a\u0085b"} {
		if _, err := s.Render("t", "en", map[string]any{"payload": map[string]any{"name": name}}); err == nil {
			t.Errorf("%q: no error", name)
		} else if strings.Contains(err.Error(), "evil") {
			t.Errorf("%q: the error repeats the value: %v", name, err)
		}
	}
	c, err := s.Render("t", "en", map[string]any{"payload": map[string]any{"name": "é 한국어 👩‍👩‍👧‍👦"}})
	if err != nil || c.Subject != "Hello é 한국어 👩‍👩‍👧‍👦, welcome" {
		t.Errorf("subject %q, %v", c.Subject, err)
	}
	if _, err := newSet(t, mailOf(" \n", "b", "c")).Render("t", "en", nil); err == nil {
		t.Error("an empty subject: no error")
	}
}

func TestUnknownEventTypeIsAnError(t *testing.T) {
	if _, err := builtinSet(t).Render("no_such_type", "en", nil); err == nil || !strings.Contains(err.Error(), "no_such_type") {
		t.Errorf("error %v", err)
	}
}

// What is wrong with a set of templates is found when a process starts, and not when a mail is due.
func TestNewRefusesWhatIsIncomplete(t *testing.T) {
	without := func(name string) fstest.MapFS {
		files := mailOf("a", "b", "c")
		delete(files, name)
		return files
	}
	with := func(name, content string) fstest.MapFS {
		files := mailOf("a", "b", "c")
		files[name] = &fstest.MapFile{Data: []byte(content)}
		return files
	}
	for name, files := range map[string]fstest.MapFS{
		"no subject": without("t/en/subject.txt"), "no text": without("t/en/body.txt"), "no HTML": without("t/en/body.html"),
		"an unfinished locale": with("t/ko/subject.txt", "a"), "no locale": with("t/not a locale/subject.txt", "a"),
		"a broken subject": with("t/en/subject.txt", "{{"), "a broken text": with("t/en/body.txt", "{{end}}"),
		"a broken HTML": with("t/en/body.html", "{{if}}"),
		"no en": {
			"t/ko/subject.txt": {Data: []byte("a")}, "t/ko/body.txt": {Data: []byte("b")}, "t/ko/body.html": {Data: []byte("c")},
		},
	} {
		if _, err := New(files); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := New(with("t/README.md", "about t")); err != nil {
		t.Errorf("a file beside the locales: %v", err)
	}
}

// Users add types, and replace the shipped mails, by folders of their own.
func TestBuiltinWithMore(t *testing.T) {
	own := mailOf("own", "b", "c")
	own["welcome/en/subject.txt"] = &fstest.MapFile{Data: []byte("Hi {{.payload.company_name}}")}
	own["welcome/en/body.txt"], own["welcome/en/body.html"] = own["t/en/body.txt"], own["t/en/body.html"]
	s, err := Builtin(own)
	if err != nil {
		t.Fatal(err)
	}
	types := s.Types()
	slices.Sort(types)
	if want := []string{"payment_failed", "t", "welcome"}; !slices.Equal(types, want) {
		t.Errorf("types %v, want %v", types, want)
	}
	data := sample("welcome")
	if c, err := s.Render("welcome", "en", data); err != nil || !strings.HasPrefix(c.Subject, "Hi O'Brien") {
		t.Errorf("%+v, %v", c, err)
	}
	if c, err := s.Render("welcome", "ko", data); err != nil || c.Locale != "ko" {
		t.Errorf("the locale that was not replaced: %+v, %v", c, err)
	}
	if !s.Has("t", "en") || s.Has("t", "ko") || s.Has("absent", "en") {
		t.Error("Has is wrong")
	}
}
