package workflows

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/oncepost/oncepost/activities"
	"github.com/oncepost/oncepost/schemas"
)

// sends records what the activity Send is asked for, and answers.
type sends struct {
	mu       sync.Mutex
	inputs   []activities.SendInput
	payloads []string
	times    []time.Time
	env      *testsuite.TestWorkflowEnvironment
	// answer may be nil: every send succeeds.
	answer func(in activities.SendInput, attempt int) error
	// unknown may be nil: every send is known.
	unknown func(in activities.SendInput, attempt int) *activities.Unknown
	settled []activities.SendInput
	// authorised, reports: what Guard and Parking ask for.
	authorised []activities.SendInput
	reports    []activities.Parked
	reportErr  error
}

func (s *sends) Authorise(_ context.Context, in activities.SendInput) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.authorised = append(s.authorised, in)
	return nil
}

func (s *sends) Settle(_ context.Context, in activities.SendInput) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settled = append(s.settled, in)
	return nil
}

func (s *sends) Send(_ context.Context, in activities.SendInput, payload converter.RawValue) (activities.SendResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inputs = append(s.inputs, in)
	s.payloads = append(s.payloads, string(payload.Payload().GetData()))
	s.times = append(s.times, s.env.Now())
	attempt := 0
	for _, earlier := range s.inputs {
		if earlier.To == in.To {
			attempt++
		}
	}
	if s.answer != nil {
		if err := s.answer(in, attempt); err != nil {
			return activities.SendResult{}, err
		}
	}
	if s.unknown != nil {
		if u := s.unknown(in, attempt); u != nil {
			return activities.SendResult{Unknown: u}, nil
		}
	}
	return activities.SendResult{SESMessageID: "ses of " + in.To.Email, Locale: "en"}, nil
}

// emails are the recipients in the order of the alphabet.
func (s *sends) emails() []string {
	var all []string
	for _, in := range s.inputs {
		all = append(all, in.To.Email)
	}
	slices.Sort(all)
	return all
}

// environment makes the SDK's test environment, with s as its activity.
func (s *sends) environment() *testsuite.TestWorkflowEnvironment {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	s.env = suite.NewTestWorkflowEnvironment()
	s.env.SetTestTimeout(30 * time.Second)
	s.env.RegisterActivityWithOptions(s.Send, activity.RegisterOptions{Name: "Send"})
	s.env.RegisterActivityWithOptions(s.Settle, activity.RegisterOptions{Name: "Settle"})
	s.env.RegisterActivityWithOptions(s.Authorise, activity.RegisterOptions{Name: "Authorise"})
	s.env.RegisterActivity(&activities.Reports{Parked: func(_ context.Context, p activities.Parked) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.reports = append(s.reports, p)
		return s.reportErr
	}})
	return s.env
}

// run runs a workflow as the relay starts it: the payload's bytes, and the envelope.
func run(t *testing.T, s *sends, workflow any, payload string, msg schemas.Envelope) (Result, error) {
	t.Helper()
	s.environment().RegisterWorkflow(workflow)
	s.env.ExecuteWorkflow(workflow, raw(payload), msg)
	if !s.env.IsWorkflowCompleted() {
		t.Fatal("the workflow did not complete")
	}
	if err := s.env.GetWorkflowError(); err != nil {
		return Result{}, err
	}
	var r Result
	if err := s.env.GetWorkflowResult(&r); err != nil {
		t.Fatal(err)
	}
	return r, nil
}

func raw(payload string) converter.RawValue {
	return converter.NewRawValue(&commonpb.Payload{
		Metadata: map[string][]byte{converter.MetadataEncoding: []byte(converter.MetadataEncodingJSON)}, Data: []byte(payload),
	})
}

func envelope(eventType string) schemas.Envelope {
	return schemas.Envelope{MessageID: "natural:key", EventType: eventType, Priority: 3, CreatedAt: "2026-11-01T00:00:00Z"}
}

func TestSendMail(t *testing.T) {
	const payload = "{\"company_id\":9007199254740993,\n \"z\":1, \"email\":\"first@example.com\", \"a\":2 } "
	s := &sends{}
	r, err := run(t, s, SendMail, payload, envelope("welcome"))
	if err != nil {
		t.Fatal(err)
	}
	if want := (Send{Recipient: 1, SESMessageID: "ses of first@example.com"}); len(r.Sends) != 1 || r.Sends[0] != want {
		t.Errorf("result %+v, want %+v", r, want)
	}
	want := activities.SendInput{MessageID: "natural:key", EventType: "welcome", Step: "mail", To: activities.Address{Email: "first@example.com"}}
	if len(s.inputs) != 1 || s.inputs[0] != want {
		t.Errorf("sent %+v, want %+v", s.inputs, want)
	}
	if s.payloads[0] != payload { // scenario 15
		t.Errorf("the activity got %q, want %q", s.payloads[0], payload)
	}
}

