package monitor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/oncepost/oncepost/alerts"
)

// ByAlert returns a Config.Tell that sends alerts; nil where there is no Alerter.
func ByAlert(a *alerts.Alerter) func(ctx context.Context, n Notice) error {
	if a == nil {
		return nil
	}
	return func(ctx context.Context, n Notice) error {
		err := a.Send(ctx, n.alert())
		var failed *alerts.Error
		if errors.As(err, &failed) && failed.Reached() {
			return nil // the Alerter has logged what went wrong on the way
		}
		return err
	}
}

// alert puts a notice into words.
func (n Notice) alert() alerts.Alert {
	fields := map[string]string{"condition": n.Name, "database": n.Database, "namespace": n.Namespace}
	if n.Subject != "" {
		fields["subject"] = n.Subject
	}
	title, detail := n.Title, n.Detail+"\n\n"+n.Do+"\n\ndocs/runbook.md#"+n.Name+" says more."
	if n.Over {
		title, detail = "over: "+n.Title, "It lasted "+n.Lasted.Round(time.Second).String()+", as far as was seen."
	}
	if n.Subject != "" {
		title += " (" + n.Subject + ")"
	}
	return alerts.Alert{
		Title: "oncepost: " + title, Detail: detail, Fields: fields,
		Key: fmt.Sprintf("%s/%s %d", n.Name, n.Subject, time.Now().UnixNano()), // told once, by agreement: none is a repetition
	}
}

// DatabaseAway is what a process tells that waits for the database before it can watch: that it is away, or is over.
func DatabaseAway(detail string, lasted time.Duration, over bool) Notice {
	s := State{}
	return s.notice(Condition{Name: CondDatabase, Detail: detail, For: lasted.Seconds()}, over)
}
