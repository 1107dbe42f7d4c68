package mysqlserver

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// Source says where a server's files come from.
type Source string

// The sources, in the order in which Locate tries them.
const (
	OnPath    Source = "path"
	Container Source = "container"
	Fetched   Source = "fetched"
)

// Root is a server program that Start can run. Locate, Fetch and FromPath make it.
type Root struct {
	Flavour Flavour
	Source  Source
	// Version is what the server says of itself, such as "9.7.4" or "10.11.18"; empty for a container.
	Version string

	exe        []string // the server's argv without any option; for a container the engine's program
	treeFlags  []string // where the parts of an unpacked tree are, which the program would look for in /usr
	shareDir   string   // MariaDB fetched: the folder with the SQL of the system tables
	installDB  string   // MariaDB on PATH: its mariadb-install-db
	image      string   // a container's image
	templateAt string   // the data folder that new servers start with a copy of
}

// String describes the root to a person.
func (r Root) String() string {
	if r.Source == Container {
		return fmt.Sprintf("%s in a container by %s", r.image, filepath.Base(r.exe[0]))
	}
	return fmt.Sprintf("%s %s (%s: %s)", r.Flavour, r.Version, r.Source, r.exe[len(r.exe)-1])
}

var versionPattern = regexp.MustCompile(`Ver ([0-9]+\.[0-9]+\.[0-9]+)`)

// askVersion runs the program with --version and returns the flavour and version in its answer: a program called
// mysqld may be MariaDB's.
func askVersion(ctx context.Context, exe []string) (Flavour, string, error) {
	argv := append(append([]string{}, exe...), "--no-defaults", "--version")
	out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).CombinedOutput()
	if err != nil {
		return "", "", fmt.Errorf("%s: %w: %s", strings.Join(argv, " "), err, strings.TrimSpace(string(out)))
	}
	version := versionPattern.FindSubmatch(out)
	if version == nil {
		return "", "", fmt.Errorf("%s says no version: %q", strings.Join(argv, " "), out)
	}
	flavour := MySQL
	if strings.Contains(string(out), "MariaDB") {
		flavour = MariaDB
	}
	return flavour, string(version[1]), nil
}

// templateName names the template of a program outside the cache; another version of it gets another template.
func templateName(f Flavour, version, exe string) string {
	sum := sha256.Sum256([]byte(exe))
	return fmt.Sprintf("template-%s-%s-%x", f, version, sum[:4])
}
