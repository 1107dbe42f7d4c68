package mysqlserver

import (
	"fmt"
	"os"
	"path/filepath"
)

// serverFlags are the options of a server on dir, before those that the caller adds. A container gets only those that
// do not name places: its image knows them.
func serverFlags(o Options) []string {
	flags := tuningFlags(o.Root.Flavour, o.Durable)
	if o.Root.Source == Container {
		return flags
	}
	flags = append(placeFlags(o.Root, filepath.Join(o.Dir, "data")), flags...)
	return append(flags,
		"--tmpdir="+filepath.Join(o.Dir, "tmp"),
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--port=%d", o.Port),
		// Relative to the data folder: a socket's path may have 107 bytes only, and a test's folder is longer.
		"--socket=s.sock",
		"--pid-file=mysqld.pid",
	)
}

// placeFlags are the options that the creation of a data folder needs too.
func placeFlags(r Root, data string) []string {
	flags := append([]string{"--no-defaults"}, r.treeFlags...)
	flags = append(flags, "--datadir="+data)
	if os.Getuid() == 0 {
		flags = append(flags, "--user=root") // the server refuses to run as root unless told so
	}
	if r.Flavour == MySQL {
		flags = append(flags, "--secure-file-priv=NULL") // its compiled-in folder need not exist here
	}
	return flags
}

// tuningFlags make a server small and quick to start. Without durable a commit is safe against the end of the server
// process (it is in the operating system's cache), not against that of the machine.
func tuningFlags(f Flavour, durable bool) []string {
	flags := []string{
		"--innodb-buffer-pool-size=128M",
		"--performance-schema=OFF",
		"--skip-name-resolve",
		"--max-connections=500",
	}
	if f == MySQL {
		flags = append(flags, "--mysqlx=OFF", "--log-error-verbosity=2", "--loose-innodb-numa-interleave=OFF")
	}
	if durable {
		return append(flags, "--innodb-flush-log-at-trx-commit=1", "--sync-binlog=1")
	}
	flags = append(flags, "--innodb-flush-log-at-trx-commit=2", "--sync-binlog=0")
	if f == MySQL {
		// MariaDB's binlog is off unless asked for. MySQL writes its doublewrite files full at each start: half of the
		// start. They guard against pages torn by a crash of the machine.
		flags = append(flags, "--skip-log-bin", "--innodb-doublewrite=OFF")
	}
	return flags
}
