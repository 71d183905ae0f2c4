package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// redis is a server under the allocator, and redis-benchmark, plain, that asks it. The time
// is the client's, memory and processor time are the server's.
func redis(p *place) (job, error) {
	server, err := program("redis-server")
	if err != nil {
		return job{}, err
	}
	client, err := program("redis-benchmark")
	if err != nil {
		return job{}, err
	}
	socket := filepath.Join(p.dir, "redis.sock")
	args := []string{server, "--port", "0", "--unixsocket", socket, "--save", "", "--appendonly", "no", "--daemonize", "no",
		"--dir", p.dir, "--loglevel", "warning"}
	load := []string{client, "-s", socket, "-q", "-c", "20", "-P", "16", "-d", "200", "-r", "50000", "-n", p.text(25_000),
		"-t", "set,get,incr,lpush,lpop,sadd,hset,zadd,mset"}
	return job{args: args, once: func(ctx context.Context, p *place, c contender) (sample, error) {
		return serve(ctx, p, c, job{args: args}, socket, load)
	}}, nil
}

func serve(ctx context.Context, p *place, c contender, server job, socket string, load []string) (sample, error) {
	os.Remove(socket)
	r, err := p.start(ctx, server, c, filepath.Join(p.dir, "output"))
	if err != nil {
		return sample{}, err
	}
	took, err := drive(r.ctx, socket, load)
	if err != nil {
		r.done() // ends the server
		_ = r.cmd.Wait()
		r.report.Close()
		return sample{}, fmt.Errorf("%w: %s", err, tail(r.stderr.String()))
	}
	s, err := r.wait()
	s.time = took
	return s, err
}

// drive asks the server for what the load is, and to end.
func drive(ctx context.Context, socket string, load []string) (time.Duration, error) {
	if _, err := ask(ctx, socket, "PING"); err != nil {
		return 0, err
	}
	start := time.Now()
	cmd := exec.CommandContext(ctx, load[0], load[1:]...)
	cmd.Env = environ()
	if text, err := cmd.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("redis-benchmark: %w\n%s", err, tail(string(text)))
	}
	took := time.Since(start)
	// The server just closes the connection.
	_, err := ask(ctx, socket, "SHUTDOWN NOSAVE")
	return took, err
}

// ask sends a command as soon as there is a server, for ten seconds.
func ask(ctx context.Context, socket, command string) (string, error) {
	var d net.Dialer
	for try := 0; ; try++ {
		conn, err := d.DialContext(ctx, "unix", socket)
		if err != nil {
			if try == 1000 || ctx.Err() != nil {
				return "", err
			}
			time.Sleep(10 * time.Millisecond)
			continue
		}
		defer conn.Close()
		if _, err := fmt.Fprintf(conn, "%s\r\n", command); err != nil {
			return "", err
		}
		answer, _ := bufio.NewReader(conn).ReadString('\n')
		if strings.HasPrefix(answer, "-") {
			return "", fmt.Errorf("%s: %s", command, strings.TrimSpace(answer))
		}
		return answer, nil
	}
}
