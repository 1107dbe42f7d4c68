package sesstandin

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// pageSize is how many mails the list shows at once.
const pageSize = 100

type inboxPage struct {
	Live    livePage
	Presets []FaultPreset
}

// livePage is the part of the inbox that renews itself.
type livePage struct {
	Mails    []Mail
	Total    int
	Query    string
	Found    int
	Newer    string // links, empty on the first and last page
	Older    string
	Faults   []FaultStatus
	Sent     string
	Quota    string
	Endpoint string
}

func (p *pages) inbox(w http.ResponseWriter, r *http.Request) {
	p.render(w, "inbox.html", frame{Title: "Inbox", Script: p.script, Page: inboxPage{Live: p.livePage(r), Presets: Presets()}})
}

func (p *pages) live(w http.ResponseWriter, r *http.Request) {
	p.execute(w, "live.html", p.livePage(r))
}

func (p *pages) livePage(r *http.Request) livePage {
	query := strings.TrimSpace(r.URL.Query().Get("q"))
	all := p.server.Mails()
	found := search(all, query)
	slices.Reverse(found)
	page, err := strconv.Atoi(r.URL.Query().Get("page"))
	if err != nil {
		page = 1 // absent, or not a number: the first page
	}
	last := max(1, (len(found)+pageSize-1)/pageSize)
	page = min(max(page, 1), last)

	quota := p.server.quota()
	l := livePage{
		Mails:    found[(page-1)*pageSize : min(page*pageSize, len(found))],
		Total:    len(all),
		Query:    query,
		Found:    len(found),
		Faults:   p.server.Faults(),
		Sent:     strconv.FormatFloat(quota.SentLast24Hours, 'f', -1, 64),
		Quota:    "no limit",
		Endpoint: "http://" + r.Host,
	}
	if quota.Max24HourSend >= 0 {
		l.Quota = strconv.FormatFloat(quota.Max24HourSend, 'f', -1, 64)
	}
	if page > 1 {
		l.Newer = pageLink(query, page-1)
	}
	if page < last {
		l.Older = pageLink(query, page+1)
	}
	return l
}

func pageLink(query string, page int) string {
	v := url.Values{"page": {strconv.Itoa(page)}}
	if query != "" {
		v.Set("q", query)
	}
	return "/?" + v.Encode()
}

// search returns the mails that contain the words in what the list shows of them. It may reuse
// the slice.
func search(mails []Mail, query string) []Mail {
	if query == "" {
		return mails
	}
	query = strings.ToLower(query)
	return slices.DeleteFunc(mails, func(m Mail) bool {
		shown := strings.Join([]string{m.Subject, strings.Join(m.To, " "), m.MessageID, m.EventType, m.From}, "\n")
		return !strings.Contains(strings.ToLower(shown), query)
	})
}

// changeFaults is what the buttons of the inbox do: inject a preset, or clear.
func (p *pages) changeFaults(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxControlBody)
	if name := r.PostFormValue("preset"); name != "" {
		fault, err := Preset(name)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if r.PostFormValue("once") != "" {
			fault.Times = 1
		}
		if _, err := p.server.Inject(fault); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
	} else {
		p.server.ClearFaults()
	}
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

// Summary says in a few words what a fault does.
func (f Fault) Summary() string {
	var parts []string
	for _, part := range []struct {
		has  bool
		text string
	}{
		{f.Delay > 0, "waits before deciding"},
		{f.AnswerDelay > 0, "accepts, then answers late"},
		{f.DropBefore, "closes the connection, not accepted"},
		{f.DropAfter, "accepts, then closes the connection"},
		{f.Garbage, "accepts, then answers garbage"},
		{f.QuotaExhausted, "daily quota used up"},
		{f.MaxPerSecond > 0, fmt.Sprintf("at most %v per second", f.MaxPerSecond)},
		{f.MaxPerDay > 0, fmt.Sprintf("at most %v per day", f.MaxPerDay)},
	} {
		if part.has {
			parts = append(parts, part.text)
		}
	}
	if f.Error != nil {
		parts = append(parts, f.Error.Error())
	}
	if f.Match != "" {
		parts = append(parts, "only for "+f.Match)
	}
	return strings.Join(parts, " · ")
}
