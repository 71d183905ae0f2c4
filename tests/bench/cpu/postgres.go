package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// postgresDirs are where Debian keeps the programs, which are not in PATH.
var postgresDirs = "/usr/lib/postgresql/*/bin"

// postgres is a server with a process for each client, and pgbench that looks up rows.
func postgres(p *place) (job, error) {
	programs := map[string]string{}
	for _, name := range []string{"initdb", "postgres", "pgbench"} {
		path, err := postgresProgram(name)
		if err != nil {
			return job{}, err
		}
		programs[name] = path
	}
	who, err := unprivileged()
	if err != nil {
		return job{}, err
	}
	c := cluster{programs: programs, dir: filepath.Join(p.dir, "postgres"), who: who}
	return job{once: func(ctx context.Context, p *place, by contender) (sample, error) {
		if err := c.fill(ctx, p); err != nil {
			return sample{}, err
		}
		return c.server("-n", "-S", "-c", "4", "-t", p.text(2_500)).run(ctx, p, by)
	}}, nil
}

// postgresProgram prefers the newest version's.
func postgresProgram(name string) (string, error) {
	found, _ := filepath.Glob(filepath.Join(postgresDirs, name)) // the pattern is right
	slices.SortFunc(found, func(a, b string) int { return postgresVersion(b) - postgresVersion(a) })
	if len(found) > 0 {
		return found[0], nil
	}
	return program(name)
}

// postgresVersion is the folder's that holds bin; 0 where it is not a number.
func postgresVersion(path string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path))))
	return n
}

// unprivileged is whom the server runs as: it refuses root. nil: as this process.
func unprivileged() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	nobody, err := user.Lookup("nobody")
	if err != nil {
		return nil, lacking("user nobody (PostgreSQL does not run as root)")
	}
	uid, err := strconv.ParseUint(nobody.Uid, 10, 32)
	gid, err2 := strconv.ParseUint(nobody.Gid, 10, 32)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, errors.Join(err, err2)
}

// cluster is a folder of databases.
type cluster struct {
	programs map[string]string
	dir      string
	who      *syscall.Credential
}

func (c cluster) server(bench ...string) server {
	state := filepath.Join(c.dir, "postmaster.pid")
	args := []string{c.programs["postgres"], "-D", c.dir, "-k", c.dir, "-h", "", "-p", "5432"}
	for _, setting := range []string{"fsync=off", "jit=off", "autovacuum=off",
		"shared_buffers=16MB", "timezone=GMT", "log_timezone=GMT"} {
		args = append(args, "-c", setting)
	}
	return server{
		job: job{args: args, user: c.who, dir: c.dir},
		load: append(append([]string{c.programs["pgbench"]}, bench...), "-h", c.dir, "-p", "5432",
			"-U", "bench", "postgres"),
		ready: func(context.Context) error {
			text, err := os.ReadFile(state)
			if err == nil && !strings.Contains(string(text), "ready") {
				err = errors.New("PostgreSQL does not get ready")
			}
			return err
		},
		stop: func(context.Context) error { return signalOf(state, syscall.SIGINT) },
	}
}

// fill makes the cluster and pgbench's tables in it, once, under glibc.
func (c cluster) fill(ctx context.Context, p *place) error {
	if _, err := os.Stat(c.dir); err == nil {
		return nil
	}
	if err := os.Mkdir(c.dir, 0o700); err != nil {
		return err
	}
	if c.who != nil {
		if err := errors.Join(os.Chmod(p.dir, 0o755),
			os.Chown(c.dir, int(c.who.Uid), int(c.who.Gid))); err != nil {
			return err
		}
	}
	cmd := exec.CommandContext(ctx, c.programs["initdb"], "-D", c.dir, "-A", "trust", "-U", "bench",
		"--locale=C", "-E", "UTF8", "-N")
	cmd.Env, cmd.Dir = environ(), c.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: c.who}
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, tail(string(text)))
	}
	_, err := c.server("-i", "-q").run(ctx, p, contender{library: "libc.so.6"})
	return err
}
