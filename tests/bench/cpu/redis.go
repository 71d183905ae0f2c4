package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
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
