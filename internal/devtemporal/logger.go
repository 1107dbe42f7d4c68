package devtemporal

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"

	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/log/tag"
)

// logger passes the server's warnings and errors on to slog.
type logger struct {
	to    *slog.Logger
	quiet *atomic.Bool // set while the server stops, when it complains that its own parts are going away
	ready *atomic.Bool // set once Start has seen it work
}

// fatal is what the server wanted to end the process with. Start turns it into an error.
type fatal struct{ text string }

func (f fatal) Error() string { return f.text }

func newLogger(to *slog.Logger) *logger {
	return &logger{to: to.With("component", "temporal"), quiet: new(atomic.Bool), ready: new(atomic.Bool)}
}

const (
	// expected begins what the server warns of at each start, because of settings that are meant.
	expected = "HTTP API port has not been set"
	// early is the error of a call, ours or of the server's own parts, that came before its frontend was ready. Start waits
	// for that; of a server that has been ready it would be news.
	early = "Frontend is not healthy yet"
)

func (l *logger) log(level slog.Level, msg string, tags []tag.Tag) {
	tooEarly := func(t tag.Tag) bool { return t.Key() == "error" && fmt.Sprint(t.Value()) == early }
	switch {
	case l.quiet.Load(), strings.HasPrefix(msg, expected):
	case !l.ready.Load() && slices.ContainsFunc(tags, tooEarly):
	default:
		l.to.LogAttrs(context.Background(), level, msg, attrs(tags)...)
	}
}

func attrs(tags []tag.Tag) []slog.Attr {
	all := make([]slog.Attr, len(tags))
	for i, t := range tags {
		all[i] = slog.Any(t.Key(), t.Value())
	}
	return all
}

func (l *logger) Debug(string, ...tag.Tag)           {}
func (l *logger) Info(string, ...tag.Tag)            {}
func (l *logger) Warn(msg string, tags ...tag.Tag)   { l.log(slog.LevelWarn, msg, tags) }
func (l *logger) Error(msg string, tags ...tag.Tag)  { l.log(slog.LevelError, msg, tags) }
func (l *logger) DPanic(msg string, tags ...tag.Tag) { l.log(slog.LevelError, msg, tags) }
func (l *logger) Panic(msg string, tags ...tag.Tag)  { panic(fatal{describe(msg, tags)}) }
func (l *logger) Fatal(msg string, tags ...tag.Tag)  { panic(fatal{describe(msg, tags)}) }
func (l *logger) With(tags ...tag.Tag) log.Logger {
	args := make([]any, len(tags))
	for i, a := range attrs(tags) {
		args[i] = a
	}
	return &logger{to: l.to.With(args...), quiet: l.quiet, ready: l.ready}
}

func describe(msg string, tags []tag.Tag) string {
	for _, t := range tags {
		msg += fmt.Sprintf(" %s=%v", t.Key(), t.Value())
	}
	return msg
}
