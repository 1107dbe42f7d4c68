package activities

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"github.com/oncepost/oncepost/templates"
)

// outbasket is a Mailer that keeps what it is given, or gives an answer.
type outbasket struct {
	mails  []Mail
	answer *Answer
}

func (o *outbasket) Send(_ context.Context, m Mail) Answer {
	o.mails = append(o.mails, m)
	if o.answer != nil {
		return *o.answer
	}
	return Answer{Verdict: VerdictSent, ProviderID: fmt.Sprintf("ses-%d", len(o.mails))}
}

// send runs the activity as a worker does, on the payload's bytes as the relay hands them over.
func send(t *testing.T, a *Activities, in SendInput, payload string) (SendResult, error) {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	env.RegisterActivity(a)
	raw := converter.NewRawValue(&commonpb.Payload{
		Metadata: map[string][]byte{converter.MetadataEncoding: []byte(converter.MetadataEncodingJSON)}, Data: []byte(payload),
	})
	got, err := env.ExecuteActivity(a.Send, in, raw)
	if err != nil {
		return SendResult{}, err
	}
	var r SendResult
	if err := got.Get(&r); err != nil {
		t.Fatal(err)
	}
	return r, nil
}

func builtin(t *testing.T, m Mailer) *Activities {
	t.Helper()
	return withTypes(t, m, nil, nil)
}

func withTypes(t *testing.T, m Mailer, mails, schemas fs.FS) *Activities {
	t.Helper()
	a := &Activities{Mailer: m, Ledger: &notebook{}}
	var more []fs.FS
	if mails != nil {
		more = append(more, mails)
	}
	var err error
	if a.Templates, err = templates.Builtin(more...); err != nil {
		t.Fatal(err)
	}
	more = nil
	if schemas != nil {
		more = append(more, schemas)
	}
	if a.Payloads, err = BuiltinPayloads(more...); err != nil {
		t.Fatal(err)
	}
	return a
}

var welcome = SendInput{MessageID: "welcome:c_42", EventType: "welcome", Step: "mail", To: Address{Email: "first@example.com", Name: "First"}}

const welcomePayload = `{"company_id":"c_42","company_name":"O'Brien & <b>Co</b>","email":"first@example.com","locale":"ko-KR","more":[1]}`

func TestSend(t *testing.T) {
	basket := &outbasket{}
	got, err := send(t, builtin(t, basket), welcome, welcomePayload)
	if err != nil {
		t.Fatal(err)
	}
	if got != (SendResult{SESMessageID: "ses-1", Locale: "ko"}) {
		t.Errorf("result %+v", got)
	}
	if len(basket.mails) != 1 {
		t.Fatalf("%d mails", len(basket.mails))
	}
	m := basket.mails[0]
	if m.MessageID != welcome.MessageID || m.EventType != welcome.EventType || m.To != welcome.To {
		t.Errorf("mail %+v", m)
	}
	if m.Subject != "O'Brien & <b>Co</b>에 오신 것을 환영합니다" || !strings.Contains(m.HTML, "O&#39;Brien &amp; &lt;b&gt;Co&lt;/b&gt;") {
		t.Errorf("subject %q, HTML %s", m.Subject, m.HTML)
	}
}

// What cannot be sent fails for good with a type and a text that a person can act on, and no mail goes out. The text holds
// nothing of the payload: it is shown in the web UI and logged. (scenarios 16, 24, 25)
func TestSendRefusesForGood(t *testing.T) {
	for _, c := range []struct {
		name, payload, kind, says string
	}{
		{"a required field is missing", `{"company_id":"secret","email":"secret@example.com"}`, TypeInvalidPayload, "company_name"},
		{"a number for a string", `{"company_id":123456789,"company_name":"secret","email":"secret@example.com"}`, TypeInvalidPayload, "/company_id is number, must be string"},
		{"null for a string", `{"company_id":"secret","company_name":null,"email":"secret@example.com"}`, TypeInvalidPayload, "/company_name is null"},
		{"an object for a string", `{"company_id":"secret","company_name":{"secret":1},"email":"secret@example.com"}`, TypeInvalidPayload, "/company_name is object"},
		{"a number as the locale", `{"company_id":"secret","company_name":"secret","email":"secret@example.com","locale":123456789}`, TypeInvalidPayload, "/locale"},
		{"an empty name", `{"company_id":"secret","company_name":"","email":"secret@example.com"}`, TypeInvalidPayload, "/company_name is shorter than 1"},
		{"a name that is too long", `{"company_id":"secret","company_name":"` + strings.Repeat("secret", 50) + `","email":"secret@example.com"}`, TypeInvalidPayload, "/company_name is longer than 255"},
		{"another letter case", `{"company_id":"secret","Company_Name":"secret","email":"secret@example.com"}`, TypeInvalidPayload, "lacks company_name"},
		{"a name twice", `{"company_id":"secret","company_name":"a","company_name":"secret","email":"secret@example.com"}`, TypeInvalidPayload, `"company_name" stands twice`},
		{"an array", `["secret"]`, TypeInvalidPayload, "/ is array, must be object"},
		{"no JSON", `secret`, TypeInvalidPayload, "JSON"},
		{"JSON cut short", `{"company_id":"secret`, TypeInvalidPayload, "JSON"},
		{"a tail", `{"company_id":"secret","company_name":"secret","email":"secret@example.com"} {}`, TypeInvalidPayload, "behind the JSON value"},
		{"a header in the subject", `{"company_id":"secret","company_name":"a\r\nBcc: secret@example.com","email":"secret@example.com"}`, TypeNotRendered, "subject"},
	} {
		t.Run(c.name, func(t *testing.T) {
			basket := &outbasket{}
			_, err := send(t, builtin(t, basket), welcome, c.payload)
			checkRefusal(t, err, c.kind, c.says)
			if len(basket.mails) != 0 {
				t.Errorf("a mail went out: %+v", basket.mails[0])
			}
		})
	}
}

