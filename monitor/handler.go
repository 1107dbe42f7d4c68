package monitor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Site is what a process serves of itself.
type Site struct {
	Watch *Watch
	// UI is the address of Temporal's web UI, for links. Default: none.
	UI string
	// Gatherer is what /metrics shows.
	Gatherer prometheus.Gatherer
	// Ready says why this process would not do its work now; nil if it would. Default: the last look is not long ago, and both
	// servers answered.
	Ready func() error
}

// Handler serves the status page on /, the state on /status.json, /metrics, /healthz (the process lives) and /readyz (it would
// work).
func (s Site) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.page)
	mux.HandleFunc("GET /status.json", s.json)
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.Gatherer, promhttp.HandlerOpts{EnableOpenMetrics: true}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { answer(w, s.alive()) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { answer(w, errors.Join(s.alive(), s.ready())) })
	return mux
}

// answer answers a probe. Anything but 200 is a no.
func answer(w http.ResponseWriter, err error) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprintln(w, strings.ReplaceAll(err.Error(), "\n", "; ")) // the prober may have gone
		return
	}
	fmt.Fprintln(w, "ok")
}

// deadAfter is how long a look may take and wait at most, all time-outs included.
const deadAfter = time.Minute

// alive says why the process should be started anew: it hangs. That a server is away is no reason.
func (s Site) alive() error {
	if at := s.Watch.ended.Load(); at != nil && time.Since(*at) > deadAfter {
		return fmt.Errorf("the last look at the pipeline ended %s ago", time.Since(*at).Round(time.Second))
	}
	return nil
}

func (s Site) ready() error {
	state := s.Watch.State()
	if state == nil {
		return errors.New("it has not looked yet")
	}
	var errs []error
	for _, part := range []struct {
		name string
		Part
	}{{"the database", state.Database}, {"Temporal", state.Temporal}} {
		if !part.OK {
			errs = append(errs, fmt.Errorf("%s: %s", part.name, part.Error))
		}
	}
	if s.Ready != nil {
		errs = append(errs, s.Ready())
	}
	return errors.Join(errs...)
}

func (s Site) page(w http.ResponseWriter, _ *http.Request) {
	state := s.Watch.State()
	if state == nil {
		http.Error(w, "The first look at the pipeline is under way.", http.StatusServiceUnavailable)
		return
	}
	var b bytes.Buffer
	if err := pageTemplate.Execute(&b, newPage(state, &s.Watch.history, s.Watch.cfg.Thresholds, s.UI)); err != nil {
		http.Error(w, "the page cannot be made: "+err.Error(), http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
	h.Set("Cache-Control", "no-store")
	w.Write(b.Bytes()) //nolint:errcheck // the reader may have gone
}

func (s Site) json(w http.ResponseWriter, _ *http.Request) {
	state := s.Watch.State()
	if state == nil {
		http.Error(w, "The first look at the pipeline is under way.", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.Encode(state) //nolint:errcheck,errchkjson // the reader may have gone; a State holds what JSON can say
}

// Look reads the state once, for a command: with what the processes that live have seen, since one look sees no duration.
func Look(ctx context.Context, cfg Config) (*State, error) {
	w, err := NewWatch(cfg)
	if err != nil {
		return nil, err
	}
	s := w.read(ctx)
	facts, _ := Facts(s, w.cfg.Thresholds) // what cannot be seen is shown as not known, and CondUnreadable says so
	for _, f := range facts {
		if caused(f.Name, facts) || f.For > 0 && f.For < f.Threshold {
			continue
		}
		s.Conditions = append(s.Conditions, Condition{
			Name: f.Name, Subject: f.Subject, Title: kinds[f.Name].title, Detail: f.Detail, For: min(f.For, remembered).Seconds(),
		})
	}
	return s, nil
}
