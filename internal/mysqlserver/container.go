package mysqlserver

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// Images are used as they are known to the engine; the engine pulls what it lacks.
const (
	mysqlImage   = "mysql:8.4"
	mariadbImage = "mariadb:10.11"
)

// engineAnswerTimeout bounds the question whether a container engine is running. A stopped one answers at once, one
// that is being started by its desktop may hang.
const engineAnswerTimeout = 10 * time.Second

// FromContainer returns a root that runs the official image by docker or podman, whichever answers. The error is
// exec.ErrNotFound where neither does.
func FromContainer(ctx context.Context, f Flavour) (Root, error) {
	image := mysqlImage
	if f == MariaDB {
		image = mariadbImage
	}
	for _, engine := range []string{"docker", "podman"} {
		exe, err := exec.LookPath(engine)
		if err != nil {
			continue // the other one may be there
		}
		if engineAnswers(ctx, exe) {
			return Root{Flavour: f, Source: Container, exe: []string{exe}, image: image}, nil
		}
	}
	return Root{}, fmt.Errorf("container engine that answers: %w", exec.ErrNotFound)
}

func engineAnswers(ctx context.Context, exe string) bool {
	ctx, cancel := context.WithTimeout(ctx, engineAnswerTimeout)
	defer cancel()
	// The exit status is the answer: docker's client prints what it knows of itself even when no daemon is there.
	return exec.CommandContext(ctx, exe, "info").Run() == nil
}

// containerName is unique to the folder's present use, so that a container left by a killed engine client does not
// stand in the way.
func containerName(port int) string { return fmt.Sprintf("oncepost-%d-%d", os.Getpid(), port) }

// containerArgs is the argv of a server in a container: in the foreground, so that its output is our log, published on
// loopback only, with the data in our folder under our own user.
func containerArgs(r Root, dir string, port int, name string, flags []string) []string {
	args := []string{
		r.exe[0], "run", "--rm", "--name", name,
		"--publish", fmt.Sprintf("127.0.0.1:%d:3306", port),
		"--volume", filepath.Join(dir, "data") + ":/var/lib/mysql",
		"--user", fmt.Sprintf("%d:%d", os.Getuid(), os.Getgid()),
		"--env", "MYSQL_ALLOW_EMPTY_PASSWORD=1", "--env", "MYSQL_ROOT_HOST=%",
	}
	if filepath.Base(r.exe[0]) == "podman" {
		args = append(args, "--userns=keep-id")
	}
	return append(append(args, r.image), flags...)
}
