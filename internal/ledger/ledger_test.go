package ledger

import (
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/oncepost/oncepost/activities"
	"github.com/oncepost/oncepost/internal/migrate"
	"github.com/oncepost/oncepost/internal/mysqldb"
	"github.com/oncepost/oncepost/internal/testdb"
)

func TestMain(m *testing.M) { os.Exit(testdb.Main(m)) }

// bench is a ledger in a fresh database.
type bench struct {
	*Ledger
	t    *testing.T
	s    *testdb.Schema
	pool *sql.DB
}

func each(t *testing.T, test func(t *testing.T, b bench)) {
	t.Helper()
	testdb.Each(t, func(t *testing.T, s *testdb.Schema) {
		if _, err := migrate.Up(t.Context(), s.DB); err != nil {
			t.Fatal(err)
		}
		db, err := mysqldb.Open(mysqldb.Config{DSN: s.DSN})
		if err != nil {
			t.Fatal(err)
		}
		testdb.CloseAtEnd(t, db)
		l, err := New(t.Context(), db)
		if err != nil {
			t.Fatal(err)
		}
		test(t, bench{l, t, s, db})
	})
}

var key = activities.Key{MessageID: "payment_failed:sub_9:2026-11", Step: "mail", Recipient: [32]byte{1, 0, 32}}

// try is a claim of key with a token of its own.
func try(generation int) activities.Claim {
	c := activities.Claim{Key: key, Content: [32]byte{7}, Generation: generation, For: time.Minute}
	rand.Read(c.Token[:]) // never fails (documented)
	return c
}

func (b bench) want(c activities.Claim, want activities.Entry) activities.Claim {
	b.t.Helper()
	got, err := b.Claim(b.t.Context(), c)
	if err != nil {
		b.t.Fatal(err)
	}
	if want.Standing == activities.StandingBusy && got.Wait > 0 {
		got.Wait, got.ErrorClass = 0, ""
	}
	if got != want {
		b.t.Fatalf("claim of generation %d: %+v, want %+v", c.Generation, got, want)
	}
	return c
}

func (b bench) record(c activities.Claim, o activities.Outcome) {
	b.t.Helper()
	if err := b.Record(b.t.Context(), c.Key, c.Token, o); err != nil {
		b.t.Fatal(err)
	}
}

// expire lets the claim run out.
func (b bench) expire() {
	b.t.Helper()
	testdb.Exec(b.t, b.s.DB, "UPDATE sends SET expires_at = NOW(6) - INTERVAL 1 MICROSECOND")
}

var (
	claimed = activities.Entry{Standing: activities.StandingClaimed}
	busy    = activities.Entry{Standing: activities.StandingBusy}
	done    = activities.Outcome{Standing: activities.StandingDone, ResultID: "ses-1"}
)

func TestOnlyOneAttemptIsGivenLeave(t *testing.T) {
	each(t, func(t *testing.T, b bench) {
		first := b.want(try(0), claimed)
		b.want(try(0), busy)
		b.want(try(1), busy) // an authorisation does not end a try that is under way
		b.record(first, done)
		for _, generation := range []int{0, 1, 2} { // a decision that is replayed, before and after
			b.want(try(generation), activities.Entry{Standing: activities.StandingDone, ResultID: "ses-1"})
		}
	})
}

