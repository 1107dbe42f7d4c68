package devstack

import (
	"context"
	"log/slog"
	"path/filepath"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"

	"github.com/oncepost/oncepost/internal/devtemporal"
	"github.com/oncepost/oncepost/internal/telemetry"
	"github.com/oncepost/oncepost/schemas"
)

// SearchAttributes are those that a namespace for oncepost needs.
func SearchAttributes() map[string]enumspb.IndexedValueType {
	return map[string]enumspb.IndexedValueType{
		schemas.AttributeState: enumspb.INDEXED_VALUE_TYPE_KEYWORD,
		schemas.AttributeSince: enumspb.INDEXED_VALUE_TYPE_DATETIME,
	}
}

func (s *Stack) startTemporal(ctx context.Context) (string, error) {
	server, err := devtemporal.Start(ctx, devtemporal.Options{
		Dir:              filepath.Join(s.opts.Dir, "temporal"),
		FrontendPort:     devtemporal.FreePort,
		UIPort:           devtemporal.FreePort,
		SearchAttributes: SearchAttributes(),
		Logger:           slog.New(demoted{s.opts.Logger.Handler()}),
	})
	if err != nil {
		return "", err
	}
	s.temporal = server
	s.parts.run("Temporal", func(ctx context.Context) error {
		<-ctx.Done()
		return server.Stop()
	})
	tracing, err := telemetry.Start(ctx, telemetry.Config{Service: "oncepost-dev", Logger: s.opts.Logger.With("component", "traces")})
	if err != nil {
		return "", err
	}
	s.parts.add("", func() error { tracing.Stop(); return nil })
	options := client.Options{
		HostPort: server.FrontendAddr(), Namespace: server.Namespace(),
		Logger: sdklog.NewStructuredLogger(s.opts.Logger.With("component", "sdk")),
	}
	tracing.Client(&options)
	s.client, err = client.DialContext(ctx, options)
	if err != nil {
		return "", err
	}
	s.parts.add("", func() error { s.client.Close(); return nil })
	return "server and web UI, in this process", nil
}

// demoted turns the server's warnings into information. They are for those who run a Temporal cluster ("page size is
// larger than threshold", whenever somebody opens a workflow in the web UI); its errors stay what they are.
type demoted struct{ slog.Handler }

func (d demoted) Handle(ctx context.Context, r slog.Record) error {
	if r.Level == slog.LevelWarn {
		r.Level = slog.LevelInfo
	}
	if !d.Enabled(ctx, r.Level) {
		return nil
	}
	return d.Handler.Handle(ctx, r)
}

func (d demoted) WithAttrs(attrs []slog.Attr) slog.Handler {
	return demoted{d.Handler.WithAttrs(attrs)}
}
func (d demoted) WithGroup(name string) slog.Handler { return demoted{d.Handler.WithGroup(name)} }
