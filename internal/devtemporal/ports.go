package devtemporal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
)

// ports are those of one start. The inner services choose new ones each time: nobody else needs to find them.
type ports struct {
	Frontend int `json:"frontend"`
	UI       int `json:"ui,omitempty"` // 0 = no UI

	history, matching, worker int
}

const portsFile = "ports.json"

// choosePorts takes the ports that were asked for, else those remembered in Dir, else free ones. A port that was asked
// for and is taken is an error; a remembered one is then replaced.
func choosePorts(ctx context.Context, o Options) (ports, error) {
	remembered, err := readPorts(o.Dir)
	if err != nil {
		return ports{}, err
	}
	var p ports
	if p.Frontend, err = choosePort(ctx, "frontend", o.FrontendPort, remembered.Frontend); err != nil {
		return ports{}, err
	}
	if o.UIPort != 0 {
		if p.UI, err = choosePort(ctx, "web UI", o.UIPort, remembered.UI); err != nil {
			return ports{}, err
		}
	}
	for _, inner := range []*int{&p.history, &p.matching, &p.worker} {
		if *inner, err = freePort(ctx, p); err != nil {
			return ports{}, err
		}
	}
	return p, nil
}

func choosePort(ctx context.Context, what string, asked, remembered int) (int, error) {
	if asked != FreePort {
		if err := bindable(ctx, asked); err != nil {
			return 0, fmt.Errorf("%s port %d is taken: %w", what, asked, err)
		}
		return asked, nil
	}
	if remembered != 0 && bindable(ctx, remembered) == nil {
		return remembered, nil
	}
	return freePort(ctx, ports{})
}

// bindable tells whether a listener can be opened. The server and the UI exit or panic where they cannot bind, so they
// are asked to only after this.
func bindable(ctx context.Context, port int) error {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", localhost(port))
	if err != nil {
		return err
	}
	return l.Close()
}

// freePort looks below the ports that systems hand to outgoing connections, so that the port is still free at the
// next start, and passes over those that p has.
func freePort(ctx context.Context, p ports) (int, error) {
	const low, high, tries = 20000, 32000, 200
	var last error
	for range tries {
		port := low + rand.IntN(high-low)
		if port == p.Frontend || port == p.UI || port == p.history || port == p.matching {
			continue
		}
		if last = bindable(ctx, port); last == nil {
			return port, nil
		}
	}
	return 0, fmt.Errorf("no free port on 127.0.0.1 in %d tries: %w", tries, last)
}

func localhost(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }

func readPorts(dir string) (p ports, err error) {
	if dir == "" {
		return p, nil
	}
	data, err := os.ReadFile(filepath.Join(dir, portsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return p, nil
	}
	if err != nil {
		return p, err
	}
	if err := json.Unmarshal(data, &p); err != nil {
		return p, fmt.Errorf("%s in %s: %w (it can be removed)", portsFile, dir, err)
	}
	return p, nil
}

// remember writes the ports down. A UI port stays known over a start without UI.
func (p ports) remember(dir string) error {
	if dir == "" {
		return nil
	}
	before, err := readPorts(dir)
	if err != nil {
		return err
	}
	if p.UI == 0 {
		p.UI = before.UI
	}
	data, err := json.Marshal(p)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, portsFile), data, 0o600)
}
