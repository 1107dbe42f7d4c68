package sesstandin

import (
	"bytes"
	"crypto/rand"
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"strings"
	"time"
)

//go:embed page
var pageFiles embed.FS

// pages is the inbox. All that comes out of a mail goes through html/template's escaping; the
// HTML of a mail is a document of its own, see mailHTML.
type pages struct {
	server *Server
	tmpl   *template.Template
	style  template.CSS
	script template.JS
}

func newPages(s *Server) (*pages, error) {
	p := &pages{server: s}
	var err error
	p.tmpl, err = template.New("").Funcs(template.FuncMap{
		"clock": func(t time.Time) string { return p.clock(t) },
		"full":  func(t time.Time) string { return t.Local().Format("Mon, 2 Jan 2006, 15:04:05.000 MST") },
		"iso":   func(t time.Time) string { return t.Format(time.RFC3339Nano) },
		"list":  func(s []string) string { return strings.Join(s, ", ") },
		"size":  humanSize,
	}).ParseFS(pageFiles, "page/*.html")
	if err != nil {
		return nil, fmt.Errorf("inbox templates: %w", err)
	}
	style, err := pageFiles.ReadFile("page/style.css")
	if err != nil {
		return nil, fmt.Errorf("inbox style: %w", err)
	}
	script, err := pageFiles.ReadFile("page/live.js")
	if err != nil {
		return nil, fmt.Errorf("inbox script: %w", err)
	}
	p.style, p.script = template.CSS(style), template.JS(script)
	return p, nil
}

// frame is what every page needs besides its own data.
type frame struct {
	Nonce  string
	Title  string
	Style  template.CSS
	Script template.JS // empty: the page has none
	Page   any
}

// render answers a whole page under a policy that loads nothing from anywhere else.
func (p *pages) render(w http.ResponseWriter, name string, f frame) {
	f.Nonce, f.Style = rand.Text(), p.style
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'nonce-"+f.Nonce+"'; script-src 'nonce-"+f.Nonce+
		"'; connect-src 'self'; frame-src 'self'; img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	p.execute(w, name, f)
}

// execute renders into memory first: half a page would look like a whole one.
func (p *pages) execute(w http.ResponseWriter, name string, data any) {
	var b bytes.Buffer
	if err := p.tmpl.ExecuteTemplate(&b, name, data); err != nil {
		p.server.log.Error("inbox page", "template", name, "error", err)
		http.Error(w, "The page could not be rendered; see the log.", http.StatusInternalServerError)
		return
	}
	harden(w.Header())
	p.server.write(w, http.StatusOK, "text/html; charset=utf-8", b.Bytes())
}

func harden(h http.Header) {
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
}

// clock shows a time of today without its date.
func (p *pages) clock(t time.Time) string {
	t, now := t.Local(), p.server.cfg.Now().Local()
	if t.Year() == now.Year() && t.YearDay() == now.YearDay() {
		return t.Format("15:04:05")
	}
	return t.Format("2 Jan 15:04")
}

func humanSize(n int) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d B", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}
