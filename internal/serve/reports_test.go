package serve

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/oncepost/oncepost/alerts"
	"github.com/oncepost/oncepost/worker"
)

// People hear the last word, however soon it comes: sending stops, goes on, and stops again.
func TestEachStopAlerts(t *testing.T) {
	var titles []string // a Send waits for the answer
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var alert struct{ Title string }
		if err := json.NewDecoder(r.Body).Decode(&alert); err != nil {
			t.Error(err)
		}
		titles = append(titles, alert.Title)
	}))
	t.Cleanup(hook.Close)
	quiet := slog.New(slog.DiscardHandler)
	a, err := alerts.New(alerts.Config{Webhook: hook.URL, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	report := stopped(Config{Alerter: a, Logger: quiet})
	s := worker.Stop{Scope: worker.ScopeAll, Class: "account_paused", Text: "SES has paused sending for this account"}
	for _, resumed := range []bool{false, true, false} {
		report(worker.StopReport{Stop: s, Resumed: resumed})
	}
	want := []string{"sending has stopped: account_paused", "sending goes on: it had stopped by account_paused", "sending has stopped: account_paused"}
	if !slices.Equal(titles, want) {
		t.Errorf("alerts %q", titles)
	}
}
