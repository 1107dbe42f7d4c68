package architecture

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/oncepost/oncepost"

// rule says what a package may and must not have in its closure (go list -deps).
type rule struct {
	pkg string
	// own are the packages of this module it may import, beside itself, directly or not; a trailing /... takes what is below.
	own []string
	// standardOnly: beside own and others, nothing but the standard library.
	standardOnly bool
	// others are packages of other modules that standardOnly lets through, with what is below them.
	others []string
	// deny maps a package, or a prefix ending in /, to the reason why it must not be there.
	deny map[string]string
}

var (
	noServer = map[string]string{
		"go.temporal.io/server/": "the Temporal server is 150 MB and six minutes of compiling; only the development stack may link it",
	}
	noDriver = map[string]string{
		"database/sql":                   "workflows and their types do no SQL",
		"github.com/go-sql-driver/mysql": "the database is reached through internal/mysqldb",
	}
	noExporter = map[string]string{
		"go.opentelemetry.io/otel/sdk/":       "what makes spans asks OpenTelemetry's API alone; whether they are exported is the program's to say",
		"go.opentelemetry.io/otel/exporters/": "what makes spans asks OpenTelemetry's API alone; whether they are exported is the program's to say",
	}
	noAWS = map[string]string{"github.com/aws/": "the provider is behind activities.Mailer; only internal/ses knows it"}
)

func merge(maps ...map[string]string) map[string]string {
	all := map[string]string{}
	for _, m := range maps {
		for k, v := range m {
			all[k] = v
		}
	}
	return all
}

var rules = []rule{
	{pkg: "schemas", own: nil, standardOnly: true, deny: map[string]string{
		"database/sql": "contracts hold no SQL client", "net/http": "contracts talk to nobody",
	}},
	{pkg: "outbox", own: []string{"schemas"}, standardOnly: true, deny: map[string]string{
		"net/http": "any service must be able to import outbox, however small",
	}},
	{pkg: "locks", own: nil, standardOnly: true, others: []string{
		"github.com/go-sql-driver/mysql", // its error type
		"filippo.io/edwards25519",        // which it needs
	}, deny: map[string]string{
		"net/http": "any service must be able to import locks, however small",
	}},
	{pkg: "alerts", own: []string{"internal/sesraw"}, deny: merge(noServer, map[string]string{
		"go.temporal.io/": "an alert that Temporal is down cannot go through it", "database/sql": "an alert that the database is down cannot go through it",
		"github.com/go-sql-driver/": "an alert that the database is down cannot go through it", "google.golang.org/grpc": "nothing but SES and a webhook is spoken to",
	})},
	{pkg: "templates", own: nil, deny: merge(noServer, noDriver, noAWS)},
	{pkg: "activities", own: []string{"schemas", "templates"}, deny: merge(noServer, noAWS, map[string]string{
		"github.com/go-sql-driver/mysql": "the ledger is behind an interface",
	})},
	{pkg: "workflows", own: []string{"activities", "schemas", "templates"}, deny: merge(noServer, noAWS, map[string]string{
		"github.com/go-sql-driver/mysql": "workflow code is deterministic: it does no SQL",
	})},
	{pkg: "starter", own: []string{"outbox", "locks", "schemas"}, deny: merge(noServer, noAWS, noExporter)},
	{pkg: "worker", own: []string{"workflows", "activities", "schemas", "templates"}, deny: merge(noServer, noAWS, map[string]string{
		"github.com/go-sql-driver/mysql": "a worker of users' own types need not have a database driver",
	})},
	{pkg: "internal/ses", own: []string{"activities", "schemas", "templates", "internal/sesraw", "internal/sestag"}, deny: merge(noServer, noExporter)},
	{pkg: "monitor", own: []string{"outbox", "alerts", "schemas", "internal/sesraw"}, deny: merge(noServer, map[string]string{
		"github.com/go-sql-driver/mysql": "the database is reached through internal/mysqldb",
	})},
	{pkg: "internal/doctor", own: []string{
		"schemas", "outbox", "locks", "templates", "activities", "workflows", "starter", "alerts", "monitor",
		"internal/migrate", "internal/ses", "internal/sesraw", "internal/sestag",
	}, deny: merge(noServer, noExporter)},
	{pkg: "cmd/oncepost", own: []string{
		"schemas", "outbox", "locks", "templates", "activities", "workflows", "starter", "worker",
		"internal/config", "internal/doctor", "internal/explain", "internal/failed", "internal/ledger", "internal/migrate", "internal/mysqldb", "internal/serve",
		"internal/ses", "internal/sesraw",
		"internal/sestag", "internal/stops", "internal/telemetry", "internal/watching", "alerts", "monitor",
	}, deny: merge(noServer, map[string]string{
		module + "/internal/sesstandin": "the stand-in is for development", module + "/internal/mysqlserver": "a production binary starts no database",
	})},
	{pkg: "cmd/oncepost-ses", own: []string{"internal/sesstandin", "internal/sestag"}, deny: merge(noServer, map[string]string{
		"go.temporal.io/": "the stand-in runs alone", "github.com/go-sql-driver/mysql": "the stand-in runs alone",
	})},
}

