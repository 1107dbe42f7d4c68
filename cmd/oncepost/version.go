package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/oncepost/oncepost/internal/migrate"
)

type versionCmd struct{}

func (versionCmd) Run(a *app) error {
	version, revision := "(devel)", ""
	if info, ok := debug.ReadBuildInfo(); ok {
		version = info.Main.Version
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				revision = " " + s.Value
			}
		}
	}
	_, err := fmt.Fprintf(a.stdout, "oncepost %s%s, tables version %d, %s %s/%s\n",
		version, revision, migrate.Latest(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}
