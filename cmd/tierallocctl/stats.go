package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"tieralloc/stats/live"
)

const statsHelp = `Show the statistics of another process, running or dead.

PID: from the live page of that process, which it has if it was started with
TA_STATS_LIVE (tierallocctl run --live). The page outlives the process, also when a
signal has killed it. FILE: a live page or a statistics file (TA_STATS_FILE). Without an
argument: all live pages in /dev/shm, those that running processes have elsewhere, and
those where TA_STATS_LIVE says.`

// statsOptions are the flags of stats.
type statsOptions struct {
	json, prune bool
}

func statsCommand() *cobra.Command {
	var o statsOptions
	cmd := &cobra.Command{
		Use:   "stats [PID|FILE]",
		Short: "Show the statistics of another process, running or dead",
		Long:  statsHelp,
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			out, stderr := cmd.OutOrStdout(), cmd.ErrOrStderr()
			switch {
			case o.prune && len(args) > 0:
				return &failure{statusUsage, errors.New("stats --prune takes no argument")}
			case o.prune:
				pages, bad := allPages()
				return errors.Join(bad, prunePages(out, pages))
			case len(args) == 0:
				return listPages(out, stderr, o.json)
			}
			return showStats(out, args[0], o.json)
		},
	}
	cmd.Flags().BoolVar(&o.json, "json", false, "the report as the library writes it (docs/stats.schema.json)")
	cmd.Flags().BoolVar(&o.prune, "prune", false, "remove the live pages of processes that have ended")
	return cmd
}

// showStats writes the statistics of the process or the file that name is.
func showStats(w io.Writer, name string, asJSON bool) error {
	pid, err := strconv.Atoi(name)
	if err != nil || pid <= 0 {
		return showFile(w, name, asJSON)
	}
	p, err := findPage(pid)
	if err != nil {
		return err
	}
	return showPage(w, p, asJSON)
}

// showFile is showStats for a file of either kind.
func showFile(w io.Writer, path string, asJSON bool) error {
	p, err := readPage(path)
	if err == nil {
		return showPage(w, p, asJSON)
	}
	if !errors.Is(err, live.ErrNotPage) {
		return err
	}
	text, r, err := readReportFile(path)
	if err != nil {
		return err
	}
	if asJSON {
		_, err = w.Write(text)
		return err
	}
	describe(w, r)
	return nil
}

func showPage(w io.Writer, p *page, asJSON bool) error {
	if p.report == nil {
		return fmt.Errorf("%s of process %d (%s, %s) has no figures yet: they come with its first allocations",
			p.path, p.pid, p.program, p.state)
	}
	if asJSON {
		_, err := w.Write(p.text)
		return err
	}
	fmt.Fprintf(w, "%s; figures from %s ago\n", stateWords(p.state), duration(uint64(p.age)))
	describe(w, p.report)
	return nil
}

// stateWords says what became of a process.
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

// listed is a page in the list as JSON.
type listed struct {
	Path    string `json:"path"`
	Pid     int    `json:"pid"`
	Program string `json:"program"`
	State   string `json:"state"`
	AgeNs   int64  `json:"age_ns"`
}

// listPages writes one line per live page. Of pages that cannot be read it tells too,
// but they are no reason to fail: others may have left them.
func listPages(w, stderr io.Writer, asJSON bool) error {
	pages, bad := allPages()
	if bad != nil {
		fmt.Fprintf(stderr, "tierallocctl: %v\n", bad)
	}
	if asJSON {
		list := []listed{}
		for _, p := range pages {
			list = append(list, listed{p.path, p.pid, p.program, p.state.String(), p.age.Nanoseconds()})
		}
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(list)
	}
	if len(pages) == 0 {
		fmt.Fprintln(w, "No live pages. Processes have one if they are started with TA_STATS_LIVE=1 (tierallocctl run --live).")
		return nil
	}
	t := newTable("pid", "program", "state", "memory", "figures from", "page")
	alignRight(t, 1, 4, 5)
	for _, p := range pages {
		memory := none
		if p.report != nil {
			memory = size(p.report.Heap.BytesCommitted)
		}
		t.AppendRow(table.Row{p.pid, p.program, p.state, memory, duration(uint64(p.age)) + " ago", printable(p.path)})
	}
	fmt.Fprintln(w, t.Render())
	return nil
}

// prunePages removes those of the pages that nobody will write to any more.
func prunePages(w io.Writer, pages []*page) error {
	var bad []error
	for _, p := range pages {
		if !p.state.Dead() {
			continue
		}
		if err := os.Remove(p.path); err != nil {
			bad = append(bad, err)
			continue
		}
		fmt.Fprintf(w, "removed %s (%s, %s)\n", printable(p.path), p.program, p.state)
	}
	return errors.Join(bad...)
}