// The recipient is the field that the schema checks, and no other of a similar name. (scenario 16)
func TestRecipientIsReadByItsExactName(t *testing.T) {
	s := &sends{}
	if _, err := run(t, s, SendMail, `{"EMAIL":"upper@example.com","email":"right@example.com","Email":"other@example.com"}`, envelope("welcome")); err != nil {
		t.Fatal(err)
	}
	if _, err := run(t, s, PaymentFailed, `{"Admins":[{"email":"upper@example.com"}],
"remind_after":"0s","admins":[{"email":"admin@example.com","Email":"other@example.com","name":"A","NAME":"B"}],"ADMINS":[]}`, envelope("payment_failed")); err != nil {
		t.Fatal(err)
	}
	if got, want := s.emails(), []string{"admin@example.com", "right@example.com"}; !slices.Equal(got, want) {
		t.Errorf("sent to %v, want %v", got, want)
	}
	if name := s.inputs[1].To.Name; name != "A" {
		t.Errorf("the admin's name is %q, want A", name)
	}
}

// An address that stands twice gets one mail; the first name counts.
func TestPaymentFailedMailsEachAdminOnce(t *testing.T) {
	s := &sends{}
	r, err := run(t, s, PaymentFailed, `{"remind_after":"0s","admins":[{"email":"b@example.com","name":"B"},{"email":"a@example.com","name":"A"},
{"email":"b@example.com","name":"Other"},{"email":"c@example.com","name":"C"},{"email":"a@example.com","name":"A"}]}`, envelope("payment_failed"))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := s.emails(), []string{"a@example.com", "b@example.com", "c@example.com"}; !slices.Equal(got, want) {
		t.Errorf("sent to %v, want %v", got, want)
	}
	want := []Send{{Recipient: 1, SESMessageID: "ses of b@example.com"}, {Recipient: 2, SESMessageID: "ses of a@example.com"}, {Recipient: 3, SESMessageID: "ses of c@example.com"}}
	if !slices.Equal(r.Sends, want) {
		t.Errorf("result %+v, want %+v", r.Sends, want)
	}
	for _, in := range s.inputs {
		if in.To.Email == "b@example.com" && in.To.Name != "B" {
			t.Errorf("b's name is %q", in.To.Name)
		}
	}
}

// Nor does another letter case make another recipient; the first spelling is the one that is sent to.
func TestLetterCaseMakesNoSecondRecipient(t *testing.T) {
	s := &sends{}
	_, err := run(t, s, PaymentFailed, `{"remind_after":"0s","admins":[{"email":"Kim@Example.com","name":"Kim"},{"email":"Kim@example.COM","name":"K"},
{"email":"kim@example.com","name":"kim"},{"email":"lee@example.com","name":"Lee"}]}`, envelope("payment_failed"))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := s.emails(), []string{"Kim@Example.com", "lee@example.com"}; !slices.Equal(got, want) {
		t.Errorf("sent to %v, want %v", got, want)
	}
}

// A run from before that goes on as it began.
func TestARunFromBeforeFoldsNoLetterCase(t *testing.T) {
	s := &sends{}
	_, err := failedRun(t, s, `{"remind_after":"0s","admins":[{"email":"Kim@example.com"},{"email":"kim@example.com"}]}`, func(env *testsuite.TestWorkflowEnvironment) {
		env.OnGetVersion(changeFolding, workflow.DefaultVersion, 1).Return(workflow.DefaultVersion)
	})
	if err != nil || len(s.inputs) != 2 {
		t.Errorf("%d sends, %v; want both spellings", len(s.inputs), err)
	}
}

// Temporal ends a workflow whose sends carry more than 4 MiB together: a large payload is left in the history.
func TestLargePayloadIsNotRepeated(t *testing.T) {
	admins := `"remind_after":"0s","admins":[{"email":"a@example.com","name":"A"},{"email":"b@example.com","name":"B"}]`
	sized := func(n int) string {
		const head, tail = `{"more":"`, `",`
		return head + strings.Repeat("x", n-len(head)-len(tail)-len(admins)-1) + tail + admins + "}"
	}
	for size, want := range map[int]string{
		activities.MaxInline: sized(activities.MaxInline), activities.MaxInline + 1: "null", 1 << 20: "null",
	} {
		s := &sends{}
		if _, err := run(t, s, PaymentFailed, sized(size), envelope("payment_failed")); err != nil {
			t.Fatal(err)
		}
		if len(s.payloads) != 2 || s.payloads[0] != want || s.payloads[1] != want {
			t.Errorf("%d bytes: the activities did not get %.20s…", size, want)
		}
	}
}

