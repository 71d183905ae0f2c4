package main

import (
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
)

const topHelp = `Watch all processes that have a live page, on the full screen: those that
tierallocctl run started, and those with TA_STATS_LIVE=1. Root sees the processes of all
users.

Each process has a line, and below it a line for each of its tiers. The line of a tier shows
its charge, its share of the cap and, for the last interval, the allocations and bytes per
second, the time charged for throttling, and the pages moved out of the tier. Of a process
with TA_ON_SOFTCAP=follow it also shows which bytes of the tier the last sample found hot and
cold. Age is the age of the figures: a process updates them while it allocates, ten times a
second at most. An idle process does not update them.

With --once, or if the output is not a terminal, the command prints one table of one interval
as plain text.`

// shortest is the shortest interval at which pages are updated.
const shortest = 100 * time.Millisecond

func wrongInterval(interval time.Duration) error {
	return usage("--interval %v: expected a time such as 1s, at least %v", interval, shortest)
}

func topCommand() *cobra.Command {
	var interval time.Duration
	var once bool
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Watch all processes on the library",
		Long:  topHelp,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if interval < shortest {
				return wrongInterval(interval)
			}
			out := cmd.OutOrStdout()
			if once || !isTerminal(out) || !isTerminal(os.Stdin) {
				return topOnce(out, cmd.ErrOrStderr(), interval)
			}
			return runScreen(out, newScreen(interval))
		},
	}
	cmd.Flags().DurationVar(&interval, "interval", time.Second, "`TIME` between updates")
	cmd.Flags().BoolVar(&once, "once", false, "one table as plain text")
	return cmd
}

// topOnce writes what happens during one interval. It reports pages that cannot be read, but does
// not fail because of them: other users may have left them.
func topOnce(w, stderr io.Writer, interval time.Duration) error {
	first := takeSample()
	time.Sleep(interval)
	second := takeSample()
	f := frame{list: compareSamples(first, second), order: orders[0]}
	f.order.sort(f.list)
	if second.err != nil {
		complain(stderr, second.err)
	}
	_, err := io.WriteString(w, f.String())
	return err
}
