package doctor

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/oncepost/oncepost/activities"
	"github.com/oncepost/oncepost/alerts"
	"github.com/oncepost/oncepost/internal/ses"
	"github.com/oncepost/oncepost/templates"
	"github.com/oncepost/oncepost/workflows"
)

// worker returns a worker's activities, with a folder of templates where one is given.
func worker(t *testing.T, folder string) func() (*activities.Activities, error) {
	t.Helper()
	payloads, err := activities.BuiltinPayloads()
	if err != nil {
		t.Fatal(err)
	}
	set, err := templates.Builtin()
	if folder != "" {
		set, err = templates.Builtin(os.DirFS(folder))
	}
	return func() (*activities.Activities, error) {
		return &activities.Activities{Payloads: payloads, Templates: set}, err
	}
}

// onAWS gives the mailer and the alerts credentials and profiles of the test's own.
func onAWS(t *testing.T) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config")
	profiles := "[profile other]\nregion=eu-west-1\naws_access_key_id=OTHER\naws_secret_access_key=x\n" +
		"[profile same]\nregion=eu-west-1\naws_access_key_id=MAILS\naws_secret_access_key=x\n"
	if err := os.WriteFile(file, []byte(profiles), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"AWS_CONFIG_FILE": file, "AWS_SHARED_CREDENTIALS_FILE": file + ".none", "AWS_PROFILE": "", "AWS_REGION": "eu-west-1",
		"AWS_ACCESS_KEY_ID": "MAILS", "AWS_SECRET_ACCESS_KEY": "x", "AWS_SESSION_TOKEN": "", "AWS_EC2_METADATA_DISABLED": "true",
	} {
		t.Setenv(name, value)
	}
}

func TestHealthyMachine(t *testing.T) {
	onAWS(t)
	cfg := sending(ses.Config{From: "mail@example.com"})
	cfg.Activities = worker(t, "")
	cfg.Alerts = alerts.Config{From: "alerts@example.com", To: []string{"a@example.com"}, AWSProfile: "other"}
	for _, f := range checkLocal(t.Context(), cfg) {
		if f.Severity != OK {
			t.Errorf("%s %s: %s", f.Severity, f.Check, f.Text)
		}
	}
}

func TestEventTypesThatLackSomething(t *testing.T) {
	cfg := Config{
		Activities: worker(t, ""),
		Registry:   workflows.Builtin().With(workflows.Type{Name: "invoice", Workflow: workflows.SendMail}, workflows.Type{Name: "order", Workflow: workflows.SendMail, NoMail: true}),
	}
	found := run(t.Context(), cfg.withDefaults().Timeout, []check{{name: "c", look: local{cfg}.eventTypes}})
	wants(t, found, "c", Error, "invoice has no schema", "invoice has no templates", "order has no schema")

	folder := t.TempDir()
	for name, text := range map[string]string{"subject.txt": "s", "body.txt": "t", "body.html": "h"} {
		file := filepath.Join(folder, "wellcome", "en", name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	cfg = Config{Activities: worker(t, folder)}.withDefaults()
	found = run(t.Context(), cfg.Timeout, []check{{name: "c", look: local{cfg}.eventTypes}})
	wants(t, found, "c", Note, "wellcome")
	if err := os.Remove(filepath.Join(folder, "wellcome", "en", "subject.txt")); err != nil {
		t.Fatal(err)
	}
	cfg = Config{Activities: worker(t, folder)}.withDefaults()
	found = run(t.Context(), cfg.Timeout, []check{{name: "c", look: local{cfg}.eventTypes}})
	wants(t, found, "c", Error, "subject.txt")
}

func TestAlerts(t *testing.T) {
	onAWS(t)
	mail := alerts.Config{From: "alerts@example.com", To: []string{"a@example.com"}}
	with := func(change func(*alerts.Config)) alerts.Config {
		c := mail
		change(&c)
		return c
	}
	for _, tc := range []struct {
		name            string
		alerts          alerts.Config
		setUp, accounts Severity
	}{
		{"none", alerts.Config{}, Warning, OK},
		{"shared", mail, OK, Warning},
		{"shared under another name", with(func(c *alerts.Config) { c.AWSProfile = "same" }), OK, Warning},
		{"another region", with(func(c *alerts.Config) { c.AWSRegion = "us-east-1" }), OK, OK},
		{"another account", with(func(c *alerts.Config) { c.AWSProfile = "other" }), OK, OK},
		{"no such profile", with(func(c *alerts.Config) { c.AWSProfile = "gone" }), Error, Warning},
		{"a webhook as well", with(func(c *alerts.Config) { c.Webhook = "https://hooks.example.com/x" }), OK, OK},
		{"a webhook alone", alerts.Config{Webhook: "https://hooks.example.com/x"}, OK, OK},
		{"nobody to send to", alerts.Config{From: "alerts@example.com"}, Error, OK},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cfg := sending(ses.Config{From: "mail@example.com"})
			cfg.Activities, cfg.Alerts = worker(t, ""), tc.alerts
			found := checkLocal(t.Context(), cfg)
			wants(t, found, "local.alerts", tc.setUp)
			wants(t, found, "local.alerts-account", tc.accounts)
			quiet(t, found, "a@example.com", "alerts@example.com", "hooks.example.com")
		})
	}
}

func TestRecipientsThatAreKeptFromMails(t *testing.T) {
	cfg := Config{
		Activities: worker(t, ""), Mailer: func(context.Context) (*ses.Mailer, error) { return nil, nil }, //nolint:nilnil // no sender
		Mail: ses.Config{Safety: ses.Safety{DryRun: true, RedirectTo: "all@example.com", Allow: []string{"a@example.com", "example.com"}}},
	}.withDefaults()
	found := checkLocal(t.Context(), cfg)
	for _, word := range []string{"ONCEPOST_DRY_RUN", "ONCEPOST_MAIL_REDIRECT_TO", "2 entries"} {
		wants(t, found, "local.recipients", Note, word)
	}
	quiet(t, found, "all@example.com", "a@example.com")
}
