package activities_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/oncepost/oncepost/activities"
	"github.com/oncepost/oncepost/schemas"
	"github.com/oncepost/oncepost/workflows"
)

// Payments is a service's own activity. It is registered with worker.Config{Own: []any{&Payments{…}}}.
type Payments struct{ Client *http.Client }

// Charge charges a card once, whatever becomes of its worker.
func (p *Payments) Charge(ctx context.Context, subscription string) (string, error) {
	return activities.Once(ctx, "charge", activities.Hold, func(ctx context.Context) (string, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://payments.example/charges/"+subscription, http.NoBody)
		if err != nil {
			return "", err // nothing has left: it is tried again
		}
		resp, err := p.Client.Do(req)
		if err != nil {
			return "", activities.Unsure(err) // the card may have been charged
		}
		defer resp.Body.Close()
		switch {
		case resp.StatusCode == http.StatusCreated:
			return resp.Header.Get("Location"), nil
		case resp.StatusCode >= 500:
			return "", activities.Unsure(errors.New(resp.Status))
		}
		return "", errors.New(resp.Status) // refused: not charged
	})
}

// ChargeDue is the workflow of an event type of the service's own.
func ChargeDue(ctx workflow.Context, payload struct {
	Subscription string `json:"subscription_id"`
}, msg schemas.Envelope,
) (charge string, err error) {
	parking, err := workflows.NewParking(ctx, msg)
	if err != nil {
		return "", err
	}
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
	err = parking.Guard(ctx, "charge", func(ctx workflow.Context) error {
		var p *Payments
		return workflow.ExecuteActivity(ctx, p.Charge, payload.Subscription).Get(ctx, &charge)
	})
	return charge, err
}

func ExampleOnce() {
	types := workflows.Builtin().With(workflows.Type{Name: "charge_due", Workflow: ChargeDue, NoMail: true})
	fmt.Println(types.Validate())
	// Output: <nil>
}
