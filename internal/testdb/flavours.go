package testdb

import (
	"fmt"
	"os"
	"testing"

	"github.com/oncepost/oncepost/internal/mysqlserver"
)

// Flavours are those that $ONCEPOST_TEST_DB names; Main has checked it.
func Flavours() []mysqlserver.Flavour {
	all, err := flavours()
	if err != nil {
		panic(err)
	}
	return all
}

func flavours() ([]mysqlserver.Flavour, error) {
	value := os.Getenv(FlavoursEnv)
	if value == "" || value == "both" {
		return []mysqlserver.Flavour{mysqlserver.MySQL, mysqlserver.MariaDB}, nil
	}
	f, err := mysqlserver.ParseFlavour(value)
	if err != nil {
		return nil, fmt.Errorf("%s: %w, and not both", FlavoursEnv, err)
	}
	return []mysqlserver.Flavour{f}, nil
}

// Each runs test as a subtest per flavour, both at once, each with a fresh, empty database, and returns when both have ended.
func Each(t *testing.T, test func(t *testing.T, s *Schema)) {
	t.Helper()
	t.Run("on", func(t *testing.T) {
		for _, f := range Flavours() {
			t.Run(string(f), func(t *testing.T) {
				t.Parallel()
				test(t, NewSchema(t, f))
			})
		}
	})
}

// EachAlone is Each for a test of what the whole process does: its memory, or how long something takes. One follows the other.
func EachAlone(t *testing.T, test func(t *testing.T, s *Schema)) {
	t.Helper()
	for _, f := range Flavours() {
		t.Run(string(f), func(t *testing.T) { test(t, NewSchema(t, f)) })
	}
}

// OwnServer starts a server for this test alone, to be killed, stopped or reconfigured, with further server flags. It
// is killed at the end of the test. NewSchemaOn makes databases on it.
func OwnServer(t *testing.T, f mysqlserver.Flavour, flags ...string) *mysqlserver.Server {
	t.Helper()
	s, err := startServer(t.Context(), f, t.TempDir(), flags...)
	if err != nil {
		t.Fatal(err)
	}
	killAtEnd(t, s)
	return s
}

// Restart starts a server of OwnServer again that was stopped or killed: same data, same address.
func Restart(t *testing.T, s *mysqlserver.Server) *mysqlserver.Server {
	t.Helper()
	again, err := mysqlserver.Start(t.Context(), s.Options())
	if err != nil {
		t.Fatal(err)
	}
	killAtEnd(t, again)
	return again
}

func killAtEnd(t *testing.T, s *mysqlserver.Server) {
	t.Cleanup(func() {
		if err := s.Kill(); err != nil {
			t.Error(err)
		}
	})
}
