package main

import (
	"bufio"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/oncepost/oncepost/internal/mysqlserver"
	"github.com/oncepost/oncepost/internal/sesstandin"
)

type deathsCmd struct {
	Binary    string        `default:"bin/oncepost"`
	Tries     int           `default:"20" help:"Of each part and signal."`
	Threshold time.Duration `default:"5s"`
	AtOnce    int           `default:"4" help:"Pipelines at the same time: most of the time is waiting."`
	Parts     []string      `default:"relay,worker,temporal,database"`
	Signals   []string      `default:"KILL,STOP"`
}

// most is what may come on top of the threshold.
const most = 10 * time.Second

// Run kills and freezes each part, and measures when people hear of it, and that they hear that it is over.
func (c *deathsCmd) Run(b *bench) error {
	slots := make(chan struct{}, c.AtOnce)
	var all sync.WaitGroup
	var mu sync.Mutex
	var errs []error
	for _, name := range b.databases {
		flavour, err := mysqlserver.ParseFlavour(name)
		if err != nil {
			return err
		}
		for _, part := range c.Parts {
			for _, signal := range c.Signals {
				slots <- struct{}{}
				all.Go(func() {
					defer func() { <-slots }()
					err := b.on(flavour, func(w *world) error { return c.measure(b, w, part, signal) })
					if err != nil {
						mu.Lock()
						defer mu.Unlock()
						errs = append(errs, fmt.Errorf("%s, %s, %s: %w", name, part, signal, err))
					}
				})
			}
		}
	}
	all.Wait()
	return errors.Join(errs...)
}

// temporalChild runs a Temporal until it is killed, and prints its address.
func temporalChild(b *bench, dir string) error {
	server, err := startTemporal(b, dir)
	if err != nil {
		return err
	}
	fmt.Println(server.FrontendAddr())
	<-b.ctx.Done()
	return server.Stop()
}

// town is a pipeline of processes, and the people who hear of it.
type town struct {
	*world
	c        *deathsCmd
	env      []string
	inbox    *sesstandin.Server // of the alerts
	dir      string
	relay    *exec.Cmd
	worker   *exec.Cmd
	temporal *exec.Cmd
	address  string
}

func (c *deathsCmd) measure(b *bench, w *world, part, signal string) (err error) {
	t := &town{world: w, c: c}
	if err := t.open(); err != nil {
		return errors.Join(err, t.close())
	}
	defer func() { err = errors.Join(err, t.close()) }()
	var took, over []time.Duration
	for range c.Tries {
		tell, clear, err := t.try(part, signal)
		if err != nil {
			return fmt.Errorf("after %d tries: %w", len(took), err)
		}
		took, over = append(took, tell), append(over, clear)
	}
	late := 0
	for _, d := range took {
		if d > c.Threshold+most {
			late++
		}
	}
	slices.Sort(took)
	slices.Sort(over)
	w.printf("deaths: %s by SIG%s: told in %d of %d within %s + %s: %.1f s in the middle, %.1f s at most; over %.1f s after its return, %.1f s at most",
		part, signal, c.Tries-late, c.Tries, c.Threshold, most, took[len(took)/2].Seconds(), took[len(took)-1].Seconds(),
		over[len(over)/2].Seconds(), over[len(over)-1].Seconds())
	return b.ctx.Err()
}

func (t *town) open() error {
	var err error
	if t.dir, err = os.MkdirTemp("", "oncepost-bench-deaths-"); err != nil {
		return err
	}
	if t.inbox, err = sesstandin.New(sesstandin.Config{MaxMails: 1 << 16, MaxBytes: 1 << 28}); err != nil {
		return err
	}
	server := httptest.NewServer(t.inbox.Handler())
	s := t.c.Threshold.String()
	t.env = []string{
		"ONCEPOST_ALERT_FROM=alerts@example.com", "ONCEPOST_ALERT_TO=first.admin@example.com", "ONCEPOST_ALERT_ENDPOINT=" + server.URL,
		"ONCEPOST_MAIL_FROM=mail@example.com", "AWS_ENDPOINT_URL_SES=" + server.URL, "AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=any",
		"AWS_SECRET_ACCESS_KEY=any", "ONCEPOST_LISTEN=off", "ONCEPOST_WATCH_NO_RELAY=" + s, "ONCEPOST_WATCH_NO_WORKER=" + s,
		"ONCEPOST_WATCH_STALLED=" + s, "ONCEPOST_WATCH_DATABASE_AWAY=" + s, "ONCEPOST_WATCH_TEMPORAL_AWAY=" + s, "ONCEPOST_WATCH_OLDEST_ROW=" + s,
		"ONCEPOST_WATCH_STUCK=" + s, "ONCEPOST_WATCH_CLEAR=2s", "ONCEPOST_LOG_LEVEL=error",
	}
	if err := t.startTemporal(); err != nil {
		return err
	}
	if err := t.start("relay"); err != nil {
		return err
	}
	if err := t.start("worker"); err != nil {
		return err
	}
	return t.calm()
}

