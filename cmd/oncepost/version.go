package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/oncepost/oncepost/internal/migrate"
)

type versionCmd struct{}

func (versionCmd) Run(a *app) error {
	_, err := fmt.Fprintf(a.stdout, "oncepost %s, tables version %d, %s %s/%s\n",
		versionText(), migrate.Latest(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}

// versionText is the version that runs, and the revision it was built from.
func versionText() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "(devel)"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return info.Main.Version + " " + s.Value
		}
	}
	return info.Main.Version
}
