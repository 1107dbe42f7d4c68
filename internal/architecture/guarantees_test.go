package architecture

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Each line of the page of guarantees names tests that there are, and tells something that one of them shows.
func TestGuaranteesNameTheirTests(t *testing.T) {
	page, err := os.ReadFile("../../docs/guarantees.md")
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]bool{}
	for _, name := range testsIn(t, "../..") {
		tests[name] = true
	}
	name := regexp.MustCompile("`(Test[A-Za-z0-9]+)`")
	promises := 0
	for line := range strings.Lines(string(page)) {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| promise") {
			continue
		}
		promises++
		named := name.FindAllStringSubmatch(line, -1)
		if len(named) == 0 {
			t.Errorf("no test: %s", line)
		}
		for _, n := range named {
			if !tests[n[1]] {
				t.Errorf("there is no %s: %s", n[1], line)
			}
		}
	}
	if promises < 20 {
		t.Errorf("%d promises found", promises)
	}
}

func testsIn(t *testing.T, root string) (names []string) {
	t.Helper()
	function := regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9]+)\(`)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && strings.HasPrefix(d.Name(), ".") && path != root {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range function.FindAllStringSubmatch(string(b), -1) {
			names = append(names, m[1])
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