// startTemporal starts it as a process of its own, at the same address each time.
func (t *town) startTemporal() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(t.ctx, self, "child", "temporal", filepath.Join(t.dir, "temporal"))
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return fmt.Errorf("start Temporal: %w", err)
	}
	t.temporal, t.address = cmd, strings.TrimSpace(line)
	return nil
}

func (t *town) start(role string) error {
	cmd := t.process(t.c.Binary, t.address, role)
	cmd.Env, cmd.Stderr = append(cmd.Env, t.env...), nil
	if role == "relay" {
		t.relay = cmd
	} else {
		t.worker = cmd
	}
	return cmd.Start()
}

// calm waits until `oncepost status` finds nothing, and people have heard the last word.
func (t *town) calm() error {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		cmd := t.process(t.c.Binary, t.address, "status")
		cmd.Env, cmd.Stderr = append(cmd.Env, t.env...), nil
		if cmd.Run() == nil {
			return t.inbox.ClearMails()
		}
	}
	return errors.New("it does not calm down in a minute")
}

// try lets a part die, and live again.
func (t *town) try(part, signal string) (told, over time.Duration, err error) {
	began := time.Now()
	if err := t.die(part, signal); err != nil {
		return 0, 0, err
	}
	title := map[string]string{
		"relay": "no relay is alive", "worker": "no worker is alive", "temporal": "Temporal cannot be reached", "database": "the database cannot be used",
	}[part]
	if told, err = t.hears("[alert] oncepost: "+title, began); err != nil {
		return 0, 0, err
	}
	if err := t.revive(part, signal); err != nil {
		return 0, 0, err
	}
	if over, err = t.hears("[alert] oncepost: over: "+title, time.Now()); err != nil {
		return 0, 0, err
	}
	for _, m := range t.inbox.Mails() {
		if !strings.Contains(m.Subject, title) {
			return 0, 0, fmt.Errorf("a false alarm: %s", m.Subject)
		}
	}
	return told, over, t.calm()
}

func (t *town) hears(subject string, since time.Time) (time.Duration, error) {
	for end := since.Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		for _, m := range t.inbox.Mails() {
			if m.Subject == subject {
				return m.ReceivedAt.Sub(since), nil
			}
		}
	}
	return 0, fmt.Errorf("nobody has heard in a minute: %s", subject)
}

func (t *town) pid(part string) int {
	switch part {
	case "relay":
		return t.relay.Process.Pid
	case "worker":
		return t.worker.Process.Pid
	case "temporal":
		return t.temporal.Process.Pid
	}
	return t.server.PID()
}

func (t *town) die(part, signal string) error {
	if signal == "STOP" {
		return syscall.Kill(t.pid(part), syscall.SIGSTOP)
	}
	if part == "database" {
		return t.server.Kill()
	}
	if err := syscall.Kill(t.pid(part), syscall.SIGKILL); err != nil {
		return err
	}
	_ = map[string]*exec.Cmd{"relay": t.relay, "worker": t.worker, "temporal": t.temporal}[part].Wait() // killed: that is the error
	return nil
}

func (t *town) revive(part, signal string) (err error) {
	switch {
	case signal == "STOP":
		return syscall.Kill(t.pid(part), syscall.SIGCONT)
	case part == "database":
		t.server, err = mysqlserver.Start(t.ctx, t.server.Options())
		return err
	case part == "temporal":
		return t.startTemporal()
	}
	return t.start(part)
}

func (t *town) close() error {
	for _, cmd := range []*exec.Cmd{t.relay, t.worker, t.temporal} {
		if cmd != nil && cmd.Process != nil {
			_ = cmd.Process.Kill() // it may have ended
			_ = cmd.Wait()         // it was killed: that is the error
		}
	}
	var errs []error
	if t.inbox != nil {
		errs = append(errs, t.inbox.Close())
	}
	errs = append(errs, t.server.Kill())
	return errors.Join(append(errs, os.RemoveAll(t.dir))...)
}
