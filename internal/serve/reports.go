package serve

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/oncepost/oncepost/activities"
	"github.com/oncepost/oncepost/alerts"
	"github.com/oncepost/oncepost/worker"
)

const whatToDo = `The message waits until somebody says what is true, in the Temporal web UI (its workflow shows what is at stake) or with

    oncepost resolve MESSAGE-ID sent|resend --by NAME --why REASON

OncepostState = 'parked' AND ExecutionStatus = 'Running' lists all that wait.`

// parked tells of an effect that waits for a person, by the log and by an alert.
func parked(cfg Config) func(context.Context, activities.Parked) error {
	log := worker.LogParked(cfg.Logger)
	if cfg.Alerter == nil {
		return log
	}
	return func(ctx context.Context, p activities.Parked) error {
		err := log(ctx, p)
		fields := map[string]string{"message_id": p.MessageID, "event_type": p.EventType, "step": p.Step, "class": p.Class}
		if p.Recipient > 0 {
			fields["recipient"] = strconv.Itoa(p.Recipient)
		}
		_ = cfg.Alerter.Send(ctx, alerts.Alert{ // the Alerter has logged its error; a retry would only be counted (its docs)
			Title:  p.EventType + " is parked: a person must say what has happened (" + p.Class + ")",
			Detail: p.What + "\n\n" + whatToDo,
			Fields: fields, // not in the key: an outage that parks a thousand is one alert
		})
		return err
	}
}

// stopped tells that sending has stopped in this process, and that it goes on, by the log and by an alert.
func stopped(cfg Config) func(worker.StopReport) {
	log := worker.LogStop(cfg.Logger)
	if cfg.Alerter == nil {
		return log
	}
	return func(r worker.StopReport) {
		log(r)
		title, detail := "sending has stopped: "+r.Class, whatStopped
		if r.Resumed {
			title, detail = "sending goes on: it had stopped by "+r.Class, "The mails that waited are being sent."
		}
		_ = cfg.Alerter.Send(context.Background(), alerts.Alert{ // bounded in time; the Alerter has logged its error
			Title: title, Detail: r.Text + "\n\n" + detail, Fields: map[string]string{"scope": r.Scope, "class": r.Class, "by": r.By},
			Key: fmt.Sprintf("%s %d", title, time.Now().UnixNano()), // each is told once by the governor: none is a repetition
		})
	}
}

const whatStopped = `No mail is lost or failed: all wait, and oncepost tries by itself whether sending is possible again, unless a person has stopped it.

    oncepost sending status|resume`
