package devtemporal

import (
	"errors"
	"log/slog"
	"path/filepath"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
)

// FreePort as a port of Options means any free one.
const FreePort = -1

// Defaults of Options.
const (
	DefaultNamespace = "default"
	DefaultRetention = 72 * time.Hour
)

// Options say what to start.
type Options struct {
	// Dir keeps the database and the ports between starts. "" = in memory, gone with Stop.
	Dir string
	// FrontendPort on 127.0.0.1. 0 or FreePort = the one that Dir was last started with, when it is still free, or else
	// a free one.
	FrontendPort int
	// UIPort on 127.0.0.1: 0 = no web UI, FreePort = as with FrontendPort.
	UIPort int
	// Namespace that exists and is usable when Start returns. Default DefaultNamespace.
	Namespace string
	// Retention of closed workflows in Namespace, used when it is created. Default DefaultRetention.
	Retention time.Duration
	// SearchAttributes that Namespace, and every namespace of CreateNamespace, has. Those that an existing namespace
	// lacks are added.
	SearchAttributes map[string]enumspb.IndexedValueType
	// DynamicConfig is set over the server's own, by key ("limit.blobSize.error"): tests make limits smaller.
	DynamicConfig map[string]any
	// Logger gets the server's warnings and errors; the rest is dropped. nil = nothing is logged.
	Logger *slog.Logger
}

func (o Options) withDefaults() (Options, error) {
	if o.Namespace == "" {
		o.Namespace = DefaultNamespace
	}
	if o.Retention == 0 {
		o.Retention = DefaultRetention
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.FrontendPort == 0 {
		o.FrontendPort = FreePort
	}
	if o.Retention < 0 || o.FrontendPort < FreePort || o.UIPort < FreePort {
		return o, errors.New("retention and ports must not be negative")
	}
	if o.Dir == "" {
		return o, nil
	}
	dir, err := filepath.Abs(o.Dir)
	o.Dir = dir
	return o, err
}
