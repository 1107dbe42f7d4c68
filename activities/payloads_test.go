package activities

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/fstest"
)

// paymentFailed is a good payload with some fields replaced (raw JSON), or removed (empty).
func paymentFailed(t *testing.T, change map[string]string) []byte {
	t.Helper()
	fields := map[string]string{
		"subscription_id": `"sub_9"`, "admins": `[{"email":"a@example.com","name":"A"}]`, "amount": `"9900.10"`, "currency": `"KRW"`,
		"reregister_url": `"https://example.com/cards?a=1"`,
	}
	maps.Copy(fields, change)
	raw := map[string]json.RawMessage{}
	for name, value := range fields {
		if value != "" {
			raw[name] = json.RawMessage(value)
		}
	}
	b, err := json.Marshal(raw)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestPaymentFailedSchema(t *testing.T) {
	p, err := BuiltinPayloads()
	if err != nil {
		t.Fatal(err)
	}
	admins := func(n int) string {
		return "[" + strings.TrimSuffix(strings.Repeat(`{"email":"a@example.com","name":""},`, n), ",") + "]"
	}
	for _, c := range []struct {
		field, value string
		says         string // "" = good
	}{
		{"amount", `"0"`, ""},
		{"amount", `"123456789012345678.123456"`, ""},
		{"amount", `9900.10`, "/amount is number"},
		{"amount", `"9,900"`, "/amount does not match"},
		{"amount", `"-1"`, "/amount does not match"},
		{"amount", ``, "lacks amount"},
		{"currency", `"krw"`, "/currency"},
		{"currency", `"KRWX"`, "/currency"},
		{"reregister_url", `"http://example.com"`, "/reregister_url"},
		{"reregister_url", `"https://example.com/a b"`, "/reregister_url"},
		{"reregister_url", `"javascript:alert(1)"`, "/reregister_url"},
		{"admins", admins(50), ""},
		{"admins", admins(51), "/admins has more than 50"},
		{"admins", `[]`, "/admins has fewer than 1"},
		{"admins", `[{"email":"a@example.com"}]`, "/admins/0 lacks name"},
		{"admins", `["a@example.com"]`, "/admins/0 is string"},
		{"admins", `[{"Email":"a@example.com","name":"A"}]`, "/admins/0 lacks email"},
		{"card_last4", `"4242"`, ""},
		{"card_last4", `4242`, "/card_last4 is number"},
		{"card_last4", `"424"`, "/card_last4"},
		{"remind_after", `"72h"`, ""},
		{"remind_after", `"1h30m"`, ""},
		{"remind_after", `"0s"`, ""},
		{"remind_after", `"3 days"`, "/remind_after"},
		{"locale", `"ko-KR"`, ""},
		{"locale", `null`, "/locale is null"},
		{"locale", `""`, "/locale"},
		{"unknown", `{"a":[1,2]}`, ""},
	} {
		t.Run(fmt.Sprintf("%s %.30s", c.field, c.value), func(t *testing.T) {
			fields, err := p.Decode("payment_failed", paymentFailed(t, map[string]string{c.field: c.value}))
			if c.says == "" {
				if err != nil || fields["subscription_id"] != "sub_9" {
					t.Errorf("%v, %v", fields, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %v, want one that says %s", err, c.says)
			}
		})
	}
}

// Every fault is listed, not only the first.
func TestDecodeListsAllFaults(t *testing.T) {
	p, err := BuiltinPayloads()
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.Decode("payment_failed", paymentFailed(t, map[string]string{"amount": "", "currency": `"krw"`, "locale": "1"}))
	for _, part := range []string{"lacks amount", "/currency", "/locale is number"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("error %v lacks %s", err, part)
		}
	}
}

func TestUsersSchemas(t *testing.T) {
	own := fstest.MapFS{
		"order.json":   {Data: []byte(`{"type":"object","properties":{"when":{"type":"string","format":"date-time"}}}`)},
		"welcome.json": {Data: []byte(`{"type":"object","required":["mine"]}`)},
	}
	p, err := BuiltinPayloads(own)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(p.Types(), " "), "card_registered order payment_failed welcome"; got != want {
		t.Errorf("types %s, want %s", got, want)
	}
	if _, err := p.Decode("welcome", []byte(`{"mine":1}`)); err != nil {
		t.Errorf("the user's own schema does not win: %v", err)
	}
	if _, err := p.Decode("order", []byte(`{"when":"soon"}`)); err == nil || strings.Contains(err.Error(), "soon") {
		t.Errorf("a format that does not hold: %v", err)
	}
	for name, text := range map[string]string{"no JSON": "{", "no schema": `{"type":"nonsense"}`} {
		if _, err := BuiltinPayloads(fstest.MapFS{"bad.json": {Data: []byte(text)}}); err == nil || !strings.Contains(err.Error(), "bad.json") {
			t.Errorf("%s: error %v, want one that names the file", name, err)
		}
	}
}
