package devtemporal

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/server/common/log/tag"
)

// A call that comes before the frontend is ready is no error of the start; any other one is, and later this one too.
func TestOnlyEarlyCallsAreSilenced(t *testing.T) {
	tooEarly := serviceerror.NewUnavailable("Frontend is not healthy yet")
	for _, c := range []struct {
		name   string
		err    error
		ready  bool
		logged bool
	}{
		{"too early", tooEarly, false, false},
		{"another error at the start", errors.New("no such table"), false, true},
		{"not healthy any more", tooEarly, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out bytes.Buffer
			l := newLogger(slog.New(slog.NewTextHandler(&out, nil)))
			l.ready.Store(c.ready)
			l.With(tag.Operation("GetSystemInfo")).Error("service failures", tag.Error(c.err))
			if logged := strings.Contains(out.String(), c.err.Error()); logged != c.logged {
				t.Errorf("logged: %q", out.String())
			}
		})
	}
}
