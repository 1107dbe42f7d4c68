package integration

import (
	"context"
	"database/sql"
	"log/slog"
	"strings"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"github.com/oncepost/oncepost/activities"
	"github.com/oncepost/oncepost/alerts"
	"github.com/oncepost/oncepost/internal/config"
	"github.com/oncepost/oncepost/internal/devtemporal"
	"github.com/oncepost/oncepost/internal/doctor"
	"github.com/oncepost/oncepost/internal/mysqldb"
	"github.com/oncepost/oncepost/internal/ses"
	"github.com/oncepost/oncepost/internal/testdb"
	"github.com/oncepost/oncepost/schemas"
	"github.com/oncepost/oncepost/starter"
)

// examined runs all checks on a database and a namespace.
func examined(t *testing.T, dsn string, temporal *devtemporal.Server, namespace string) []doctor.Finding {
	t.Helper()
	return doctor.Run(t.Context(), doctor.Config{
		OpenDB: func() (*sql.DB, error) { return mysqldb.Open(mysqldb.Config{DSN: dsn}) },
		Dial: func() (client.Client, string, error) {
			c, err := client.NewLazyClient(client.Options{HostPort: temporal.FrontendAddr(), Namespace: namespace, Logger: silent()})
			return c, namespace, err
		},
		Mailer:     func(context.Context) (*ses.Mailer, error) { return nil, nil }, //nolint:nilnil // no sender is set
		Activities: func() (*activities.Activities, error) { return config.NewActivities(nil, "") },
		Alerts:     alerts.Config{Webhook: "http://127.0.0.1:1/", Logger: slog.New(slog.DiscardHandler)},
	})
}

// has fails unless one of the findings is this one.
func has(t *testing.T, found []doctor.Finding, check string, s doctor.Severity, words ...string) {
	t.Helper()
	for _, f := range found {
		all := f.Check == check && f.Severity == s
		for _, word := range words {
			all = all && strings.Contains(f.Text+" "+f.Do, word)
		}
		if all {
			return
		}
	}
	t.Errorf("no %s of %s with %q: %+v", s, check, words, found)
}

// All is well in a namespace with a worker; and each thing that can be wrong with one is said.
func TestDoctorOnTemporal(t *testing.T) {
	temporal := newTemporal(t, attributes)
	migrated(t, func(t *testing.T, s *testdb.Schema) {
		const week = 7 * 24 * time.Hour
		name, c := newNamespace(t, temporal, s, "doctor", week)
		found := examined(t, s.DSN, temporal, name)
		has(t, found, "temporal.task-queues", doctor.Note, schemas.WorkflowTaskQueue, schemas.SendTaskQueue)
		has(t, found, "temporal.binding", doctor.OK, "first relay")

		_, _, stop := runRelay(t, s.DSN, c, name, starter.Config{})
		runWorker(t, s.DSN, c, &mailbox{})
		testdb.Eventually(t, "the relay remembers the namespace, and the worker polls", func() bool {
			found = examined(t, s.DSN, temporal, name)
			return said(found, "temporal.task-queues") == doctor.OK && testdb.Value[int](t, s.DB, "SELECT COUNT(*) FROM outbox_binding") == 1
		})
		stop()
		found = examined(t, s.DSN, temporal, name)
		if doctor.Worst(found) > doctor.Note {
			t.Errorf("%+v", found)
		}
		has(t, found, "temporal.binding", doctor.OK, "remembers")

		for retention, want := range map[time.Duration]doctor.Severity{24 * time.Hour: doctor.Warning, 96 * time.Hour: doctor.Note} {
			other, _ := newNamespace(t, temporal, s, "doctor-"+retention.String(), retention)
			found := examined(t, s.DSN, temporal, other)
			has(t, found, "temporal.retention", want, "longest outage")
			has(t, found, "temporal.binding", doctor.Error, "--rebind")
		}
		found = examined(t, s.DSN, temporal, "nowhere")
		has(t, found, "temporal.namespace", doctor.Error, "namespace create --namespace nowhere")
		has(t, found, "temporal.rest", doctor.Note, "temporal.retention")
	})
}

func said(found []doctor.Finding, check string) doctor.Severity {
	for _, f := range found {
		if f.Check == check {
			return f.Severity
		}
	}
	return -1
}

func TestDoctorMissesSearchAttributes(t *testing.T) {
	temporal := newTemporal(t, map[string]enumspb.IndexedValueType{schemas.AttributeSince: enumspb.INDEXED_VALUE_TYPE_KEYWORD})
	migrated(t, func(t *testing.T, s *testdb.Schema) {
		found := examined(t, s.DSN, temporal, devtemporal.DefaultNamespace)
		has(t, found, "temporal.search-attributes", doctor.Error, "OncepostState is not registered", "--type Keyword")
		has(t, found, "temporal.search-attributes", doctor.Error, "OncepostSince is a Keyword and not a Datetime")
	})
}
