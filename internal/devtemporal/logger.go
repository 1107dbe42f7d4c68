package devtemporal

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"

	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/log/tag"
)

// logger passes the server's warnings and errors on to slog.
type logger struct {
	to    *slog.Logger
	quiet *atomic.Bool // set while the server stops, when it complains that its own parts are going away
}

// fatal is what the server wanted to end the process with. Start turns it into an error.
type fatal struct{ text string }

func (f fatal) Error() string { return f.text }

func newLogger(to *slog.Logger) *logger {
	return &logger{to: to.With("component", "temporal"), quiet: new(atomic.Bool)}
}

// expected begins what the server warns of at each start, because of settings that are meant.
const expected = "HTTP API port has not been set"

func (l *logger) log(level slog.Level, msg string, tags []tag.Tag) {
	if !l.quiet.Load() && !strings.HasPrefix(msg, expected) {
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
	return &logger{to: l.to.With(args...), quiet: l.quiet}
}

func describe(msg string, tags []tag.Tag) string {
	for _, t := range tags {
		msg += fmt.Sprintf(" %s=%v", t.Key(), t.Value())
	}
	return msg
}
