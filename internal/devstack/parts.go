package devstack

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// parts are what runs, in the order in which it was started. Its methods may be called at the same time.
type parts struct {
	mu    sync.Mutex
	list  []part
	cause error
	dead  chan struct{} // closed when cause is set

	stopOnce sync.Once
	stopErr  error
}

type part struct {
	name string
	stop func() error
}

func newParts() *parts { return &parts{dead: make(chan struct{})} }

// run starts a part. f must end it and return soon after ctx has ended; returning earlier means that it has died.
func (p *parts) run(name string, f func(ctx context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	var err error
	go func() {
		defer close(done)
		err = f(ctx)
		if ctx.Err() == nil {
			p.died(name, err)
			err = nil // it has been told
		}
	}()
	p.add(name, func() error {
		cancel()
		<-done
		return err
	})
}

// add puts in a part that needs no goroutine.
func (p *parts) add(name string, stop func() error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.list = append(p.list, part{name, stop})
}

// died keeps the first death: others are likely to follow from it.
func (p *parts) died(name string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cause != nil {
		return
	}
	if err == nil {
		err = errors.New("it ended by itself")
	}
	p.cause = fmt.Errorf("%s died: %w", name, err)
	close(p.dead)
}

func (p *parts) err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cause
}

// stop ends the parts, the last one first. No part is left out because another one fails to stop.
func (p *parts) stop(progress *progress) error {
	p.stopOnce.Do(func() {
		p.mu.Lock()
		list := p.list
		p.mu.Unlock()
		var errs []error
		for i := len(list) - 1; i >= 0; i-- {
			began := time.Now()
			err := list[i].stop()
			if err != nil {
				errs = append(errs, fmt.Errorf("stop %s: %w", list[i].name, err))
			}
			progress.stopped(list[i].name, time.Since(began), err)
		}
		p.stopErr = errors.Join(errs...)
	})
	return p.stopErr
}
