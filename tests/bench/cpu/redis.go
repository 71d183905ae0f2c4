package main

import (
	"bufio"
	"cmp"
	"context"
	"debug/elf"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// redis is a server that keeps everything in memory, and redis-benchmark.
func redis(p *place) (job, error) {
	path, err := program("redis-server")
	if err != nil {
		return job{}, err
	}
	client, err := program("redis-benchmark")
	if err != nil {
		return job{}, err
	}
	if bound, err := callsMallocx(path); err != nil || bound {
		return job{}, cmp.Or(err, error(lacking("redis-server before version 8 (it mixes "+
			"mallocx of jemalloc with malloc_usable_size, and crashes where glibc is preloaded)")))
	}
	socket := filepath.Join(p.dir, "redis.sock")
	v := server{
		job: job{args: []string{path, "--port", "0", "--unixsocket", socket, "--save", "",
			"--appendonly", "no", "--daemonize", "no",
			"--dir", p.dir, "--loglevel", "warning"}},
		load: []string{client, "-s", socket, "-q", "-c", "20", "-P", "16", "-d", "200", "-r",
			"50000", "-n", p.text(25_000),
			"-t", "set,get,incr,lpush,lpop,sadd,hset,zadd,mset"},
		ready: func(ctx context.Context) error { return ask(ctx, socket, "PING") },
		// The server just closes the connection.
		stop: func(ctx context.Context) error { return ask(ctx, socket, "SHUTDOWN NOSAVE") },
	}
	return job{once: func(ctx context.Context, p *place, c contender) (sample, error) {
		os.Remove(socket)
		return v.run(ctx, p, c)
	}}, nil
}

// callsMallocx reports whether a program imports jemalloc's own functions.
func callsMallocx(path string) (bool, error) {
	f, err := elf.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	symbols, err := f.ImportedSymbols()
	return slices.ContainsFunc(symbols, func(s elf.ImportedSymbol) bool {
		return s.Name == "mallocx"
	}), err
}

// ask sends a command.
func ask(ctx context.Context, socket, command string) error {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", socket)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := fmt.Fprintf(conn, "%s\r\n", command); err != nil {
		return err
	}
	if answer, _ := bufio.NewReader(conn).ReadString('\n'); strings.HasPrefix(answer, "-") {
		return fmt.Errorf("%s: %s", command, strings.TrimSpace(answer))
	}
	return nil
}
