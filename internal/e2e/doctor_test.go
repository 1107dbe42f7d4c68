package e2e

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/oncepost/oncepost/internal/testdb"
)

// cured is a world in which nothing is wrong: the other tests' namespaces keep closed workflows for an hour.
func cured(t *testing.T) *world {
	t.Helper()
	schema := testdb.NewSchema(t, testdb.Flavours()[0])
	if err := shared.server(t).CreateNamespace(t.Context(), schema.Name, 7*24*time.Hour); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, schema)
	w.env = append(w.env, "ONCEPOST_ALERT_WEBHOOK=https://hooks.example.com/secret", "ONCEPOST_SES_CONFIGURATION_SET=events")
	w.must("migrate")
	return w
}

// doctor runs it, and fails unless it ends with the code and says the words and none of the secrets.
func (w *world) doctor(code int, words []string, args ...string) string {
	w.Helper()
	got, out := run(w.T, w.env, "oncepost", append([]string{"doctor"}, args...)...)
	if got != code {
		w.Errorf("doctor %v: exit code %d, want %d: %s", args, got, code, out)
	}
	for _, word := range words {
		if !strings.Contains(out, word) {
			w.Errorf("doctor %v does not say %q: %s", args, word, out)
		}
	}
	for _, secret := range []string{password, "hooks.example.com", "reader@elsewhere.example", "AWS_SECRET", "mail@example.com"} {
		if strings.Contains(out, secret) {
			w.Errorf("doctor %v shows %s: %s", args, secret, out)
		}
	}
	return out
}

func TestDoctor(t *testing.T) {
	w := cured(t)
	w.doctor(0, []string{"errors: 0, warnings: 0", "mysql.rights", "temporal.retention", "ses.sender", "local.alerts"})
	w.doctor(0, []string{"SES has accepted the test mail"}, "--send-test", "reader@elsewhere.example")
	if mails := w.mails(1); !strings.Contains(mails[0].Subject, "oncepost doctor") {
		t.Errorf("%+v", mails[0])
	}
	var report struct {
		Worst    string
		Findings []struct{ Check, Severity, Text, Do string }
	}
	if out := w.doctor(0, nil, "--json"); json.Unmarshal([]byte(out), &report) != nil || report.Worst != "note" || len(report.Findings) < 30 {
		t.Errorf("%+v: %s", report, out)
	}

	addFault(t, w.ses, `{"preset": "unverified"}`)
	w.doctor(4, []string{"ERROR", "sender_not_verified", "docs/doctor.md"}, "--send-test", "reader@elsewhere.example")
	addFault(t, w.ses, `{"action": "GetIdentityVerificationAttributes", "negative": true}`)
	w.doctor(4, []string{"Pending"})
	clearFaults(t, w.ses)

	env := w.env
	w.env = append(env, "ONCEPOST_ALERT_WEBHOOK=")
	w.doctor(3, []string{"WARNING", "nobody is told of anything"})
	w.env = append(env, "ONCEPOST_MYSQL_DSN=app:"+password+"@tcp("+newDoor(t).addr+")/app", "ONCEPOST_DOCTOR_JSON=1")
	if out := w.doctor(4, nil); json.Unmarshal([]byte(out), &report) != nil || report.Worst != "error" || report.Findings[0].Check != "mysql.reachable" {
		t.Errorf("%+v: %s", report, out)
	}
}
