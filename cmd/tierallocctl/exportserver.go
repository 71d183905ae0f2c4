package main

import (
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"tieralloc/internal/version"
	"tieralloc/stats/live"
)

// Limits on clients. A scrape of thousands of processes takes some seconds on a slow network.
const (
	scrapesAtOnce = 4
	requestTime   = 10 * time.Second
	answerTime    = time.Minute
	endTime       = 5 * time.Second // for the answers in progress when a signal ends the server
)

// serve answers at the address until a signal ends it.
func (e *exporter) serve(stderr io.Writer, address string) error {
	_, port, err := net.SplitHostPort(address)
	if _, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil {
		return usage("--listen %s: expected HOST:PORT or :PORT with a port from 0 to 65535, "+
			"such as :9464 or 127.0.0.1:9464", address)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("--listen %s: %w", address, err)
	}
	fmt.Fprintf(stderr, "tierallocctl: metrics at http://%s/metrics\n", listener.Addr())
	server := &http.Server{Handler: e.handler(), ReadTimeout: requestTime,
		WriteTimeout: answerTime, IdleTimeout: 2 * answerTime, MaxHeaderBytes: 64 << 10}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	select {
	case err = <-ended:
		return fmt.Errorf("--listen %s: %w", address, err)
	case <-ctx.Done():
	}
	late, cancel := context.WithTimeout(context.Background(), endTime)
	defer cancel()
	if err := server.Shutdown(late); errors.Is(err, context.DeadlineExceeded) {
		return server.Close()
	}
	return nil
}

func (e *exporter) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(e.registry(), promhttp.HandlerOpts{
		ErrorHandling: promhttp.ContinueOnError, MaxRequestsInFlight: scrapesAtOnce,
		EnableOpenMetrics: true}))
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		io.WriteString(w, e.page())
	})
	return mux
}

const pageHead = `<!DOCTYPE html>
<html lang="en"><head><title>tieralloc</title></head><body>
<h1>tieralloc %s</h1>
<p><a href="/metrics">Metrics</a> for Prometheus</p>
<table><tr><th>pid</th><th>program</th><th>committed</th><th>live</th><th>figures from</th></tr>
`

// page is the page for people: a table of the processes.
func (e *exporter) page() string {
	var text strings.Builder
	fmt.Fprintf(&text, pageHead, version.Number)
	err := e.eachProcess(func(pid int, program string, s *live.Snapshot) {
		fmt.Fprintf(&text, "<tr><td>%d</td><td>%s</td><td>%s</td><td>%s</td><td>%s ago</td></tr>\n",
			pid, html.EscapeString(program), size(s.Heap.BytesCommitted), size(s.Heap.BytesLive),
			duration(uint64(s.Age())))
	})
	text.WriteString("</table>\n")
	if err != nil {
		var problems strings.Builder
		complain(&problems, err)
		fmt.Fprintf(&text, "<pre>%s</pre>\n", html.EscapeString(problems.String()))
	}
	text.WriteString("</body></html>\n")
	return text.String()
}
