package main

import (
	"errors"
	"fmt"
	"io"
	"os/user"
	"strconv"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"tieralloc/stats/live"
)

const statsHelp = `Show the statistics of another process, running or dead.

PID names a process with a live page: one that tierallocctl run started, or one with
TA_STATS_LIVE=1. FILE is a live page or a statistics file (TA_STATS_FILE). Without an
argument the command lists all live pages.

A page outlives a process that a signal kills. The list shows it, with its owner and the
age of its figures, until --prune removes it.

A report's bytes by node are scaled from a sample. With --nodes they are exact and of
resident pages, from the kernel's /proc/PID/numa_maps and the page map in the process's
memory: for each tier, for mappings that several tiers share ("mixed"), and for memory
that the library keeps for itself ("own"). This needs no live page.

Pages are found in the memory of running processes, in /dev/shm by the usual name, and at the
path that TA_STATS_LIVE gives in this program's own environment or in /etc/tieralloc.conf. So
root sees the pages of all users. Others see their own, except those of processes that they
may not trace.`

// statsOptions are the flags of stats.
type statsOptions struct {
	json, prune, watch, nodes bool
	interval                  time.Duration
	library                   string
}

func statsCommand() *cobra.Command {
	var o statsOptions
	cmd := &cobra.Command{
		Use:   "stats [PID|FILE]",
		Short: "Show the statistics of another process, running or dead",
		Long:  statsHelp,
		Args:  cobra.MaximumNArgs(1),

		ValidArgsFunction: completeProcesses,
		RunE: func(cmd *cobra.Command, args []string) error {
			out, stderr := cmd.OutOrStdout(), cmd.ErrOrStderr()
			switch {
			case o.nodes && (len(args) == 0 || o.prune || o.watch):
				return usage("stats --nodes takes the number of a process, and does not repeat")
			case o.nodes:
				return showHeapNodes(out, args[0], o.library, o.json)
			case o.prune && (len(args) > 0 || o.watch):
				return usage("stats --prune takes no argument, and does not repeat")
			case o.prune:
				return prunePages(out)
			case o.interval < shortest:
				return wrongInterval(o.interval)
			}
			show := func(w io.Writer) (bool, error) { return true, listPages(w, stderr, o.json) }
			if len(args) > 0 {
				show = func(w io.Writer) (bool, error) { return showStats(w, args[0], o.json) }
			}
			if o.watch {
				return watch(out, o.interval, show)
			}
			_, err := show(out)
			return err
		},
	}
	cmd.Flags().BoolVar(&o.json, "json", false,
		"the report as the library writes it (docs/stats.schema.json)")
	cmd.Flags().BoolVar(&o.prune, "prune", false,
		"remove the live pages of processes that have ended")
	cmd.Flags().BoolVar(&o.watch, "watch", false, "repeat until the process has ended")
	cmd.Flags().BoolVar(&o.nodes, "nodes", false,
		"show on which nodes the bytes of a process's heap are")
	cmd.Flags().StringVar(&o.library, "library", "",
		"with --nodes: the library `FILE` of the process, if it is not the one beside this program")
	cmd.Flags().DurationVar(&o.interval, "interval", time.Second, "`TIME` between updates")
	return cmd
}

// showStats writes the statistics of a process, by its number, or of a file. alive says that they
// may still change.
func showStats(w io.Writer, name string, asJSON bool) (alive bool, err error) {
	pid, err := strconv.Atoi(name)
	if err != nil || pid <= 0 {
		return showFile(w, name, asJSON)
	}
	p, err := findPage(pid, snapshot)
	if err != nil {
		return false, err
	}
	return showPage(w, p, asJSON)
}

// showFile is showStats for a file of either kind.
func showFile(w io.Writer, path string, asJSON bool) (alive bool, err error) {
	p, err := readPage(path, snapshot)
	if err == nil {
		return showPage(w, p, asJSON)
	}
	if !errors.Is(err, live.ErrNotPage) {
		return false, err
	}
	text, r, err := readReportFile(path)
	if err != nil {
		return false, err
	}
	if asJSON {
		_, err = w.Write(escapeJSON(text))
		return false, err
	}
	describe(w, r)
	return false, nil
}

