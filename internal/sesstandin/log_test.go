package sesstandin_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/oncepost/oncepost/internal/sesstandin"
)

// A refusal is logged by its code; what the answer quotes of the addresses stays out of the log.
func TestLogsNoAddresses(t *testing.T) {
	var out bytes.Buffer
	s := start(t, sesstandin.Config{Logger: slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	for _, secret := range []string{"secret", "sécret@example.com", "secret@localhost", "secret <secret", "secret@secret..com", "@secret.example.com"} {
		if _, err := s.ses.SendRawEmail(t.Context(), input(message(), "", secret)); err == nil {
			t.Errorf("%s was accepted", secret)
		}
		if _, err := s.ses.SendRawEmail(t.Context(), input(message("shop@example.com", secret), "", "you@example.com")); err == nil {
			t.Errorf("from %s was accepted", secret)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	log := out.String()
	if !strings.Contains(log, "code=InvalidParameterValue") || strings.Contains(log, "secret") || strings.Contains(log, "sécret") {
		t.Errorf("logged\n%s", log)
	}
}