func TestWaitIsWhatIsLeftOfTheClaim(t *testing.T) {
	each(t, func(t *testing.T, b bench) {
		b.want(try(0), claimed)
		got, err := b.Claim(t.Context(), try(0))
		if err != nil || got.Standing != activities.StandingBusy || got.Wait <= 50*time.Second || got.Wait > time.Minute {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

func TestWhatCertainlyDidNotHappenIsTriedAgain(t *testing.T) {
	each(t, func(t *testing.T, b bench) {
		for range 3 {
			c := b.want(try(0), claimed)
			b.record(c, activities.Outcome{Standing: activities.StandingFree, ErrorClass: "throttled"})
		}
		c := b.want(try(0), claimed)
		b.record(c, activities.Outcome{Standing: activities.StandingRefused, ErrorClass: "rejected"})
		b.want(try(0), activities.Entry{Standing: activities.StandingRefused, ErrorClass: "rejected"})
		b.want(try(1), activities.Entry{Standing: activities.StandingRefused, ErrorClass: "rejected"})
	})
}

// One authorisation is one more try, whoever asks for it and however often.
func TestUnknownTakesOneMoreGeneration(t *testing.T) {
	for _, how := range []string{"recorded", "expired"} {
		t.Run(how, func(t *testing.T) {
			each(t, func(t *testing.T, b bench) {
				unknown := func(c activities.Claim, next int) {
					t.Helper()
					class := ""
					if how == "recorded" {
						class = "time-out"
						b.record(c, activities.Outcome{Standing: activities.StandingUnknown, ErrorClass: class})
					} else {
						b.expire()
					}
					for generation := range next {
						b.want(try(generation), activities.Entry{Standing: activities.StandingUnknown, Next: next, ErrorClass: class})
					}
					b.want(try(next+1), activities.Entry{Standing: activities.StandingUnknown, Next: next, ErrorClass: class})
				}
				first := b.want(try(0), claimed)
				unknown(first, 1)
				second := b.want(try(1), claimed)
				b.want(try(1), busy)
				unknown(second, 2)
				third := b.want(try(2), claimed)
				if err := b.Record(t.Context(), key, first.Token, done); !errors.Is(err, activities.ErrSuperseded) {
					t.Errorf("the outcome of an attempt that was given up: %v, want ErrSuperseded", err)
				}
				b.record(third, done)
				b.want(try(0), activities.Entry{Standing: activities.StandingDone, ResultID: "ses-1"})
			})
		})
	}
}

// A generation that was authorised and certainly came to nothing is not used up; but who does not know of it must ask.
func TestAnAuthorisationIsKeptUntilItIsUsed(t *testing.T) {
	each(t, func(t *testing.T, b bench) {
		b.record(b.want(try(0), claimed), activities.Outcome{Standing: activities.StandingUnknown})
		b.record(b.want(try(1), claimed), activities.Outcome{Standing: activities.StandingFree, ErrorClass: "throttled"})
		b.want(try(0), activities.Entry{Standing: activities.StandingUnknown, Next: 1, ErrorClass: "throttled", Authorised: true})
		b.record(b.want(try(1), claimed), done)
	})
}

// What a person says counts more than what stands there, but not while an attempt is under way.
func TestSettle(t *testing.T) {
	for name, o := range map[string]activities.Outcome{
		"unknown": {Standing: activities.StandingUnknown}, "free": {Standing: activities.StandingFree}, "refused": {Standing: activities.StandingRefused},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, b bench) {
				if err := b.Settle(t.Context(), key); !errors.Is(err, activities.ErrSuperseded) {
					t.Errorf("of nothing: %v", err)
				}
				c := b.want(try(0), claimed)
				if err := b.Settle(t.Context(), key); !errors.Is(err, activities.ErrSuperseded) {
					t.Errorf("under way: %v", err)
				}
				b.record(c, o)
				for range 2 {
					if err := b.Settle(t.Context(), key); err != nil {
						t.Error(err)
					}
				}
				b.want(try(0), activities.Entry{Standing: activities.StandingDone, ErrorClass: "resolved"})
			})
		})
	}
}

// Authorise is for effects whose claims do not know of it: it lets one more try of what is unknown, however often it is said.
func TestAuthorise(t *testing.T) {
	each(t, func(t *testing.T, b bench) {
		authorise := func(generation int, want error) {
			t.Helper()
			if err := b.Authorise(t.Context(), key, generation); !errors.Is(err, want) {
				t.Fatalf("generation %d: %v, want %v", generation, err, want)
			}
		}
		authorise(1, activities.ErrSuperseded) // there is nothing
		first := b.want(try(0), claimed)
		authorise(1, activities.ErrSuperseded) // it is being tried
		b.expire()
		authorise(2, activities.ErrSuperseded)
		authorise(1, nil)
		authorise(1, nil) // the answer to the first was lost
		if err := b.Record(t.Context(), key, first.Token, done); !errors.Is(err, activities.ErrSuperseded) {
			t.Errorf("the outcome of the try that was given up: %v", err)
		}
		b.want(try(0), activities.Entry{Standing: activities.StandingUnknown, Next: 1, ErrorClass: "authorised", Authorised: true})
		second := b.want(try(1), claimed)
		authorise(1, nil) // used up: it lets nothing more
		b.want(try(1), busy)
		b.record(second, done)
		authorise(1, nil)
		authorise(2, activities.ErrSuperseded)
		b.want(try(1), activities.Entry{Standing: activities.StandingDone, ResultID: "ses-1"})
	})
}

// The server did it, and the answer was lost: the same attempt asks again with its own token.
func TestLostAnswers(t *testing.T) {
	each(t, func(t *testing.T, b bench) {
		c := b.want(b.want(try(0), claimed), claimed)
		b.record(c, done)
		b.record(c, done)
		b.want(c, activities.Entry{Standing: activities.StandingDone, ResultID: "ses-1"}) // no leave once an outcome stands
		if err := b.Record(t.Context(), key, c.Token, activities.Outcome{Standing: activities.StandingUnknown}); !errors.Is(err, activities.ErrSuperseded) {
			t.Errorf("another outcome over a recorded one: %v", err)
		}
	})
}

