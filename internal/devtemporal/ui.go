package devtemporal

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/temporalio/ui-server/v2/server"
	uiconfig "github.com/temporalio/ui-server/v2/server/config"
	"github.com/temporalio/ui-server/v2/server/server_options"
)

// webUI is Temporal's own web UI, whose assets are embedded in its module.
type webUI struct {
	server *server.Server
	done   chan struct{} // closed when its listener has ended
	err    error
}

// startUI returns when the UI answers. The port has been found free; the UI server ends the process when it cannot
// bind, which leaves only the moment in between.
func startUI(ctx context.Context, p ports, namespace string) (*webUI, error) {
	u := &webUI{done: make(chan struct{})}
	u.server = server.NewServer(server_options.WithConfigProvider(&uiconfig.Config{
		TemporalGRPCAddress: localhost(p.Frontend),
		Host:                "127.0.0.1",
		Port:                p.UI,
		EnableUI:            true,
		DefaultNamespace:    namespace,
		DisableNewsFetch:    true,
		HideLogs:            true,
		CORS:                uiconfig.CORS{CookieInsecure: true}, // plain http
	}))
	go func() {
		defer close(u.done)
		u.err = u.server.Start()
	}()
	health := url.URL{Scheme: "http", Host: localhost(p.UI), Path: "/healthz"}
	if err := poll(ctx, "the web UI", func(ctx context.Context) error { return u.answers(ctx, health.String()) }); err != nil {
		u.stop()
		return nil, err
	}
	return u, nil
}

func (u *webUI) answers(ctx context.Context, health string) error {
	select {
	case <-u.done:
		return fmt.Errorf("%w: it ended: %w", errHopeless, u.err)
	default:
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, health, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", health, response.Status)
	}
	return nil
}

func (u *webUI) stop() {
	u.server.Stop()
	<-u.done
}
