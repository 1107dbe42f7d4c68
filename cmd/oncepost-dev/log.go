package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
)

const (
	logName    = "oncepost-dev.log"
	maxLogSize = 16 << 20
)

// openLog returns a logger that writes everything to a file in dir, and warnings and errors to stderr as well.
func openLog(dir string, stderr io.Writer) (*slog.Logger, io.Closer, error) {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, nil, fmt.Errorf("--dir (ONCEPOST_DEV_DIR): %w", err)
	}
	name := filepath.Join(dir, logName)
	if err := rotate(name); err != nil {
		return nil, nil, err
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, nil, err
	}
	return slog.New(slog.NewMultiHandler(
		slog.NewTextHandler(f, &slog.HandlerOptions{Level: slog.LevelInfo}),
		slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: slog.LevelWarn}),
	)), f, nil
}

// rotate keeps one older file.
func rotate(name string) error {
	info, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil || info.Size() < maxLogSize {
		return err
	}
	return os.Rename(name, name+".1")
}
