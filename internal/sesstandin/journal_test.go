package sesstandin_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oncepost/oncepost/internal/sesstandin"
)

const journalFile = "mails.jsonl"

func TestMailsAreBackAfterARestart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "folder")
	first := start(t, sesstandin.Config{Dir: dir})
	for i := range 3 {
		if err := first.send(t.Context(), fmt.Sprintf("m%d", i)); err != nil {
			t.Fatal(err)
		}
	}
	want := first.Mails()
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second := start(t, sesstandin.Config{Dir: dir})
	if got := second.Mails(); fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
		t.Errorf("after the restart:\n%+v\nbefore:\n%+v", got, want)
	}
	wantQuota(t, second, -1, 3)
}

// A crash can leave half a line. The whole mails before it are back, and new ones can follow.
func TestTornLastLine(t *testing.T) {
	for _, torn := range []string{`{"id":"x","raw":"AAA`, "{}\n", "\x00\x00\x00\n"} {
		t.Run(fmt.Sprintf("%q", torn), func(t *testing.T) {
			dir := t.TempDir()
			s := start(t, sesstandin.Config{Dir: dir})
			if err := errors.Join(s.send(t.Context(), "m1"), s.Close()); err != nil {
				t.Fatal(err)
			}
			appendTo(t, filepath.Join(dir, journalFile), torn)
			var log bytes.Buffer
			s = start(t, sesstandin.Config{Dir: dir, Logger: slog.New(slog.NewTextHandler(&log, nil))})
			s.accepted(1)
			if !strings.Contains(log.String(), "torn") {
				t.Errorf("nothing reported: %q", log.String())
			}
			if err := errors.Join(s.send(t.Context(), "m2"), s.Close()); err != nil {
				t.Fatal(err)
			}
			s = start(t, sesstandin.Config{Dir: dir})
			s.accepted(2)
		})
	}
}

// Damage that is not at the end did not come from a crash: it is not skipped in silence.
func TestDamagedFileIsAnError(t *testing.T) {
	dir := t.TempDir()
	s := start(t, sesstandin.Config{Dir: dir})
	if err := errors.Join(s.send(t.Context(), "m1"), s.Close()); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, journalFile)
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	appendTo(t, name, "garbage\n"+string(whole))
	if _, err := sesstandin.New(sesstandin.Config{Dir: dir}); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("error %v, want one that names line 2", err)
	}
}

func TestMemoryAndFileAreBounded(t *testing.T) {
	dir := t.TempDir()
	s := start(t, sesstandin.Config{Dir: dir, MaxMails: 5})
	for i := range 23 {
		if err := s.send(t.Context(), fmt.Sprintf("m%d", i)); err != nil {
			t.Fatal(err)
		}
	}
	mails := s.Mails()
	if len(mails) != 5 || mails[0].MessageID != "m18" || mails[4].MessageID != "m22" {
		t.Errorf("kept %d mails, from %s", len(mails), mails[0].MessageID)
	}
	content, err := os.ReadFile(filepath.Join(dir, journalFile))
	if err != nil {
		t.Fatal(err)
	}
	if lines := bytes.Count(content, []byte("\n")); lines > 10 {
		t.Errorf("the file holds %d mails, want at most twice the bound", lines)
	}
}

func TestBytesAreBounded(t *testing.T) {
	s := start(t, sesstandin.Config{MaxBytes: 3 << 20})
	for range 4 {
		if _, err := s.ses.SendRawEmail(t.Context(), input(sized(600<<10), "", "a@example.com")); err != nil {
			t.Fatal(err)
		}
	}
	s.accepted(2) // the text counts as well as the raw mail
	if _, err := s.ses.SendRawEmail(t.Context(), input(sized(9<<20), "", "a@example.com")); err != nil {
		t.Fatal(err)
	}
	s.accepted(1) // the newest stays, however large
}

func TestClearMails(t *testing.T) {
	dir := t.TempDir()
	s := start(t, sesstandin.Config{Dir: dir})
	if err := errors.Join(s.send(t.Context(), "m1"), s.ClearMails(), s.send(t.Context(), "m2"), s.Close()); err != nil {
		t.Fatal(err)
	}
	s = start(t, sesstandin.Config{Dir: dir})
	if mails := s.Mails(); len(mails) != 1 || mails[0].MessageID != "m2" {
		t.Errorf("mails %+v", mails)
	}
}

func TestNoFolderNoMail(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	appendTo(t, file, "x")
	var bad *sesstandin.ConfigError
	if _, err := sesstandin.New(sesstandin.Config{Dir: file}); !errors.As(err, &bad) || bad.Field != "Dir" {
		t.Errorf("error %v", err)
	}
}

func appendTo(t *testing.T, name, text string) {
	t.Helper()
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteString(text)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}
