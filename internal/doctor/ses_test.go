package doctor

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/oncepost/oncepost/internal/ses"
	"github.com/oncepost/oncepost/internal/sesstandin"
)

// standIn starts a stand-in, and returns the configuration of a machine that sends by it.
func standIn(t *testing.T, cfg sesstandin.Config) (*sesstandin.Server, Config) {
	t.Helper()
	server, err := sesstandin.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(context.Background(), l) }()
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil && !errors.Is(err, sesstandin.ErrClosed) {
			t.Error(err)
		}
	})
	return server, sending(ses.Config{
		From: "Example <mail@news.example.com>", ConfigurationSet: "events", Endpoint: "http://" + l.Addr().String(),
	})
}

func sending(mail ses.Config) Config {
	return Config{Mail: mail, Mailer: func(ctx context.Context) (*ses.Mailer, error) { return ses.New(ctx, mail) }}.withDefaults()
}

func TestHealthyAccount(t *testing.T) {
	server, cfg := standIn(t, sesstandin.Config{Quota: sesstandin.Quota{Max24HourSend: 50_000}})
	found := checkSES(t.Context(), cfg)
	healthy(t, found)
	wants(t, found, "ses.sender", OK)
	wants(t, found, "ses.configuration-set", OK, "events")
	for action, n := range map[string]int{"GetSendQuota": 1, "GetAccountSendingEnabled": 1, "GetIdentityVerificationAttributes": 1, "DescribeConfigurationSet": 1} {
		if got := server.Requests()[action]; got != n {
			t.Errorf("%d calls of %s", got, action)
		}
	}
}

func TestAccountsInTrouble(t *testing.T) {
	const sandbox = 200
	answer := func(action, code string) sesstandin.Fault {
		return sesstandin.Fault{Action: action, Error: &sesstandin.APIError{Code: code, Message: "no, somebody@example.com"}}
	}
	for _, tc := range []struct {
		name     string
		quota    float64
		fault    sesstandin.Fault
		check    string
		severity Severity
		words    []string
	}{
		{"sandbox", sandbox, sesstandin.Fault{}, "ses.quota", Warning, []string{"sandbox", "production access"}},
		{"used up", 50_000, sesstandin.Fault{QuotaExhausted: true}, "ses.quota", Warning, []string{"50000 of the 50000"}},
		{"paused", -1, sesstandin.Fault{Action: "GetAccountSendingEnabled", Negative: true}, "ses.sending-enabled", Error, []string{"paused"}},
		{"unverified", -1, sesstandin.Fault{Action: "GetIdentityVerificationAttributes", Negative: true}, "ses.sender", Error, []string{"news.example.com", "Pending"}},
		{"no set", -1, answer("DescribeConfigurationSet", "ConfigurationSetDoesNotExist"), "ses.configuration-set", Error, []string{"events"}},
		{"no right", -1, answer("GetSendQuota", "AccessDenied"), "ses.quota", Note, []string{"ses:GetSendQuota"}},
		{"no right 2", -1, answer("GetIdentityVerificationAttributes", "AccessDeniedException"), "ses.sender", Note, []string{"may not call"}},
		{"no right 3", -1, answer("DescribeConfigurationSet", "AccessDenied"), "ses.configuration-set", Note, []string{"may not call"}},
		{"throttled", -1, answer("GetAccountSendingEnabled", "Throttling"), "ses.sending-enabled", Note, []string{"again"}},
		{"bad key", -1, answer("GetSendQuota", "InvalidClientTokenId"), "ses.quota", Error, []string{"InvalidClientTokenId"}},
		{"cut", -1, sesstandin.Fault{Action: "GetAccountSendingEnabled", DropBefore: true}, "ses.sending-enabled", Error, []string{"cannot be asked"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			server, cfg := standIn(t, sesstandin.Config{Quota: sesstandin.Quota{Max24HourSend: tc.quota}})
			if tc.name != "sandbox" {
				if _, err := server.Inject(tc.fault); err != nil {
					t.Fatal(err)
				}
			}
			found := checkSES(t.Context(), cfg)
			wants(t, found, tc.check, tc.severity, tc.words...)
			only(t, found, tc.check)
			quiet(t, found, "somebody@example.com", "mail@news.example.com")
		})
	}
}

// quiet fails where a finding repeats what it must not.
func quiet(t *testing.T, found []Finding, secrets ...string) {
	t.Helper()
	for _, f := range found {
		for _, secret := range secrets {
			if strings.Contains(f.Text+f.Do, secret) {
				t.Errorf("%s repeats %s: %s", f.Check, secret, f.Text)
			}
		}
	}
}

// A call that hangs ends with its deadline, and the others are made all the same.
func TestAccountThatIsSlow(t *testing.T) {
	server, cfg := standIn(t, sesstandin.Config{})
	if _, err := server.Inject(sesstandin.Fault{Action: "GetAccountSendingEnabled", Delay: sesstandin.Duration(time.Minute)}); err != nil {
		t.Fatal(err)
	}
	cfg.Timeout = 300 * time.Millisecond
	found := checkSES(t.Context(), cfg)
	wants(t, found, "ses.sending-enabled", Error, "in time")
	wants(t, found, "ses.configuration-set", OK)
}

func TestNoAccountToLookAt(t *testing.T) {
	none := Config{Mailer: func(context.Context) (*ses.Mailer, error) { return nil, nil }}.withDefaults() //nolint:nilnil // no sender
	wants(t, checkSES(t.Context(), none), "ses.configured", Note, "ONCEPOST_MAIL_FROM")
	dry := sending(ses.Config{From: "mail@example.com", Safety: ses.Safety{DryRun: true}})
	wants(t, checkSES(t.Context(), dry), "ses.configured", Note, "dry run")
	bad := sending(ses.Config{From: "mail at example.com"})
	wants(t, checkSES(t.Context(), bad), "ses.configured", Error, "no worker")
}

func TestSendTest(t *testing.T) {
	const to = "reader@elsewhere.example"
	for _, tc := range []struct {
		name, preset string
		safety       ses.Safety
		severity     Severity
		mails        int
		words        []string
	}{
		{"sent", "", ses.Safety{}, OK, 1, []string{"SES has accepted"}},
		{"sandbox", "unverified", ses.Safety{}, Error, 0, []string{"sender_not_verified", "recipient"}},
		{"paused", "paused", ses.Safety{}, Error, 0, []string{"account_paused"}},
		{"rejected", "reject", ses.Safety{}, Error, 0, []string{"rejected", "docs/sending.md"}},
		{"lost", "lost-answer", ses.Safety{}, Warning, 1, []string{"nobody knows"}},
		{"redirected", "", ses.Safety{RedirectTo: "all@example.com"}, OK, 1, []string{"ONCEPOST_MAIL_REDIRECT_TO"}},
		{"not allowed", "", ses.Safety{Allow: []string{"example.com"}}, Error, 0, []string{"ONCEPOST_MAIL_ALLOW"}},
		{"dry", "", ses.Safety{DryRun: true}, Note, 0, []string{"dry run"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			server, cfg := standIn(t, sesstandin.Config{})
			cfg.Mail.Safety = tc.safety
			cfg = sending(cfg.Mail)
			cfg.SendTest = to
			if tc.preset != "" {
				fault, err := sesstandin.Preset(tc.preset)
				if err == nil {
					_, err = server.Inject(fault)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			found := sendTest(t.Context(), cfg)
			wants(t, found, "ses.send-test", tc.severity, tc.words...)
			quiet(t, found, to, "all@example.com")
			if got := len(server.Mails()); got != tc.mails {
				t.Errorf("%d mails", got)
			}
		})
	}
}
