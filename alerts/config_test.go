package alerts

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
)

// Wrong settings are named, without an address, and what is right is used.
func TestWrongSettings(t *testing.T) {
	many := make([]string, 60)
	for i := range many {
		many[i] = fmt.Sprintf("user%d@example.com", i)
	}
	for _, c := range []struct {
		name, says string
		change     func(*Config)
		carried    string
	}{
		{"nothing", "no way to send alerts", func(c *Config) { *c = Config{Logger: c.Logger, Endpoint: c.Endpoint} }, ""},
		{"no sender", "need both", func(c *Config) { c.From = "" }, "webhook"},
		{"no recipients", "need both", func(c *Config) { c.To = nil }, "webhook"},
		{"bad sender", "sender (ONCEPOST_ALERT_FROM) is not an address", func(c *Config) { c.From = "secret" }, "webhook"},
		{"one bad recipient", "recipient 2 of 2", func(c *Config) { c.To = []string{to, "jürgen@secret.example.com"} }, "mail"},
		{"only bad recipients", "recipient 1 of 1", func(c *Config) { c.To = []string{"secret"} }, "webhook"},
		{"too many", "60 recipients", func(c *Config) { c.To = many }, "mail"},
		{"bad webhook", "ONCEPOST_ALERT_WEBHOOK) is not a URL", func(c *Config) { c.Webhook = "secret-path" }, "mail"},
		{"another scheme", "ONCEPOST_ALERT_WEBHOOK) is not a URL", func(c *Config) { c.Webhook = "ftp://secret-path.example.com" }, "mail"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, nil)
			cfg := w.cfg
			c.change(&cfg)
			a, err := New(cfg)
			if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "secret") {
				t.Fatalf("New: %v", err)
			}
			w.Alerter = a
			if got := w.fails(Alert{Title: "x"}, c.says); got.By != c.carried || !strings.Contains(w.log.String(), `"title":"x"`) {
				t.Errorf("%+v, want it carried by %q; log %s", got, c.carried, w.log)
			}
		})
	}
}

// A profile of the alerts' own counts with its region and credentials, whatever the mails' variables say.
func TestAWSOfTheirOwn(t *testing.T) {
	file := t.TempDir() + "/config"
	if err := os.WriteFile(file, []byte("[profile alerts]\nregion = eu-north-1\naws_access_key_id = own\naws_secret_access_key = own\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"AWS_CONFIG_FILE": file, "AWS_SHARED_CREDENTIALS_FILE": file + "-none", "AWS_PROFILE": "", "AWS_REGION": "us-west-2",
		"AWS_ACCESS_KEY_ID": "mails", "AWS_SECRET_ACCESS_KEY": "mails", "AWS_EC2_METADATA_DISABLED": "true",
	} {
		t.Setenv(name, value)
	}
	for _, c := range []struct{ profile, region, wantRegion, wantKey string }{
		{"alerts", "", "eu-north-1", "own"}, {"alerts", "eu-west-3", "eu-west-3", "own"}, {"", "", "us-west-2", "mails"}, {"", "eu-west-3", "eu-west-3", "mails"},
	} {
		m, err := newMailer(Config{From: from, To: []string{to}, AWSProfile: c.profile, AWSRegion: c.region})
		if err != nil {
			t.Fatal(err)
		}
		aw, err := m.aws(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		keys, err := aw.Credentials.Retrieve(t.Context())
		if err != nil || aw.Region != c.wantRegion || keys.AccessKeyID != c.wantKey {
			t.Errorf("%+v: region %s, key %s, %v", c, aw.Region, keys.AccessKeyID, err)
		}
	}
	if _, err := New(Config{From: from, To: []string{to}, AWSProfile: "none"}); err == nil || !strings.Contains(err.Error(), "ONCEPOST_ALERT_AWS_PROFILE") {
		t.Errorf("a profile that is not there: %v", err)
	}
	t.Setenv("AWS_REGION", "")
	if _, err := New(Config{From: from, To: []string{to}}); err == nil || !strings.Contains(err.Error(), "ONCEPOST_ALERT_AWS_REGION") {
		t.Errorf("no region: %v", err)
	}
}

// Send reads the environment, and heeds a change of it.
func TestSettingsFromTheEnvironment(t *testing.T) {
	w := newWorld(t, nil)
	for name, value := range map[string]string{
		"FROM": from, "TO": to + ", , Second <second.admin@example.com>,", "AWS_PROFILE": "", "AWS_REGION": "", "WEBHOOK": "", "ENDPOINT": w.cfg.Endpoint,
	} {
		t.Setenv("ONCEPOST_ALERT_"+name, value)
	}
	want := Config{From: from, To: []string{to, "Second <second.admin@example.com>"}, Endpoint: w.cfg.Endpoint}
	if got := FromEnvironment(); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	for range 2 {
		if err := Send(t.Context(), Alert{Title: "x"}); err != nil {
			t.Fatal(err)
		}
	}
	if m := w.last(1); len(m.To) != 2 {
		t.Errorf("to %v", m.To)
	}
	t.Setenv("ONCEPOST_ALERT_TO", "")
	t.Setenv("ONCEPOST_ALERT_FROM", "")
	t.Setenv("ONCEPOST_ALERT_WEBHOOK", w.hook.URL)
	if err := Send(t.Context(), Alert{Title: "x"}); err != nil || len(w.hook.posts()) != 1 {
		t.Errorf("%v, %d posts", err, len(w.hook.posts()))
	}
}
