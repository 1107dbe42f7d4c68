package workflows

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"github.com/oncepost/oncepost/activities"
)

const card = `{"subscription_id":"sub_9","payment_failed_id":"payment_failed:sub_9"}`

// register runs CardRegistered, where the workflow that it answers is there from the nth look on (0: never).
func register(t *testing.T, payload string, check error, nth int) (m Matching, looks int, took time.Duration, err error) {
	t.Helper()
	env := (&sends{}).environment()
	env.RegisterWorkflow(CardRegistered)
	env.RegisterActivityWithOptions(func(context.Context, string, converter.RawValue) error { return check }, activity.RegisterOptions{Name: "Check"})
	env.OnSignalExternalWorkflow(mock.Anything, "payment_failed:sub_9", "", SignalCardRegistered, nil).Return(
		func(string, string, string, string, any) error {
			if looks++; nth == 0 || looks < nth {
				return &temporal.UnknownExternalWorkflowExecutionError{}
			}
			return nil
		})
	began := env.Now()
	env.ExecuteWorkflow(CardRegistered, raw(payload), envelope("card_registered"))
	if err = env.GetWorkflowError(); err == nil {
		err = env.GetWorkflowResult(&m)
	}
	return m, looks, env.Now().Sub(began), err
}

func TestCardRegisteredTellsThePaymentItAnswers(t *testing.T) {
	for _, nth := range []int{1, 2, 10} {
		m, looks, _, err := register(t, card, nil, nth)
		if err != nil || !m.Matched || looks != nth {
			t.Errorf("there at look %d: %+v after %d, %v", nth, m, looks, err)
		}
	}
}

func TestCardRegisteredGivesUpAfterTenMinutes(t *testing.T) {
	m, looks, took, err := register(t, card, nil, 0)
	if err != nil || m.Matched || took < matchFor || took > matchFor+matchMost || looks < 20 {
		t.Errorf("%+v after %s and %d looks, %v", m, took, looks, err)
	}
}

func TestCardRegisteredChecksItsPayload(t *testing.T) {
	bad := temporal.NewNonRetryableApplicationError("/ lacks payment_failed_id", activities.TypeInvalidPayload, nil)
	if _, looks, _, err := register(t, `{}`, bad, 1); err == nil || !strings.Contains(err.Error(), "lacks payment_failed_id") || looks != 0 {
		t.Errorf("%v, %d looks", err, looks)
	}
}
