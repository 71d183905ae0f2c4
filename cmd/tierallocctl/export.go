package main

import (
	"fmt"
	"io"
	"path/filepath"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
	"github.com/spf13/cobra"
)

const exportHelp = `Write metrics for Prometheus: of all running processes that have a live page
(those that tierallocctl run started, and those with TA_STATS_LIVE=1) which this user may read.
Root reads those of all users.

With --listen the command serves them at /metrics until SIGTERM or SIGINT ends it, and a page for
people at /. It reads the pages at each scrape. There is no access control: whoever reaches the
address sees the names and figures of the processes.

With --textfile it writes them once, to a file for node_exporter's textfile collector, which never
sees half of a file. With neither it prints them.

The metrics have the labels pid and program, and tier, node, device, uuid, function or move where
they apply. A tier that was never used and has no cap, and a function that was never called, are
left out. A process that ends vanishes.`

// exportOptions are the flags of export.
type exportOptions struct {
	listen, textfile string
}

func exportCommand() *cobra.Command {
	var o exportOptions
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Write metrics of all processes for Prometheus",
		Long:  exportHelp,
		Example: "  tierallocctl export --listen 127.0.0.1:9464\n" +
			"  tierallocctl export --textfile /var/lib/prometheus/node-exporter/tieralloc.prom",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			listen, textfile := cmd.Flags().Changed("listen"), cmd.Flags().Changed("textfile")
			e := newExporter((&changes{w: cmd.ErrOrStderr()}).tell)
			switch {
			case listen && textfile:
				return usage("--listen and --textfile: expected one of them")
			case listen:
				return e.serve(cmd.ErrOrStderr(), o.listen)
			case textfile:
				return e.writeTextfile(o.textfile)
			}
			return e.print(cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&o.listen, "listen", "", "serve at `ADDRESS`: HOST:PORT, or :PORT"+
		" for all addresses of this machine")
	cmd.Flags().StringVar(&o.textfile, "textfile", "", "write `FILE`, whose name ends in .prom, once")
	return cmd
}

// changes writes errors when they differ from the last.
type changes struct {
	w    io.Writer
	lock sync.Mutex
	last string
}

func (c *changes) tell(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	c.lock.Lock()
	defer c.lock.Unlock()
	if text != "" && text != c.last {
		complain(c.w, err)
	}
	c.last = text
}

// print writes the metrics as text.
func (e *exporter) print(w io.Writer) error {
	families, err := e.registry().Gather()
	if err != nil {
		return err
	}
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(w, f); err != nil {
			return err
		}
	}
	return nil
}

// textfileSuffix ends the names of the files that node_exporter reads.
const textfileSuffix = ".prom"

// writeTextfile writes the metrics to a file beside it, which it then renames to path.
func (e *exporter) writeTextfile(path string) error {
	if filepath.Ext(path) != textfileSuffix {
		return usage("--textfile %s: expected a file name that ends in %s, as node_exporter reads "+
			"no other", path, textfileSuffix)
	}
	if err := prometheus.WriteToTextfile(path, e.registry()); err != nil {
		return fmt.Errorf("--textfile %s: %w", path, err)
	}
	return nil
}
