package ses

import (
	"strings"
	"testing"

	"github.com/oncepost/oncepost/activities"
)

// With an Endpoint the mail goes there, whatever AWS's own environment says, and without any of it.
func TestEndpoint(t *testing.T) {
	standin, url := standIn(t)
	for name, value := range map[string]string{
		"AWS_REGION": "", "AWS_DEFAULT_REGION": "", "AWS_PROFILE": "no-such-profile", "AWS_ENDPOINT_URL_SES": "http://127.0.0.1:1",
		"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_CONFIG_FILE": t.TempDir() + "/none",
	} {
		t.Setenv(name, value)
	}
	m, err := New(t.Context(), Config{From: "Example <mail@example.com>", Endpoint: url})
	if err != nil {
		t.Fatal(err)
	}
	got := m.Send(t.Context(), aMail)
	if got.Verdict != activities.VerdictSent {
		t.Fatalf("%+v", got)
	}
	mails := standin.Mails()
	if len(mails) != 1 || mails[0].ID != got.ProviderID || mails[0].MessageID != "m_1" || !strings.Contains(mails[0].From, "mail@example.com") {
		t.Errorf("%+v", mails)
	}
}
