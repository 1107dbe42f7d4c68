package doctor

import (
	"errors"
	"log/slog"
	"net"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"github.com/oncepost/oncepost/internal/testdb"
)

// What there is to find in a Temporal that answers is tested in internal/integration.
func TestUnreachableTemporal(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // which never says a word
	if err != nil {
		t.Fatal(err)
	}
	testdb.CloseAtEnd(t, l)
	found := checkTemporal(t.Context(), Config{Timeout: 500 * time.Millisecond, Dial: func() (client.Client, string, error) {
		c, err := client.NewLazyClient(client.Options{HostPort: l.Addr().String(), Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler))})
		return c, "default", err
	}}.withDefaults())
	wants(t, found, "temporal.reachable", Error, "cannot be reached")
	wants(t, found, "temporal.rest", Note, "temporal.binding")
	found = checkTemporal(t.Context(), Config{Dial: func() (client.Client, string, error) { return nil, "", errors.New("no such profile") }}.withDefaults())
	wants(t, found, "temporal.reachable", Error, "no such profile")
}