const threeAdmins = `{"remind_after":"0s","admins":[{"email":"a@example.com","name":"A"},{"email":"b@example.com","name":"B"},{"email":"c@example.com","name":"C"}]}`

// A recipient who cannot get the mail keeps it from nobody else; the workflow then fails, and says what became of each.
func TestPaymentFailedWithOneBadRecipient(t *testing.T) {
	s := &sends{answer: func(in activities.SendInput, _ int) error {
		if in.To.Email == "b@example.com" {
			return temporal.NewNonRetryableApplicationError("the address is not valid", activities.TypeRejected, nil)
		}
		return nil
	}}
	_, err := run(t, s, PaymentFailed, threeAdmins, envelope("payment_failed"))
	if got, want := s.emails(), []string{"a@example.com", "b@example.com", "c@example.com"}; !slices.Equal(got, want) {
		t.Errorf("sent to %v, want each once", got)
	}
	var app *temporal.ApplicationError
	if !errors.As(err, &app) || app.Type() != activities.TypeRejected || !app.NonRetryable() {
		t.Fatalf("error %v", err)
	}
	if want := "1 of 3 mails cannot be sent: the address is not valid"; app.Message() != want {
		t.Errorf("text %q, want %q", app.Message(), want)
	}
	var r Result
	if err := app.Details(&r); err != nil {
		t.Fatal(err)
	}
	want := []Send{{Recipient: 1, SESMessageID: "ses of a@example.com"}, {Recipient: 2, Error: "the address is not valid"}, {Recipient: 3, SESMessageID: "ses of c@example.com"}}
	if !slices.Equal(r.Sends, want) {
		t.Errorf("details %+v, want %+v", r.Sends, want)
	}
}

// A failing send is tried again, and repeats no mail that has gone out.
func TestSendsAreRetried(t *testing.T) {
	const attempts = 9 // the test environment gives up after 10
	s := &sends{answer: func(in activities.SendInput, attempt int) error {
		if in.To.Email == "b@example.com" && attempt < attempts {
			return errors.New("throttled")
		}
		return nil
	}}
	if _, err := run(t, s, PaymentFailed, threeAdmins, envelope("payment_failed")); err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, email := range s.emails() {
		count[email]++
	}
	if count["a@example.com"] != 1 || count["b@example.com"] != attempts || count["c@example.com"] != 1 {
		t.Errorf("attempts %v", count)
	}
}

// An outage of days fails nothing: no bound on attempts, nor on the time that they take together.
func TestSendsAreNotBounded(t *testing.T) {
	o := sendOptions("mail", 1, 1)
	if o.ScheduleToCloseTimeout != 0 || o.ScheduleToStartTimeout != 0 || o.RetryPolicy.MaximumAttempts != 0 {
		t.Errorf("options %+v bound the attempts", o)
	}
	if o.StartToCloseTimeout != 30*time.Second || o.RetryPolicy.MaximumInterval > 5*time.Minute || o.TaskQueue != schemas.SendTaskQueue {
		t.Errorf("options %+v", o)
	}
}

// A payload that names no recipient is a visible failure: it would be a success without a mail otherwise.
func TestUnreadablePayloads(t *testing.T) {
	for _, c := range []struct {
		name     string
		workflow any
		payload  string
	}{
		{"no JSON", SendMail, `secret`},
		{"an array", SendMail, `["secret"]`},
		{"a number for the address", SendMail, `{"email":123456789}`},
		{"no admins", PaymentFailed, `{"subscription_id":"secret"}`},
		{"no admins in the list", PaymentFailed, `{"remind_after":"0s","admins":[]}`},
		{"null for admins", PaymentFailed, `{"admins":null}`},
		{"a string for admins", PaymentFailed, `{"admins":"secret@example.com"}`},
		{"strings in admins", PaymentFailed, `{"remind_after":"0s","admins":["secret@example.com"]}`},
		{"a number for a name", PaymentFailed, `{"remind_after":"0s","admins":[{"email":"secret@example.com","name":123456789}]}`},
		{"another letter case", PaymentFailed, `{"Admins":[{"email":"secret@example.com","name":"A"}]}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &sends{}
			_, err := run(t, s, c.workflow, c.payload, envelope("x"))
			var app *temporal.ApplicationError
			if !errors.As(err, &app) || app.Type() != activities.TypeInvalidPayload || !app.NonRetryable() {
				t.Fatalf("error %v, want a final one of type InvalidPayload", err)
			}
			if len(s.inputs) != 0 {
				t.Errorf("sent %+v", s.inputs)
			}
			for _, value := range []string{"secret", "123456789"} {
				if strings.Contains(err.Error(), value) {
					t.Errorf("the error repeats a value: %v", err)
				}
			}
		})
	}
}
