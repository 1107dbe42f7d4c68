package mysqlserver

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
)

// FromPath finds a server of this flavour on PATH. The error is exec.ErrNotFound where there is none.
//
// Known limit: where a distribution's AppArmor profile confines the installed mysqld to its own folders (Ubuntu), it
// cannot use another; its log, which Start's error quotes, then says "Permission denied".
func FromPath(ctx context.Context, f Flavour, cacheDir string) (Root, error) {
	cacheDir, err := cacheOr(cacheDir)
	if err != nil {
		return Root{}, err
	}
	for _, name := range []string{"mariadbd", "mysqld"} {
		exe, err := exec.LookPath(name)
		if err != nil {
			continue // not there under this name; where no name is, the caller gets ErrNotFound
		}
		flavour, version, err := askVersion(ctx, []string{exe})
		if err != nil {
			return Root{}, fmt.Errorf("%s on PATH: %w", name, err)
		}
		if flavour != f {
			continue
		}
		r := Root{Flavour: f, Source: OnPath, Version: version, exe: []string{exe}}
		r.templateAt = filepath.Join(cacheDir, templateName(f, version, exe))
		if f == MariaDB {
			if r.installDB, err = lookInstallDB(); err != nil {
				return Root{}, err
			}
		}
		return r, nil
	}
	return Root{}, fmt.Errorf("%s on PATH: %w", f, exec.ErrNotFound)
}

func lookInstallDB() (string, error) {
	exe, err := exec.LookPath("mariadb-install-db")
	if errors.Is(err, exec.ErrNotFound) {
		exe, err = exec.LookPath("mysql_install_db")
	}
	return exe, err
}
