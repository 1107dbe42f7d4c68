package integration

import (
	"context"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/oncepost/oncepost/activities"
	"github.com/oncepost/oncepost/internal/ses"
	"github.com/oncepost/oncepost/internal/sesstandin"
	"github.com/oncepost/oncepost/internal/testdb"
	"github.com/oncepost/oncepost/internal/testnet"
	"github.com/oncepost/oncepost/starter"
	"github.com/oncepost/oncepost/workflows"
)

// cutter is a Mailer that lets something happen as soon as SES has answered.
type cutter struct {
	activities.Mailer
	answered func()
}

func (c *cutter) Send(ctx context.Context, m activities.Mail) activities.Answer {
	defer c.answered()
	return c.Mailer.Send(ctx, m)
}

// Scenario 43: the ledger's database goes away for 30 seconds, exactly while SES answers. The answer is known, and so nothing
// is parked and nothing sent again.
func TestTheLedgerIsAwayWhileSESAnswers(t *testing.T) {
	t.Parallel() // it waits, most of the time
	const away = 30 * time.Second
	temporal := newTemporal(t, attributes)
	for name, mode := range map[string]testnet.Mode{"refuses": testnet.Refuse, "silent": testnet.Silent} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			migrated(t, func(t *testing.T, s *testdb.Schema) {
				ns, c := newNamespace(t, temporal, s, "ledger-"+name, 24*time.Hour)
				cfg, err := mysql.ParseDSN(s.DSN)
				if err != nil {
					t.Fatal(err)
				}
				address := cfg.Addr
				proxy := testnet.New(t, func() string { return address })
				cfg.Addr = proxy.Addr()
				standin, err := sesstandin.New(sesstandin.Config{})
				if err != nil {
					t.Fatal(err)
				}
				testdb.CloseAtEnd(t, standin)
				server := httptest.NewServer(standin.Handler())
				t.Cleanup(server.Close)
				mailer, err := ses.New(t.Context(), ses.Config{From: "mail@example.com", Endpoint: server.URL})
				if err != nil {
					t.Fatal(err)
				}
				gone := make(chan struct{})
				runWorker(t, cfg.FormatDSN(), c, &cutter{mailer, sync.OnceFunc(func() { proxy.Set(mode); close(gone) })})
				runRelay(t, s.DSN, c, ns, starter.Config{})
				enqueue(t, s, paymentFailed("payment"))
				<-gone
				time.Sleep(away)
				proxy.Set(testnet.Pass)
				ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second) // a parked one would never end
				defer cancel()
				var r workflows.Result
				if err := c.GetWorkflow(ctx, "payment", "").Get(ctx, &r); err != nil {
					t.Fatal(err)
				}
				if len(r.Sends) != 1 || r.Sends[0].SESMessageID == "" || r.Sends[0].Resolved != nil || len(standin.Mails()) != 1 {
					t.Errorf("%+v; %d mails", r, len(standin.Mails()))
				}
				if state := testdb.Value[string](t, s.DB, "SELECT state FROM sends"); state != "done" {
					t.Errorf("the ledger says %s", state)
				}
			})
		})
	}
}
