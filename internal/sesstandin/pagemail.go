package sesstandin

import (
	"net/http"
	"slices"
	"strings"
)

// maxShownSource bounds the source view; the download is whole.
const maxShownSource = 256 << 10

type mailPage struct {
	Mail     Mail
	View     string // html, text, headers, source
	Views    []view
	Workflow string // link, or empty
	Tags     []Header
	Source   string
	Cut      bool // Source is not whole
}

type view struct{ Name, Label string }

func (p *pages) mail(w http.ResponseWriter, r *http.Request) {
	m, ok := p.server.store.find(r.PathValue("id"))
	if !ok {
		http.Error(w, "There is no such mail (any more).", http.StatusNotFound)
		return
	}
	page := mailPage{Mail: m, View: r.URL.Query().Get("view"), Views: views(m)}
	if !slices.ContainsFunc(page.Views, func(v view) bool { return v.Name == page.View }) {
		page.View = page.Views[0].Name
	}
	if p.server.cfg.WorkflowURL != "" && m.MessageID != "" {
		page.Workflow = expandWorkflowURL(p.server.cfg.WorkflowURL, m.MessageID)
	}
	for name, value := range m.Tags {
		page.Tags = append(page.Tags, Header{Name: name, Value: value})
	}
	slices.SortFunc(page.Tags, func(a, b Header) int { return strings.Compare(a.Name, b.Name) })
	if page.View == "source" {
		shown := m.Raw[:min(len(m.Raw), maxShownSource)]
		page.Source, page.Cut = strings.ToValidUTF8(string(shown), "\uFFFD"), len(shown) < len(m.Raw)
	}
	title := m.Subject
	if title == "" {
		title = "(no subject)"
	}
	p.render(w, "mail.html", frame{Title: title, Page: page})
}

// views are the ways to look at a mail, the best first.
func views(m Mail) []view {
	var v []view
	if m.HTML != "" {
		v = append(v, view{"html", "HTML"})
	}
	if m.Text != "" || m.HTML == "" {
		v = append(v, view{"text", "Text"})
	}
	return append(v, view{"headers", "Headers"}, view{"source", "Source"})
}

// mailHTML is the HTML of a mail as it came, for a sandboxed frame. The policy holds however the
// document is opened: no scripts, no forms, an origin of its own, and nothing loaded from anywhere,
// so that looking at a mail tells nobody.
func (p *pages) mailHTML(w http.ResponseWriter, r *http.Request) {
	m, ok := p.server.store.find(r.PathValue("id"))
	if !ok || m.HTML == "" {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Security-Policy", "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:; "+
		"form-action 'none'; base-uri 'none'; frame-ancestors 'self'")
	harden(w.Header())
	p.server.write(w, http.StatusOK, "text/html; charset=utf-8", []byte(m.HTML))
}

func (p *pages) mailRaw(w http.ResponseWriter, r *http.Request) {
	m, ok := p.server.store.find(r.PathValue("id"))
	if !ok {
		http.NotFound(w, r)
		return
	}
	harden(w.Header())
	w.Header().Set("Content-Disposition", `attachment; filename="`+m.ID+`.eml"`)
	p.server.write(w, http.StatusOK, "message/rfc822", m.Raw)
}