func showPage(w io.Writer, p *page, asJSON bool) (alive bool, err error) {
	alive = !p.state.Dead()
	if p.other != nil {
		return alive, p.other
	}
	if p.report == nil {
		return alive, fmt.Errorf("%s of process %d (%s, %s) has no figures yet: they come with "+
			"its first allocations",
			p.path, p.pid, p.program, p.state)
	}
	if asJSON {
		_, err := w.Write(escapeJSON(p.text))
		return alive, err
	}
	fmt.Fprintf(w, "%s; figures from %s ago; process %d of %s\n", stateWords(p.state),
		duration(uint64(p.age)), p.pid, userName(p.owner))
	describe(w, p.report)
	return alive, nil
}

// stateWords describes the state of a process.
func stateWords(s live.State) string {
	switch s {
	case live.Killed:
		return "killed: these are the last figures before the process died"
	case live.Exited:
		return "exited: these are the final figures"
	case live.Replaced:
		return "replaced: the process runs another program now"
	case live.Unknown:
		return "unknown: the process is in another PID namespace"
	}
	return s.String()
}

// noPages says how to get a live page.
const noPages = "No live pages. For a process to have one, " + howToPage + "."

// listed is a page in the list as JSON.
type listed struct {
	Path    string `json:"path"`
	Pid     int    `json:"pid"`
	Owner   int    `json:"owner"`
	Program string `json:"program"`
	State   string `json:"state"`
	AgeNs   int64  `json:"age_ns"`
}

// listPages writes one line per live page. It reports pages that cannot be read, but does not fail
// because of them: other users may have left them.
func listPages(w, stderr io.Writer, asJSON bool) error {
	pages, bad := allPages()
	if bad != nil {
		complain(stderr, bad)
	}
	return writeList(w, pages, asJSON)
}

func writeList(w io.Writer, pages []*page, asJSON bool) error {
	if asJSON {
		list := []listed{}
		for _, p := range pages {
			list = append(list, listed{printable(p.path), p.pid, p.owner, p.program,
				p.state.String(), p.age.Nanoseconds()})
		}
		return writeJSON(w, list)
	}
	if len(pages) == 0 {
		fmt.Fprintln(w, noPages)
		return nil
	}
	t := newTable(">pid", "owner", "program", "state", ">memory", ">figures from", "page")
	ended := 0
	for _, p := range pages {
		if p.state.Dead() {
			ended++
		}
		memory, age := none, none
		if p.report != nil {
			memory, age = size(p.report.Heap.BytesCommitted), duration(uint64(p.age))+" ago"
		}
		t.AppendRow(table.Row{p.pid, userName(p.owner), p.program, p.state, memory, age,
			printable(p.path)})
	}
	fmt.Fprintln(w, t.Render())
	if ended > 0 {
		fmt.Fprintf(w, "%s of processes that have ended; to remove them: tierallocctl stats "+
			"--prune\n", plural(ended, "page"))
	}
	return nil
}

// userName returns the name of a user by the number, or the number.
func userName(uid int) string {
	number := strconv.Itoa(uid)
	if u, err := user.LookupId(number); err == nil {
		return printable(u.Username)
	}
	return number
}

// prunePages removes the pages of processes that have ended. It removes each from the folder in
// which it was found, unless another file has its name by now.
func prunePages(w io.Writer) error {
	return eachPage(0, func(file *live.Page) error {
		p, err := snapshot(file)
		if err != nil || !p.state.Dead() || file.Mapped() {
			return err
		}
		if err := file.Remove(); err != nil {
			return err
		}
		fmt.Fprintf(w, "removed %s (%s of %s, %s)\n", printable(p.path), p.program,
			userName(p.owner), p.state)
		return nil
	})
}
