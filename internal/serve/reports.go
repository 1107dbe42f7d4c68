package serve

import (
	"context"
	"strconv"

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
