package main

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"

	"github.com/oncepost/oncepost/internal/mysqldb"
	"github.com/oncepost/oncepost/locks"
)

type locksCmd struct {
	Binary string `default:"bin/oncepost"`
	Pairs  int    `default:"4000" help:"Acquisitions, and pairs of SELECTs, in turn."`
	Deaths int    `default:"20" help:"Holders killed; a quarter as many are frozen."`
}

const (
	lockTimeout = 5 * time.Second
	lockJob     = "bench"
)

// Run measures what a lock costs when nobody wants it, and how soon a waiter has it when its holder dies or freezes.
func (c *locksCmd) Run(b *bench) error {
	return b.each(func(w *world) error {
		db, err := mysqldb.Open(mysqldb.Config{DSN: w.dsn})
		if err != nil {
			return err
		}
		defer db.Close()
		l, err := locks.New(db, locks.Config{})
		if err != nil {
			return err
		}
		if err := c.cost(w, db, l); err != nil {
			return err
		}
		if err := c.deaths(w, l, "killed", syscall.SIGKILL, c.Deaths); err != nil {
			return err
		}
		return c.deaths(w, l, fmt.Sprintf("frozen, time-out %s", lockTimeout), syscall.SIGSTOP, (c.Deaths+3)/4)
	})
}

// cost compares an acquisition and release with two bare SELECTs, in turn on the same pool, and counts the statements.
func (c *locksCmd) cost(w *world, db *sql.DB, l *locks.Locker) error {
	var with, bare []time.Duration
	nothing := func(context.Context) error { return nil }
	before, err := questions(w)
	if err != nil {
		return err
	}
	for range c.Pairs {
		began := time.Now()
		if err := l.With(w.ctx, "cost", 0, nothing); err != nil {
			return err
		}
		with = append(with, time.Since(began))
		began = time.Now()
		for range 2 {
			var one int
			if err := db.QueryRowContext(w.ctx, "SELECT 1").Scan(&one); err != nil {
				return err
			}
		}
		bare = append(bare, time.Since(began))
	}
	after, err := questions(w)
	if err != nil {
		return err
	}
	a, s := median(with), median(bare)
	w.printf("locks: acquire and release %s, two bare SELECTs %s; ratio %.2f; %.2f statements a lock", a, s, float64(a)/float64(s),
		float64(after-before)/float64(c.Pairs)-2)
	return nil
}

// questions is how many statements the server has been sent.
func questions(w *world) (n int64, err error) {
	var name string
	err = w.db.QueryRowContext(w.ctx, "SHOW GLOBAL STATUS LIKE 'Questions'").Scan(&name, &n)
	return n, err
}

func median(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}

// deaths measures how long after a signal to the holder a waiter has the lock.
func (c *locksCmd) deaths(w *world, l *locks.Locker, what string, signal syscall.Signal, n int) error {
	var all []time.Duration
	for range n {
		took, err := c.death(w, l, signal)
		if err != nil {
			return err
		}
		all = append(all, took)
	}
	mid := median(all)
	w.printf("locks: holder %s: a waiter has the lock after %s (median of %d), %s at most", what, mid.Round(100*time.Microsecond), n,
		all[len(all)-1].Round(100*time.Microsecond))
	return nil
}

func (c *locksCmd) death(w *world, l *locks.Locker, signal syscall.Signal) (took time.Duration, err error) {
	cmd := exec.CommandContext(w.ctx, c.Binary, "job", "run", lockJob, "--lock-timeout", lockTimeout.String(), "--", "sleep", "600")
	cmd.Env, cmd.Stderr = append(os.Environ(), "ONCEPOST_MYSQL_DSN="+w.dsn), os.Stderr
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	defer func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()         // it was killed: that is the error
	}()
	err = until(w.ctx, func() bool { // a look: to try the lock could keep the holder from it
		var held bool
		err := w.db.QueryRowContext(w.ctx, "SELECT "+locks.HeldExpr(locks.Name("bench", "job/"+lockJob))).Scan(&held)
		return err == nil && held
	})
	if err != nil {
		return 0, err
	}
	got := make(chan time.Time, 1)
	failed := make(chan error, 1)
	go func() {
		failed <- l.With(w.ctx, "job/"+lockJob, -1, func(context.Context) error { got <- time.Now(); return nil })
	}()
	time.Sleep(1500 * time.Millisecond) // the waiter waits, and the holder has told the server its time-out
	began := time.Now()
	if err := cmd.Process.Signal(signal); err != nil {
		return 0, err
	}
	if err := <-failed; err != nil {
		return 0, err
	}
	return (<-got).Sub(began), nil
}
