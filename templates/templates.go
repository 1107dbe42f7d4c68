// Package templates renders mails from a folder per event type and locale:
//
//	welcome/en/subject.txt  body.txt  body.html
//
// Texts see the payload as .payload and the recipient as .to (.to.name, .to.email). A name that is missing is an error and
// never an empty place in a mail; ask for an optional one with {{with index .payload "name"}}.
// Rendering is local. Sending is not this package's job.
package templates

import (
	"embed"
	"errors"
	"fmt"
	htmltemplate "html/template"
	"io"
	"io/fs"
	"path"
	"strings"
	texttemplate "text/template"
	"unicode"

	"golang.org/x/text/language"
)

//go:embed */*/*.txt */*/*.html
var builtin embed.FS

// DefaultLocale is used where a message names no locale, or none that there are templates for.
const DefaultLocale = "en"

// Content is a rendered mail.
type Content struct {
	Subject, Text, HTML string
	Locale              string // of the templates that were used
}

// Set holds parsed templates. It is safe for concurrent use.
type Set struct {
	types map[string]map[string]*mail // by event type and locale
}

type mail struct {
	subject, text *texttemplate.Template
	html          *htmltemplate.Template
}

// Builtin returns the templates of the shipped event types, and those of more, which win where both have a folder.
func Builtin(more ...fs.FS) (*Set, error) {
	return New(append([]fs.FS{builtin}, more...)...)
}

// New parses every `<event type>/<locale>` folder of the given file systems. Each folder must be complete, and each event
// type must have DefaultLocale. Names that begin with a dot are skipped.
func New(files ...fs.FS) (*Set, error) {
	s := &Set{types: map[string]map[string]*mail{}}
	for _, fsys := range files {
		dirs, err := fs.Glob(fsys, "*/*")
		if err != nil {
			return nil, fmt.Errorf("templates: %w", err)
		}
		for _, dir := range dirs {
			if strings.HasPrefix(dir, ".") || strings.Contains(dir, "/.") {
				continue // the insides of a mounted ConfigMap, or of a repository
			}
			if info, err := fs.Stat(fsys, dir); err != nil || !info.IsDir() {
				continue // a file beside the locales; what cannot be read fails below, as an incomplete type
			}
			if err := s.parse(fsys, dir); err != nil {
				return nil, err
			}
		}
	}
	for name, locales := range s.types {
		if locales[DefaultLocale] == nil {
			return nil, fmt.Errorf("templates: %s has no folder %s, which every other locale falls back to", name, DefaultLocale)
		}
	}
	return s, nil
}

func (s *Set) parse(fsys fs.FS, dir string) error {
	eventType, locale := path.Split(dir)
	eventType = path.Clean(eventType)
	tag, err := language.Parse(locale)
	if err != nil {
		return fmt.Errorf("templates: folder %s: %q is not a BCP 47 locale", dir, locale)
	}
	m := &mail{}
	if m.subject, err = parseText(fsys, dir+"/subject.txt"); err != nil {
		return err
	}
	if m.text, err = parseText(fsys, dir+"/body.txt"); err != nil {
		return err
	}
	b, err := fs.ReadFile(fsys, dir+"/body.html")
	if err != nil {
		return fmt.Errorf("templates: %w", err)
	}
	if m.html, err = htmltemplate.New(dir + "/body.html").Option("missingkey=error").Parse(string(b)); err != nil {
		return fmt.Errorf("templates: %w", err)
	}
	if s.types[eventType] == nil {
		s.types[eventType] = map[string]*mail{}
	}
	s.types[eventType][tag.String()] = m
	return nil
}

func parseText(fsys fs.FS, name string) (*texttemplate.Template, error) {
	b, err := fs.ReadFile(fsys, name)
	if err != nil {
		return nil, fmt.Errorf("templates: %w", err)
	}
	t, err := texttemplate.New(name).Option("missingkey=error").Parse(string(b))
	if err != nil {
		return nil, fmt.Errorf("templates: %w", err)
	}
	return t, nil
}

// Has reports whether there are templates for an event type, and for exactly that locale.
func (s *Set) Has(eventType, locale string) bool { return s.types[eventType][locale] != nil }

// Types returns the event types that have templates, in no order.
func (s *Set) Types() []string {
	var names []string
	for name := range s.types {
		names = append(names, name)
	}
	return names
}

// Render fills the templates of eventType in the locale asked for, else in its parent (ko-KR: ko, zh-TW: zh-Hant), else in
// its language (zh), else in DefaultLocale.
// An error means that nothing may be sent: there are no such templates, a variable is missing, or the subject has a
// control character (a line break there would add headers).
func (s *Set) Render(eventType, locale string, data map[string]any) (Content, error) {
	locales := s.types[eventType]
	if locales == nil {
		return Content{}, fmt.Errorf("there are no templates for event type %s", eventType)
	}
	used := match(locales, locale)
	m := locales[used]
	c := Content{Locale: used}
	for _, part := range []struct {
		out *string
		run func(io.Writer, any) error
	}{{&c.Subject, m.subject.Execute}, {&c.Text, m.text.Execute}, {&c.HTML, m.html.Execute}} {
		var b strings.Builder
		if err := part.run(&b, data); err != nil {
			return Content{}, err
		}
		*part.out = b.String()
	}
	c.Subject = strings.TrimSpace(c.Subject)
	return c, checkSubject(c.Subject)
}

func checkSubject(s string) error {
	if s == "" {
		return errors.New("the subject is empty")
	}
	if strings.ContainsFunc(s, unicode.IsControl) {
		return errors.New("the subject has a line break or another control character")
	}
	return nil
}

// match finds the folder for a locale. One that cannot be parsed is as good as none.
func match(locales map[string]*mail, locale string) string {
	tag, err := language.Parse(locale)
	base, _, _ := tag.Raw() // script and region are not wanted
	for ; err == nil && !tag.IsRoot(); tag = tag.Parent() {
		if locales[tag.String()] != nil {
			return tag.String()
		}
	}
	if err == nil && locales[base.String()] != nil {
		return base.String()
	}
	return DefaultLocale
}
