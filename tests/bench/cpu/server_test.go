package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// The time is the load's, and a server whose load fails, or that cannot be asked to end, does not
// stay.
func TestServer(t *testing.T) {
	p := small(1)
	fine := func(context.Context) error { return nil }
	for _, c := range []struct {
		load, want string
		stop       func(context.Context) error
	}{
		{"echo why; exit 3", "why", fine},
		{"exit 0", "no stop", func(context.Context) error { return errors.New("no stop") }},
	} {
		file := filepath.Join(t.TempDir(), "pid")
		v := server{job: shell("echo $$ >" + file + "; exec sleep 100"),
			load: []string{"/bin/sh", "-c", c.load}, stop: c.stop,
			ready: func(context.Context) error { return signalOf(file, 0) }}
		if _, err := v.run(t.Context(), p, glibc()); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, not %q", c.load, err, c.want)
		}
		ends(t, file)
	}
	// This server ends at once, before its load does.
	file := filepath.Join(t.TempDir(), "pid")
	v := server{job: shell("echo $$ >" + file), load: []string{"/bin/sleep", "0.5"}, stop: fine,
		ready: func(context.Context) error { _, err := os.Stat(file); return err }}
	if s, err := v.run(t.Context(), p, glibc()); err != nil || s.time < 500*1e6 || s.peak <= 0 {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestSignalOf(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pid")
	for _, text := range []string{"", "x\n", "0\n", "-1\n", "1\n"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := signalOf(file, 0); err == nil || !strings.Contains(err.Error(), "is no process") {
			t.Errorf("%q: %v", text, err)
		}
	}
	if err := os.WriteFile(file, []byte(strconv.Itoa(os.Getpid())+"\nmore\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := signalOf(file, 0); err != nil {
		t.Error(err)
	}
}

// Of several versions the newest serves, and what lacks is named.
func TestPostgresProgram(t *testing.T) {
	old := postgresDirs
	defer func() { postgresDirs = old }()
	t.Setenv("PATH", t.TempDir())
	dir := t.TempDir()
	postgresDirs = filepath.Join(dir, "*", "bin")
	_, err := postgresProgram("initdb")
	var lack lacking
	if !errors.As(err, &lack) || lack.Error() != "there is no initdb" {
		t.Error(err)
	}
	for _, version := range []string{"9", "14", "15", "x"} {
		bin := filepath.Join(dir, version, "bin")
		if err := os.MkdirAll(bin, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(bin, "initdb"), nil, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if path, err := postgresProgram("initdb"); err != nil ||
		path != filepath.Join(dir, "15", "bin", "initdb") {
		t.Error(path, err)
	}
}
