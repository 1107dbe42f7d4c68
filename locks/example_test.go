package locks_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"strings"
	"time"

	"github.com/oncepost/oncepost/locks"
)

var db *sql.DB // a pool of your MySQL

func work(context.Context) error { return nil }

// One instance of many does the work; the others go on.
func ExampleLocker_With() {
	l, err := locks.New(db, locks.Config{})
	if err != nil {
		log.Fatal(err)
	}
	err = l.With(context.Background(), "reindex", 0, work)
	var busy *locks.NotAcquiredError
	switch {
	case errors.As(err, &busy):
		log.Printf("session %d is at it", busy.Holder)
	case err != nil:
		log.Fatal(err)
	}
}

// Two requests that sign up the same address wait for each other, where a UNIQUE index cannot help.
func ExampleKey() {
	email := "First.User@example.com"
	key := locks.Key("users.email", strings.ToLower(email))
	fmt.Println(strings.HasPrefix(key, "users.email/"), strings.Contains(key, "first"))
	// Output: true false
}

// Cron starts it on each machine, and it runs once a day.
func ExampleLocker_OncePer() {
	l, err := locks.New(db, locks.Config{Report: func(r locks.Report) { log.Print(r.Text(), r.Keys, r.Err) }})
	if err != nil {
		log.Fatal(err)
	}
	ran, err := l.OncePer(context.Background(), "leave-accrual", locks.Day(time.Now().UTC()), work)
	log.Print(ran, err)
}
