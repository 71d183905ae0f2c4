package main

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"tieralloc/stats"
)

const snapshotHelp = `Write a picture of a process's device memory as a file for
https://pytorch.org/memory_viz, which shows the segments, their blocks, and the last allocations
and frees. It is PyTorch's format for snapshots (a Python pickle).

FILE is what the library has written where TA_CUDA_SNAPSHOT names a file: when a request was
refused for lack of memory. PID names a running process with that setting and a live page
(TA_STATS_LIVE=1). It is asked to write FILE.asked, which it does when it next allocates or frees
host memory, or within a tenth of a second with TA_BACKGROUND=1.

Events, blocks and segments have the stacks of Python that they come from: function, file and line,
of CPython 3.11 to 3.14. Code that was called outside Python has none.

Memory that the driver allocates itself is shown as segments of its own. Segments that were spilled
to the host are left out.`

var snapshotRequest = request{what: stats.AskSnapshot, thing: "snapshot",
	variable: "TA_CUDA_SNAPSHOT",
	without:  "takes no snapshot: start it with TA_CUDA_SNAPSHOT=FILE (and without TA_CUDA=0)",
	ended: "the file that TA_CUDA_SNAPSHOT names has one if a request was refused for lack of " +
		"memory"}

func snapshotCommand() *cobra.Command {
	var output string
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "snapshot PID|FILE",
		Short: "Write a picture of a process's device memory, for PyTorch's viewer",
		Long:  snapshotHelp,
		Example: "  tierallocctl gpu snapshot $(pidof server)\n" +
			"  tierallocctl gpu snapshot -o oom.pickle /tmp/1234.snapshot",
		Args: cobra.ExactArgs(1),

		ValidArgsFunction: completeProcesses,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkWait(wait); err != nil {
				return err
			}
			s, err := openSnapshot(args[0], wait)
			if err != nil {
				return err
			}
			if output == "" {
				output = fmt.Sprintf("snapshot.%d.pickle", s.pid)
			}
			err = writeFile(output, cmd.OutOrStdout(), s.writePickle)
			if err == nil && output != "-" {
				s.describe(cmd.OutOrStdout(), output)
			}
			return err
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&output, "output", "o", "",
		"write to `OUT`, - for the output (default snapshot.PID.pickle)")
	flags.DurationVar(&wait, "wait", answerWait, "give process PID so much `TIME` to answer")
	return cmd
}

// openSnapshot reads a snapshot: of a file, or of a running process by its number.
func openSnapshot(name string, wait time.Duration) (*memorySnapshot, error) {
	return openAsked(&snapshotRequest, name, wait, readSnapshot,
		func(s *memorySnapshot, path string) { s.path = path })
}

// describe writes what the snapshot in a file shows.
func (s *memorySnapshot) describe(w io.Writer, output string) {
	fmt.Fprintf(w, "%s: process %d; open it at https://pytorch.org/memory_viz\n",
		printable(output), s.pid)
	for i := range s.devices {
		v := &s.devices[i]
		if !v.known {
			continue
		}
		fmt.Fprintf(w, "device %d: %s in use, %s cached, %s reserved; %s, %s\n", i, size(v.live),
			size(v.cached), size(v.reserved), plural(len(v.segments), "segment"),
			plural(len(v.events), "event"))
		if v.spilled > 0 {
			fmt.Fprintf(w, "device %d: %s on the host left out, %s\n", i,
				plural(v.spilled, "segment"), size(v.onHost))
		}
	}
}