func checkRefusal(t *testing.T, err error, kind, says string) {
	t.Helper()
	var app *temporal.ApplicationError
	if !errors.As(err, &app) || app.Type() != kind || !app.NonRetryable() {
		t.Fatalf("error %v, want a final one of type %s", err, kind)
	}
	if !strings.Contains(app.Message(), says) {
		t.Errorf("error %q does not say %q", app.Message(), says)
	}
	for _, value := range []string{"secret", "123456789"} {
		if strings.Contains(err.Error(), value) {
			t.Errorf("the error repeats a value of the payload: %v", err)
		}
	}
}

func TestSendOfUnknownTypes(t *testing.T) {
	basket := &outbasket{}
	in := welcome
	in.EventType = "no_such_type"
	_, err := send(t, builtin(t, basket), in, welcomePayload)
	checkRefusal(t, err, TypeInvalidPayload, "no JSON Schema for event type no_such_type")
	schemaOnly := fstest.MapFS{"no_such_type.json": {Data: []byte(`{"type":"object"}`)}}
	_, err = send(t, withTypes(t, basket, nil, schemaOnly), in, welcomePayload)
	checkRefusal(t, err, TypeNotRendered, "no templates for event type no_such_type")
}

func TestSpellingsOfOneMailbox(t *testing.T) {
	for _, c := range []struct{ a, b string }{
		{"kim@example.com", "kim@EXAMPLE.com"},
		{"kim@example.com", "Kim@example.com"},
		{"kim@b\u00fccher.example", "KIM@B\u00dcCHER.example"},
		{`"a@B"@example.com`, `"A@b"@Example.com`},
	} {
		if a, b := (Address{Email: c.a}).Canonical(), (Address{Email: c.b, Name: "Kim"}).Canonical(); a != b {
			t.Errorf("%s and %s are two: %s and %s", c.a, c.b, a, b)
		}
	}
	seen := map[string]string{}
	for _, email := range []string{
		"kim@example.com", "k.im@example.com", "kim+1@example.com", "kim@example.org", "\u212aim@example.com", "Kim", "kim", "",
	} {
		c := Address{Email: email}.Canonical()
		if other, ok := seen[c]; ok {
			t.Errorf("%q and %q are one", email, other)
		}
		seen[c] = email
	}
}

// The ledger's key and content stay the same when only the spelling changes, so that the second spelling sends nothing.
func TestAnotherSpellingIsTheSameKey(t *testing.T) {
	b := &notebook{}
	a := builtin(t, &outbasket{})
	a.Ledger = b
	for _, email := range []string{"first@example.com", "First@Example.COM", "other@example.com"} {
		in := welcome
		in.To.Email = email
		if _, err := send(t, a, in, welcomePayload); err != nil {
			t.Fatal(err)
		}
	}
	for i := range b.claims {
		b.claims[i].Token = Token{}
	}
	if b.claims[0] != b.claims[1] || b.claims[0].Key == b.claims[2].Key {
		t.Errorf("the claims of one mailbox differ, or those of two do not: %+v", b.claims)
	}
}

// order is a user's own type, whose mail shows numbers.
func order(html string) (mails, schema fstest.MapFS) {
	mails = fstest.MapFS{
		"order/en/subject.txt": {Data: []byte("Order {{.payload.id}}")},
		"order/en/body.txt":    {Data: []byte("{{.payload.id}} {{.payload.amount}} {{.payload.a}} {{.payload.A}} {{.to.email}}")},
		"order/en/body.html":   {Data: []byte(html)},
	}
	schema = fstest.MapFS{"order.json": {Data: []byte(
		`{"type":"object","required":["id"],"properties":{"id":{"type":"integer"},"amount":{"type":"number"}}}`)}}
	return mails, schema
}

// Numbers keep every digit, and names their letter case. (scenarios 15, 16)
func TestSendKeepsNumbersAndCase(t *testing.T) {
	basket := &outbasket{}
	mails, schema := order("<b>{{.payload.id}}</b> {{.payload.other}}")
	in := SendInput{MessageID: "o", EventType: "order", Step: "mail", To: Address{Email: "a@example.com"}}
	const payload = `{"id":9007199254740993,"other":3544790567247868102,"amount":1.10,"a":1,"A":3}`
	if _, err := send(t, withTypes(t, basket, mails, schema), in, payload); err != nil {
		t.Fatal(err)
	}
	m := basket.mails[0]
	if m.Subject != "Order 9007199254740993" || m.Text != "9007199254740993 1.10 1 3 a@example.com" ||
		m.HTML != "<b>9007199254740993</b> 3544790567247868102" {
		t.Errorf("mail %+v", m.Content)
	}
}

func TestSendWithAMissingTemplateVariable(t *testing.T) {
	basket := &outbasket{}
	mails, schema := order("<b>{{.payload.absent}}</b>")
	in := SendInput{MessageID: "o", EventType: "order", Step: "mail", To: Address{Email: "a@example.com"}}
	_, err := send(t, withTypes(t, basket, mails, schema), in, `{"id":1,"amount":123456789,"a":"secret","A":"secret"}`)
	checkRefusal(t, err, TypeNotRendered, "absent")
	if len(basket.mails) != 0 {
		t.Error("a half-empty mail went out")
	}
}