// TestImports holds the table above against the real closures.
func TestImports(t *testing.T) {
	standard := map[string]bool{}
	for _, p := range list(t, "std") {
		standard[p] = true
	}
	for _, r := range rules {
		t.Run(r.pkg, func(t *testing.T) {
			deps := list(t, "-deps", module+"/"+r.pkg)
			if !slices.Contains(deps, module+"/"+r.pkg) {
				t.Fatal("the package is not there")
			}
			for _, fault := range r.faults(deps, standard) {
				t.Error(fault)
			}
		})
	}
}

// TestTheRulesCatch is the test of the test: each kind of rule, broken.
func TestTheRulesCatch(t *testing.T) {
	r := rule{pkg: "x", own: []string{"schemas"}, standardOnly: true, others: []string{"example.com/driver"}, deny: map[string]string{"net/http": "r1", "go.temporal.io/": "r2"}}
	standard := map[string]bool{"net/http": true, "fmt": true, "vendor/golang.org/x/net": true}
	for dep, want := range map[string]string{
		module + "/outbox": "may not import", "net/http": "r1", "go.temporal.io/sdk/client": "r2", "example.com/lib": "standard library",
		"example.com/driver": "", "example.com/driver/inner": "", "example.com/driver2": "standard library",
		module + "/schemas": "", "fmt": "", module + "/x": "",
	} {
		got := strings.Join(r.faults([]string{dep}, standard), "; ")
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", dep, got, want)
		}
	}
}

func (r rule) faults(deps []string, standard map[string]bool) []string {
	var out []string
	for _, dep := range deps {
		for denied, reason := range r.deny {
			if dep == denied || strings.HasSuffix(denied, "/") && strings.HasPrefix(dep, denied) {
				out = append(out, "has "+dep+": "+reason)
			}
		}
		own, ours := strings.CutPrefix(dep, module+"/")
		switch {
		case ours && own != r.pkg && !slices.Contains(r.own, own):
			out = append(out, "may not import "+dep+"")
		case !ours && r.standardOnly && !standard[dep] && !slices.ContainsFunc(r.others, func(o string) bool { return strings.HasPrefix(dep+"/", o+"/") }):
			out = append(out, "has "+dep+", but may have nothing beside the standard library")
		}
	}
	return out
}

// TestEveryFolderHasARule keeps a new public package from going unwatched.
func TestEveryFolderHasARule(t *testing.T) {
	var watched []string
	for _, r := range rules {
		watched = append(watched, module+"/"+r.pkg)
	}
	for _, p := range list(t, module+"/...") {
		rest := strings.TrimPrefix(p, module+"/")
		free := strings.HasPrefix(rest, "internal/") || strings.HasPrefix(rest, "examples/") || strings.HasPrefix(rest, "bench/") ||
			rest == "bench" || rest == "cmd/oncepost-dev"
		if !free && !slices.Contains(watched, p) {
			t.Errorf("%s has no rule", p)
		}
	}
}

func list(t *testing.T, args ...string) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", append([]string{"list"}, args...)...).Output()
	if err != nil {
		t.Fatalf("go list %v: %v", args, err)
	}
	return strings.Fields(string(out))
}
