package devstack

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"
)

// progress tells a person what happens. Two parts may start at once.
type progress struct {
	mu sync.Mutex
	w  io.Writer
}

func newProgress(w io.Writer) *progress { return &progress{w: w} }

func (p *progress) say(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.w, format+"\n", args...)
}

// Write passes on the lines of a download.
func (p *progress) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.w.Write(b)
}

// step runs one step of the start and says how long it took.
func (p *progress) step(ctx context.Context, name string, f func(context.Context) (detail string, err error)) error {
	began := time.Now()
	detail, err := f(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	p.say("  %-11s %6s  %s", name, short(time.Since(began)), detail)
	return nil
}

func (p *progress) stopped(name string, took time.Duration, err error) {
	if name == "" { // too small to be worth a line
		return
	}
	end := "stopped"
	if err != nil {
		end = "stopped, with an error"
	}
	p.say("  %-11s %6s  %s", name, short(took), end)
}

func short(d time.Duration) string { return fmt.Sprintf("%.1fs", d.Seconds()) }