func TestAnUnknownOutcomeGivesItsOwnAttemptNoLeave(t *testing.T) {
	each(t, func(t *testing.T, b bench) {
		c := b.want(try(0), claimed)
		b.record(c, activities.Outcome{Standing: activities.StandingUnknown})
		b.want(c, activities.Entry{Standing: activities.StandingUnknown, Next: 1})
	})
}

// What is known is recorded even after the claim has run out, while nobody else has claimed.
func TestALateOutcomeIsRecorded(t *testing.T) {
	each(t, func(t *testing.T, b bench) {
		c := b.want(try(0), claimed)
		b.expire()
		b.want(try(0), activities.Entry{Standing: activities.StandingUnknown, Next: 1})
		b.record(c, done)
		b.want(try(1), activities.Entry{Standing: activities.StandingDone, ResultID: "ses-1"})
	})
}

func TestTheSameKeyForSomethingElseIsRefused(t *testing.T) {
	each(t, func(t *testing.T, b bench) {
		c := b.want(try(0), claimed)
		other := try(0)
		other.Content[31] = 1
		b.want(other, activities.Entry{Standing: activities.StandingDiffers})
		b.record(c, done)
		b.want(other, activities.Entry{Standing: activities.StandingDiffers, ResultID: "ses-1"})
	})
}

// Keys are bytes: neither letter case, accents nor trailing spaces make two one.
func TestKeysAreBytes(t *testing.T) {
	each(t, func(t *testing.T, b bench) {
		keys := []activities.Key{
			{MessageID: "a", Step: "s"},
			{MessageID: "A", Step: "s"},
			{MessageID: "a", Step: "S"},
			{MessageID: "a", Step: "s "},
			{MessageID: "a", Step: "é"},
			{MessageID: "a", Step: "e"},
			{MessageID: "a", Step: "s", Recipient: [32]byte{31: 32}},
			{MessageID: "a", Step: "s", Recipient: [32]byte{32}},
		}
		for _, k := range keys {
			c := try(0)
			c.Key = k
			b.want(c, claimed)
		}
	})
}

// Many attempts at one key at once: one is given leave, and no statement fails.
func TestAttemptsAtOnce(t *testing.T) {
	each(t, func(t *testing.T, b bench) {
		for _, generation := range []int{0, 1} {
			var mu sync.Mutex
			given := map[activities.Standing]int{}
			var last activities.Claim
			var all sync.WaitGroup
			for range 16 {
				all.Go(func() {
					c := try(generation)
					e, err := b.Claim(t.Context(), c)
					if err != nil {
						t.Error(err)
					}
					mu.Lock()
					defer mu.Unlock()
					if given[e.Standing]++; e.Standing == activities.StandingClaimed {
						last = c
					}
				})
			}
			all.Wait()
			if given[activities.StandingClaimed] != 1 || given[activities.StandingBusy] != 15 {
				t.Errorf("generation %d: %v", generation, given)
			}
			b.record(last, activities.Outcome{Standing: activities.StandingUnknown})
		}
	})
}

// A hundred sends at once take no more than a few connections.
func TestConnectionsAreBounded(t *testing.T) {
	each(t, func(t *testing.T, b bench) {
		var all sync.WaitGroup
		for i := range 100 {
			all.Go(func() {
				c := try(0)
				c.Step = fmt.Sprint(i)
				if _, err := b.Claim(t.Context(), c); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if n := b.pool.Stats().OpenConnections; n > maxCalls {
			t.Errorf("%d connections", n)
		}
	})
}

// In the normal case a send costs one statement before and one after, and prepares none.
func TestOneStatementBeforeAndOneAfter(t *testing.T) {
	each(t, func(t *testing.T, b bench) {
		b.pool.SetMaxOpenConns(1)
		executed := func() (n int) {
			var name string
			if err := b.pool.QueryRowContext(t.Context(), "SHOW SESSION STATUS LIKE 'Questions'").Scan(&name, &n); err != nil {
				t.Fatal(err)
			}
			return n
		}
		warm := try(0)
		warm.Step = "warm"
		b.record(b.want(warm, claimed), done)
		before := executed()
		b.record(b.want(try(0), claimed), done)
		if n := executed() - before - 1; n != 2 { // the second count counts itself
			t.Errorf("%d statements, want 2", n)
		}
	})
}
