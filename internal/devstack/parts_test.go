package devstack

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errBroken = errors.New("broken")

// untilStopped is a part that runs until it is asked to end.
func untilStopped(log *[]string, name string, err error) func(context.Context) error {
	return func(ctx context.Context) error {
		<-ctx.Done()
		*log = append(*log, name) // parts are stopped one after another
		return err
	}
}

// The last part started is the first one stopped, one that fails to stop holds up no other, and a second stop says the
// same without stopping again.
func TestPartsStopInOrder(t *testing.T) {
	var log []string
	p := newParts()
	p.run("database", untilStopped(&log, "database", nil))
	p.run("Temporal", untilStopped(&log, "Temporal", errBroken))
	p.add("", func() error { log = append(log, "client"); return nil })
	p.run("relay", untilStopped(&log, "relay", nil))
	var out strings.Builder
	err := p.stop(newProgress(&out))
	if !errors.Is(err, errBroken) || !strings.Contains(err.Error(), "stop Temporal") {
		t.Errorf("error %v", err)
	}
	if want := []string{"relay", "client", "Temporal", "database"}; !slices.Equal(log, want) {
		t.Errorf("stopped %v, want %v", log, want)
	}
	if strings.Count(out.String(), "\n") != 3 || !strings.Contains(out.String(), "with an error") {
		t.Errorf("it says:\n%s", &out)
	}
	if again := p.stop(newProgress(io.Discard)); !errors.Is(again, errBroken) || len(log) != 4 {
		t.Errorf("a second stop: %v, %v", again, log)
	}
	if p.err() != nil {
		t.Errorf("a part that was stopped counts as dead: %v", p.err())
	}
}

// The first part that ends by itself is the cause; what dies after it is not.
func TestPartDies(t *testing.T) {
	p := newParts()
	p.run("database", func(context.Context) error { return errBroken })
	<-p.dead
	p.died("relay", nil)
	if err := p.stop(newProgress(io.Discard)); err != nil {
		t.Errorf("the death is told twice: %v", err)
	}
	if err := p.err(); !errors.Is(err, errBroken) || !strings.Contains(err.Error(), "database died") {
		t.Errorf("cause %v", err)
	}
}

// A part must not end without being asked to, not even without an error.
func TestPartEndsByItself(t *testing.T) {
	p := newParts()
	p.run("worker", func(context.Context) error { return nil })
	<-p.dead
	if err := p.err(); err == nil || !strings.Contains(err.Error(), "worker died") {
		t.Errorf("cause %v", err)
	}
}
