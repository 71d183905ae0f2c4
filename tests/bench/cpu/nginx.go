package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// nginxConf is of one process; %[1]s is its folder, %[2]s its address.
const nginxConf = `daemon off; master_process off; pid %[1]s/pid; error_log %[1]s/log crit;
events { worker_connections 256; }
http {
	access_log off; default_type text/plain; gzip on; gzip_types text/plain;
	client_body_temp_path %[1]s/body; proxy_temp_path %[1]s/proxy; fastcgi_temp_path %[1]s/fastcgi;
	uwsgi_temp_path %[1]s/uwsgi; scgi_temp_path %[1]s/scgi;
	server { listen %[2]s; root %[1]s; }
}
`

// nginx compresses a page for whoever asks, and ab asks.
func nginx(p *place) (job, error) {
	path, err := program("nginx", "/usr/sbin/nginx") // that folder is not in every user's PATH
	if err != nil {
		return job{}, err
	}
	client, err := program("ab")
	if err != nil {
		return job{}, err
	}
	return job{once: func(ctx context.Context, p *place, c contender) (sample, error) {
		dir, err := os.MkdirTemp(p.dir, "nginx.")
		if err != nil {
			return sample{}, err
		}
		defer os.RemoveAll(dir)
		address, err := freeAddress()
		if err != nil {
			return sample{}, err
		}
		var page strings.Builder
		for i := range 1200 {
			fmt.Fprintf(&page, "line %d of %x\n", i, i*7919)
		}
		conf := filepath.Join(dir, "conf")
		err = errors.Join(os.WriteFile(filepath.Join(dir, "page"), []byte(page.String()), 0o600),
			os.WriteFile(conf, fmt.Appendf(nil, nginxConf, dir, address), 0o600))
		if err != nil {
			return sample{}, err
		}
		return server{
			job: job{args: []string{path, "-p", dir, "-c", conf}},
			load: []string{client, "-q", "-k", "-c", "16", "-n", p.text(10_000), "-H",
				"Accept-Encoding: gzip", "http://" + address + "/page"},
			ready: func(ctx context.Context) error {
				var d net.Dialer
				conn, err := d.DialContext(ctx, "tcp", address)
				if err == nil {
					conn.Close()
				}
				return err
			},
			stop: func(context.Context) error {
				return signalOf(filepath.Join(dir, "pid"),
					syscall.SIGQUIT)
			},
		}.run(ctx, p, c)
	}}, nil
}

// freeAddress is one on which nobody listens.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}
