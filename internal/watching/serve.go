package watching

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/oncepost/oncepost/monitor"
)

// off is the address that says nowhere.
const off = "off"

// defaultListen is where a process serves that was not told where.
func (w *Watching) defaultListen() string {
	switch {
	case w.cfg.Relay != nil:
		return "127.0.0.1:9470"
	case w.cfg.Tally != nil:
		return "127.0.0.1:9471"
	}
	return "127.0.0.1:9472"
}

// listen returns nil where nothing is served. An address that nobody asked for may be taken: by a second worker on the machine.
func (w *Watching) listen(ctx context.Context) (net.Listener, error) {
	if w.cfg.Listener != nil {
		return w.cfg.Listener, nil
	}
	address, asked := w.defaultListen(), w.cfg.Listen != nil
	if asked {
		address = *w.cfg.Listen
	}
	if address == off {
		return nil, nil //nolint:nilnil // as documented
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", address)
	switch {
	case err == nil:
		w.cfg.Logger.Info("status page and metrics", "url", "http://"+l.Addr().String()+"/")
		return l, nil
	case asked:
		return nil, fmt.Errorf("--listen (ONCEPOST_LISTEN): %w", err)
	}
	w.cfg.Logger.Warn("there is no status page and no metrics of this process: give it an address with --listen, or off", "error", err)
	return nil, nil //nolint:nilnil // as documented
}

const (
	headerTimeout = 5 * time.Second
	answerTimeout = 15 * time.Second
)

func (w *Watching) serve(ctx context.Context, l net.Listener) error {
	registry, err := w.registry()
	if err != nil {
		return errors.Join(err, l.Close())
	}
	server := &http.Server{
		Handler:           monitor.Site{Watch: w.watch, UI: w.cfg.UI, Gatherer: registry, Ready: w.ready}.Handler(),
		ReadHeaderTimeout: headerTimeout, WriteTimeout: answerTimeout,
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	select {
	case err = <-ended:
		return fmt.Errorf("serve the status page: %w", err)
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if err := server.Shutdown(last); err != nil {
		w.cfg.Logger.Debug("a reader of the status page was cut off", "error", err)
	}
	return nil
}

// readFresh: a relay that reads does so several times a second.
const readFresh = 10 * time.Second

// ready says why the relay would not start messages now.
func (w *Watching) ready() error {
	if w.cfg.Relay == nil {
		return nil
	}
	health := w.cfg.Relay.Health()
	var errs []error
	if health.Read > readFresh {
		errs = append(errs, fmt.Errorf("the relay has read the outbox %s ago", health.Read.Round(time.Second)))
	}
	for name, detail := range health.Conditions {
		errs = append(errs, fmt.Errorf("%s: %s", name, detail))
	}
	return errors.Join(errs...)
}
