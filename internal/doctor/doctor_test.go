package doctor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// A check that cannot be made is a finding and ends no other; one that has found an error keeps back those that would repeat it.
func TestRun(t *testing.T) {
	well := func(context.Context) ([]Finding, error) { return ok("well") }
	hangs := func(ctx context.Context) ([]Finding, error) { <-ctx.Done(); return nil, ctx.Err() }
	broken := func(context.Context) ([]Finding, error) { return nil, errors.New("access denied") }
	wrong := func(context.Context) ([]Finding, error) { return find(Error, "do", "wrong") }
	found := run(t.Context(), 10*time.Millisecond, []check{
		{name: "a.hangs", look: hangs, gate: true},
		{name: "a.broken", look: broken},
		{name: "a.wrong", look: wrong},
		{name: "a.well", look: well},
		{name: "a.gate", look: wrong, gate: true},
		{name: "a.kept", look: well},
	})
	wants(t, found, "a.hangs", Warning, "no answer within 10ms")
	wants(t, found, "a.broken", Warning, "access denied")
	wants(t, found, "a.wrong", Error, "wrong")
	wants(t, found, "a.well", OK)
	wants(t, found, "a.rest", Note, "a.gate: a.kept")
	if len(found) != 6 {
		t.Errorf("%+v", found)
	}
}

func TestPrint(t *testing.T) {
	found := []Finding{{Check: "a.b", Text: "fine"}, {Check: "a.longer", Severity: Error, Text: "broken", Do: "mend it"}}
	var b bytes.Buffer
	if err := Print(&b, found); err != nil {
		t.Fatal(err)
	}
	want := "ok       a.b       fine\nERROR    a.longer  broken\n                   -> mend it\n\nerrors: 1, warnings: 0, notes: 0, as it should be: 1\n"
	if b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
	text, err := json.Marshal(found)
	if err != nil || !strings.Contains(string(text), `{"check":"a.longer","severity":"error","text":"broken","do":"mend it"}`) {
		t.Errorf("%s, %v", text, err)
	}
}

// The page has each check once, and no other.
func TestThePageHasEveryCheck(t *testing.T) {
	names := func(form, text string) map[string]bool {
		all := map[string]bool{}
		for _, m := range regexp.MustCompile(form).FindAllStringSubmatch(text, -1) {
			if all[m[1]] {
				t.Errorf("%s stands there twice", m[1])
			}
			all[m[1]] = true
		}
		return all
	}
	page, err := os.ReadFile("../../docs/doctor.md")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var source strings.Builder
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(file, "_test.go") {
			source.Write(b)
		}
	}
	have, want := names("(?m)^\\| `([a-z]+\\.[a-z-]+)` \\|", string(page)), names(`name: "([a-z]+\.[a-z-]+)"`, source.String())
	if !maps.Equal(have, want) || len(want) < 30 {
		t.Errorf("the page has %v, the code %v", have, want)
	}
}
