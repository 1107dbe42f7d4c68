package stops

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oncepost/oncepost/internal/migrate"
	"github.com/oncepost/oncepost/internal/testdb"
	"github.com/oncepost/oncepost/worker"
)

func TestMain(m *testing.M) { os.Exit(testdb.Main(m)) }

var first, second = worker.Holder{1}, worker.Holder{2}

// stopsOf is a test's stops; its calls must succeed.
type stopsOf struct {
	*testing.T
	*Stops
}

func each(t *testing.T, cfg Config, test func(s stopsOf)) {
	t.Helper()
	testdb.Each(t, func(t *testing.T, schema *testdb.Schema) {
		if _, err := migrate.Up(t.Context(), schema.DB); err != nil {
			t.Fatal(err)
		}
		test(stopsOf{t, New(schema.DB, cfg)})
	})
}

func (s stopsOf) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s stopsOf) stop(scope string) {
	s.Helper()
	s.must(s.Stop(s.Context(), scope, "account_paused", "paused"))
}

func (s stopsOf) tries(h worker.Holder, want bool) {
	s.Helper()
	lasts, err := s.Try(s.Context(), worker.ScopeAll, h)
	s.must(err)
	if (lasts > 0) != want {
		s.Errorf("the trial of %d: %v, want it: %v", h[0], lasts, want)
	}
}

// one is the only stop of these scopes.
func (s stopsOf) one(scopes ...string) worker.Stop {
	s.Helper()
	all, err := s.Standing(s.Context(), scopes...)
	s.must(err)
	if len(all) != 1 {
		s.Fatalf("%+v, want one stop", all)
	}
	return all[0]
}

func (s stopsOf) none() {
	s.Helper()
	all, err := s.Standing(s.Context())
	s.must(err)
	if len(all) > 0 {
		s.Errorf("%+v, want no stop", all)
	}
}

// Another process's verdict changes nothing of a stop that is there: a hundred sends in flight make one stop.
func TestOneStopPerScope(t *testing.T) {
	each(t, Config{}, func(s stopsOf) {
		s.stop(worker.ScopeAll)
		before := s.one()
		if before.Left < 50*time.Second || before.Left > time.Minute || before.Stops != 1 || time.Since(before.Since).Abs() > time.Minute {
			s.Errorf("%+v", before)
		}
		s.must(s.Stop(s.Context(), worker.ScopeAll, "sender_not_verified", "another"))
		if after := s.one(); after.Class != before.Class || after.Stops != 1 || after.Since != before.Since || after.Left > before.Left {
			s.Errorf("%+v, then %+v", before, after)
		}
		s.stop("credentials:a")
		if c := s.one("credentials:a", "credentials:b"); c.Scope != "credentials:a" {
			s.Errorf("%+v", c)
		}
	})
}

// The trial is one process's, from the end of the lease until it gives it up or does not renew it in time.
func TestOneTrial(t *testing.T) {
	each(t, Config{Lease: time.Minute, Trial: time.Minute}, func(s stopsOf) {
		s.tries(first, false) // there is no stop
		s.stop(worker.ScopeAll)
		s.tries(first, false) // its lease has not ended
		s.ends("lease_ends_at")
		s.tries(first, true)
		s.tries(second, false)
		s.tries(first, true) // renewed
		s.must(s.Resume(s.Context(), worker.ScopeAll, second))
		s.must(s.Release(s.Context(), worker.ScopeAll, second))
		s.must(s.Extend(s.Context(), worker.ScopeAll, second, "x", "x"))
		if stop := s.one(); !stop.Trial || stop.Left > 0 || stop.Stops != 1 {
			s.Errorf("after another's words: %+v", stop)
		}
		s.must(s.Release(s.Context(), worker.ScopeAll, first))
		s.tries(second, true)
		s.ends("trial_ends_at") // the second is dead
		s.tries(first, true)
		s.must(s.Resume(s.Context(), worker.ScopeAll, second))
		s.must(s.Resume(s.Context(), worker.ScopeAll, first))
		s.none()
	})
}

// ends lets a time of the stop pass.
func (s stopsOf) ends(column string) {
	s.Helper()
	testdb.Exec(s, s.db, "UPDATE sending_stops SET "+column+" = NOW(6) - INTERVAL 1 MICROSECOND")
}

// Of many at once, one gets the trial.
func TestManyTry(t *testing.T) {
	each(t, Config{Lease: time.Microsecond}, func(s stopsOf) {
		s.stop(worker.ScopeAll)
		got := make(chan bool)
		for i := range 20 {
			go func() {
				lasts, err := s.Try(context.WithoutCancel(s.Context()), worker.ScopeAll, worker.Holder{byte(i + 1)})
				if err != nil {
					s.Error(err)
				}
				got <- lasts > 0
			}()
		}
		n := 0
		for range 20 {
			if <-got {
				n++
			}
		}
		if n != 1 {
			s.Errorf("%d have the trial", n)
		}
	})
}

func TestTheLeaseGrows(t *testing.T) {
	each(t, Config{}, func(s stopsOf) {
		s.stop(worker.ScopeAll)
		var minutes []int
		for range 6 {
			minutes = append(minutes, int(s.one().Left.Minutes()+0.5))
			s.ends("lease_ends_at")
			s.tries(first, true)
			s.must(s.Extend(s.Context(), worker.ScopeAll, first, "daily_quota", "the quota"))
			if stop := s.one(); stop.Class != "daily_quota" || stop.Trial {
				s.Errorf("%+v", stop)
			}
		}
		if want := []int{1, 2, 4, 8, 15, 15}; !slices.Equal(minutes, want) {
			s.Errorf("leases of %v minutes, want %v", minutes, want)
		}
		if stop := s.one(); stop.Stops != 7 {
			s.Errorf("%+v", stop)
		}
	})
}

// What a person has stopped, no worker starts.
func TestAPersonsStop(t *testing.T) {
	each(t, Config{Lease: time.Microsecond}, func(s stopsOf) {
		s.stop(worker.ScopeAll)
		s.tries(first, true)
		s.must(s.StopBy(s.Context(), "Ann", "wrong prices"))
		s.must(s.Resume(s.Context(), worker.ScopeAll, first)) // its trial has succeeded
		s.stop(worker.ScopeAll)
		s.tries(first, false)
		if stop := s.one(); stop.By != "Ann" || stop.Class != worker.ClassPerson || stop.Text != "wrong prices" || stop.Left != 0 {
			s.Errorf("%+v", stop)
		}
		s.stop("credentials:a")
		cleared, err := s.Clear(s.Context())
		s.must(err)
		if len(cleared) != 2 || cleared[0].By != "Ann" || !strings.HasPrefix(cleared[1].Scope, worker.ScopeCredentials) {
			s.Errorf("%+v", cleared)
		}
		s.none()
		if err := s.StopBy(s.Context(), "", "why"); err == nil {
			s.Error("nobody stops")
		}
	})
}
