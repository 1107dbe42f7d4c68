package e2e

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"github.com/oncepost/oncepost/internal/mysqlserver"
	"github.com/oncepost/oncepost/internal/sesstandin"
	"github.com/oncepost/oncepost/internal/testdb"
)

// each runs test per flavour, with the environment for an oncepost-dev that keeps its data in dir.
func each(t *testing.T, test func(t *testing.T, env []string, dir string)) {
	t.Helper()
	for _, f := range testdb.Flavours() {
		t.Run(string(f), func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "dev")
			test(t, devEnv(t, f, dir), dir)
		})
	}
}

// quickest is the flavour whose server starts in the least time, for what does not depend on the database.
func quickest() mysqlserver.Flavour {
	all := testdb.Flavours()
	return all[len(all)-1] // MariaDB, unless MySQL alone is tested
}

// devEnv makes the stack use the fetched server, which is the same for all who test, whatever else the machine has.
func devEnv(t *testing.T, f mysqlserver.Flavour, dir string) []string {
	t.Helper()
	env := append(baseEnv(t), "ONCEPOST_DEV_DIR="+dir, "ONCEPOST_DEV_DATABASE="+string(f))
	_, err := mysqlserver.Fetch(t.Context(), f, "", os.Stderr)
	if errors.Is(err, mysqlserver.ErrNotFetchable) {
		return env
	}
	if err != nil {
		t.Fatal(err)
	}
	return append(env, "PATH="+t.TempDir())
}

var addressLine = regexp.MustCompile(`(?m)^  (Temporal web UI|Inbox|MySQL DSN|Temporal|SES endpoint) +(\S+?),?( .*)?$`)

// addresses reads the table that the stack prints when it is up.
func addresses(t *testing.T, out string) map[string]string {
	t.Helper()
	at := map[string]string{}
	for _, m := range addressLine.FindAllStringSubmatch(out, -1) {
		at[m[1]] = m[2] // a line of progress begins with "Temporal" too; the table comes after it
	}
	if len(at) != 5 {
		t.Fatalf("the table of addresses is not complete: %v", at)
	}
	return at
}

func enqueue(t *testing.T, env []string, id string, args ...string) {
	t.Helper()
	args = append([]string{"enqueue", "welcome", "--id", id}, args...)
	if code, _ := run(t, env, "oncepost", args...); code != 0 {
		t.Fatalf("oncepost %s: exit code %d", strings.Join(args, " "), code)
	}
}

// refuse makes the stand-in refuse every mail from now on.
func refuse(t *testing.T, ses string) {
	t.Helper()
	addFault(t, ses, `{"preset": "throttle"}`)
}

// addFault injects a fault into the stand-in.
func addFault(t *testing.T, ses, fault string) {
	t.Helper()
	controlFaults(t, http.MethodPost, ses, fault)
}

func clearFaults(t *testing.T, ses string) {
	t.Helper()
	controlFaults(t, http.MethodDelete, ses, "")
}

func controlFaults(t *testing.T, method, ses, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, ses+"/_standin/faults", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode >= http.StatusBadRequest {
		t.Fatalf("%s faults: %s", method, response.Status)
	}
}

// awaitRefusal waits until the send of a message has failed and its next attempt is waited for, by what Temporal has
// written down: what is killed then is no attempt in the middle of it.
func awaitRefusal(t *testing.T, address, id string) {
	t.Helper()
	c, err := client.Dial(client.Options{HostPort: address, Logger: silent()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	until(t, "a send is refused", func() bool {
		d, err := c.DescribeWorkflowExecution(t.Context(), id, "")
		var early *serviceerror.NotFound
		if errors.As(err, &early) {
			return false
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range d.GetPendingActivities() {
			if a.GetState() == enumspb.PENDING_ACTIVITY_STATE_SCHEDULED && a.GetLastFailure() != nil {
				return true
			}
		}
		return false
	})
}

func get(t *testing.T, url string, into any) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(into); err != nil {
		t.Fatalf("%s: %v", url, err)
	}
}

// once fails unless there is one mail for each of the messages, and no other.
func once(t *testing.T, mails []sesstandin.Mail, ids ...string) {
	t.Helper()
	count := map[string]int{}
	for _, m := range mails {
		count[m.MessageID]++
	}
	for _, id := range ids {
		if count[id] != 1 {
			t.Errorf("message %s: %d mails", id, count[id])
		}
	}
	if len(mails) != len(ids) {
		t.Errorf("%d mails for %d messages", len(mails), len(ids))
	}
}

// gone waits until none of the processes is there any more: a kill takes a moment to reach them.
func gone(t *testing.T, pids []int) {
	t.Helper()
	const moment = 5 * time.Second
	deadline := time.Now().Add(moment)
	for _, pid := range pids {
		for alive(pid) {
			if time.Now().After(deadline) {
				t.Errorf("process %d was left behind", pid)
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
}
