// Package doctor looks for trouble before it comes: in the database, in Temporal, in the SES account and in this machine's own
// settings. It changes nothing, and it repeats no password and no address. What to do about a finding is a person's.
package doctor

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/client"
	"golang.org/x/sync/errgroup"

	"github.com/oncepost/oncepost/activities"
	"github.com/oncepost/oncepost/alerts"
	"github.com/oncepost/oncepost/internal/ses"
	"github.com/oncepost/oncepost/workflows"
)

// Severity says how much a finding matters.
type Severity int

// The severities.
const (
	OK      Severity = iota // as it should be
	Note                    // worth knowing
	Warning                 // trouble may come
	Error                   // something does not work, or will not
)

var severities = [...]string{"ok", "note", "warning", "error"}

// String returns the severity's word.
func (s Severity) String() string { return severities[s] }

// MarshalJSON writes the severity's word.
func (s Severity) MarshalJSON() ([]byte, error) { return json.Marshal(s.String()) }

// Finding is what a check came to.
type Finding struct {
	// Check names it: mysql.version.
	Check    string   `json:"check"`
	Severity Severity `json:"severity"`
	// Text says what was found and why it matters.
	Text string `json:"text"`
	// Do says what to do. Empty where nothing is.
	Do string `json:"do,omitempty"`
}

// Config says what to look at. What an opening function says is wrong becomes a finding.
type Config struct {
	OpenDB func() (*sql.DB, error)
	// Dial returns Temporal and the name of the namespace.
	Dial func() (client.Client, string, error)
	// Mailer returns nil where no sender is set: then this machine sends no mails.
	Mailer func(ctx context.Context) (*ses.Mailer, error)
	// Mail is what the mailer was made of.
	Mail ses.Config
	// Activities returns a worker's own, with its schemas and templates.
	Activities func() (*activities.Activities, error)
	// Registry has the event types. Default: the shipped ones.
	Registry workflows.Registry
	Alerts   alerts.Config
	// Roles are those of relay, worker and watch that the database's account is for: it must have all their rights.
	// Default: any one of them will do.
	Roles []string
	// SendTest is the address that a test mail goes to after all checks. Default: none is sent.
	SendTest string
	// Timeout of each check. Default 10 s.
	Timeout time.Duration
	// Now is this machine's clock. Default time.Now.
	Now func() time.Time
}

func (c Config) withDefaults() Config {
	if c.Timeout == 0 {
		c.Timeout = 10 * time.Second
	}
	if len(c.Registry.Types()) == 0 {
		c.Registry = workflows.Builtin()
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// check is one look.
type check struct {
	name string
	// look returns the finding, or all of them where one is not enough to say it; Check is filled in. An error says that it could
	// not be made.
	look func(ctx context.Context) ([]Finding, error)
	// gate: where it finds an error, those that follow would only repeat it. One that cannot be made ends no other.
	gate bool
}

// Run makes all checks: those of one server one after the other, the servers at the same time. The findings are in a fixed order.
func Run(ctx context.Context, cfg Config) []Finding {
	cfg = cfg.withDefaults()
	groups := []func(context.Context, Config) []Finding{checkMySQL, checkTemporal, checkSES, checkLocal}
	found := make([][]Finding, len(groups))
	var all errgroup.Group
	for i, group := range groups {
		all.Go(func() error {
			found[i] = group(ctx, cfg)
			return nil
		})
	}
	_ = all.Wait() // no group returns an error
	if cfg.SendTest != "" {
		found = append(found, sendTest(ctx, cfg))
	}
	var flat []Finding
	for _, f := range found {
		flat = append(flat, f...)
	}
	return flat
}

// run makes the checks one after the other.
func run(ctx context.Context, timeout time.Duration, checks []check) (found []Finding) {
	for i, c := range checks {
		of := c.make(ctx, timeout)
		found = append(found, of...)
		if rest := checks[i+1:]; c.gate && Worst(of) == Error && len(rest) > 0 {
			return append(found, notMade(c.name, rest))
		}
	}
	return found
}

func (c check) make(ctx context.Context, timeout time.Duration) []Finding {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	found, err := c.look(ctx)
	if err != nil {
		found = append(found, Finding{
			Severity: Warning, Text: "this could not be checked: " + reason(err, timeout), Do: "put that right, and run oncepost doctor again",
		})
	}
	for i := range found {
		found[i].Check = c.name
	}
	return found
}

func notMade(gate string, rest []check) Finding {
	names := make([]string, len(rest))
	for i, c := range rest {
		names[i] = c.name
	}
	server, _, _ := strings.Cut(gate, ".") // all of it where there is no dot
	return Finding{
		Check: server + ".rest", Severity: Note, Text: fmt.Sprintf("not checked, because of %s: %s", gate, strings.Join(names, ", ")),
		Do: "put that right first, and run oncepost doctor again",
	}
}

// Worst is the severity of the worst finding; OK where there is none.
func Worst(found []Finding) (worst Severity) {
	for _, f := range found {
		worst = max(worst, f.Severity)
	}
	return worst
}

func ok(format string, args ...any) ([]Finding, error) { return find(OK, "", format, args...) }

func find(s Severity, do, format string, args ...any) ([]Finding, error) {
	return []Finding{{Severity: s, Text: fmt.Sprintf(format, args...), Do: do}}, nil
}
