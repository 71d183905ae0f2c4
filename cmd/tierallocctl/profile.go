package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/pprof/profile"
	"github.com/spf13/cobra"
)

const profileHelp = `Show a heap profile that the library has written (TA_PROFILE=FILE), or another
profile in pprof's format. Values are estimates from a sample of the blocks.

PID names a running process with a live page (TA_STATS_LIVE=1). It is asked to write the file that
its TA_PROFILE names, which it does when it next allocates or frees, or within a tenth of a second
with TA_BACKGROUND=1. The command waits for that (--wait) and shows the file.

  --top        a table of functions: flat is a function's own blocks, cum
               includes those of the functions that it called
  --flame OUT  a flame graph as an SVG picture: callers above, width by value
  --leaks      stacks that allocate steadily and free almost nothing; whether
               the memory is still reachable is not known
  -o OUT       the profile with the names of functions, for "go tool pprof"

--type names what is counted; the default is inuse_space:

  alloc_objects, alloc_space   blocks and bytes allocated
  inuse_objects, inuse_space   blocks and bytes not freed
  peak_space                   bytes in use when the heap was largest
  recent_space                 bytes in use from the last half of the time
  lifetime                     time from allocation to free, of blocks freed
  inuse_samples                how many blocks not freed were sampled
  touches, heat_space          touched pages per second, and the bytes of which
                               that is known (TA_PROFILE_HEAT=1)

Memory of CUDA devices has types of its own (device_inuse_space and so on), exact and not estimated.
--top and --leaks show each device behind the host.

In Python programs (CPython 3.11 to 3.14) blocks belong to functions of Python; --native shows the
functions of C below them, too.

--diff OLD subtracts an earlier profile. Percentages are then of the earlier total. In the
picture growth is red and shrinkage blue, and a width is the larger one of both profiles.

Names come from the symbol tables and debug information of the program's files, or of
/usr/lib/debug/.build-id, and for code that was compiled at run time from /tmp/perf-PID.map
("python -X perf" writes one). A file that was replaced since is not used.`

const profileLines = 20 // of the table

// profileOptions are the flags of profile.
type profileOptions struct {
	top, leaks, native       bool
	flame, output, old, kind string
	lines                    int
	wait                     time.Duration // for a running process
}

func profileCommand() *cobra.Command {
	var o profileOptions
	cmd := &cobra.Command{
		Use:   "profile PID|FILE",
		Short: "Show the heap profile of a process or file: functions, a flame graph, leaks",
		Long:  profileHelp,
		Example: "  tierallocctl profile --flame heap.svg heap.pb\n" +
			"  tierallocctl profile -o before.pb $(pidof server)\n" +
			"  tierallocctl profile --diff before.pb $(pidof server)",
		Args: cobra.ExactArgs(1),

		ValidArgsFunction: completeProcesses,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return &failure{statusUsage, err}
			}
			return o.show(cmd.OutOrStdout(), cmd.ErrOrStderr(), args[0])
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.top, "top", false, "print a table of functions (the default)")
	flags.StringVar(&o.flame, "flame", "",
		"write a flame graph as an SVG picture to `OUT`, - for the output")
	flags.BoolVar(&o.leaks, "leaks", false,
		"list stacks that allocate steadily and free almost nothing")
	flags.StringVarP(&o.output, "output", "o", "",
		"write the profile with names, compressed, to `OUT`, - for the output")
	flags.StringVar(&o.kind, "type", "", "count `TYPE` (with --top or --flame)")
	flags.StringVar(&o.old, "diff", "", "subtract the profile `OLD` (with --top or --flame)")
	flags.BoolVar(&o.native, "native", false, "show functions of C below those of Python, too")
	flags.DurationVar(&o.wait, "wait", answerWait, "give process PID so much `TIME` to answer")
	flags.IntVar(&o.lines, "lines", profileLines, "show `N` functions, or stacks with --leaks; 0 for all")
	return cmd
}

// check refuses flags that do not go together.
func (o *profileOptions) check() error {
	var views []string
	for _, v := range []struct {
		name  string
		given bool
	}{{"--top", o.top}, {"--flame", o.flame != ""}, {"--leaks", o.leaks}, {"-o", o.output != ""}} {
		if v.given {
			views = append(views, v.name)
		}
	}
	view := append(views, "--top")[0]
	switch {
	case len(views) > 1:
		return fmt.Errorf("profile has one view at a time: %s", strings.Join(views, " and "))
	case o.old != "" && (o.leaks || o.output != ""):
		return fmt.Errorf("--diff goes with --top or --flame, not with %s", view)
	case o.kind != "" && (o.leaks || o.output != ""):
		return fmt.Errorf("--type goes with --top or --flame, not with %s", view)
	case o.lines < 0:
		return fmt.Errorf("--lines %d: expected a number, or 0 for all", o.lines)
	}
	return checkWait(o.wait)
}

// show reads the profiles and shows the view that was asked for.
func (o *profileOptions) show(out, stderr io.Writer, name string) error {
	f, err := openProfile(name, o.wait)
	if err != nil {
		return err
	}
	var old *profileFile
	if o.old != "" {
		if old, err = readProfile(o.old); err != nil {
			return err
		}
		old.likeDevices(f)
		f.likeDevices(old)
		if err := sameSampleTypes(old, f); err != nil {
			return err
		}
	}
	kind := 0
	if !o.leaks && o.output == "" {
		if kind, err = f.sampleType(o.kind); err != nil {
			return err
		}
	}
	f.symbolize(stderr)
	if o.output != "" {
		return writeFile(o.output, out, f.profile.Write)
	}
	if old != nil {
		old.symbolize(stderr)
	}
	if !o.native {
		foldPython(f.profile)
		if old != nil {
			foldPython(old.profile)
		}
	}
	switch {
	case o.leaks:
		return f.leaks(out, o.lines)
	case o.flame != "":
		return writeFile(o.flame, out, newFlame(f, old, kind).svg)
	}
	f.tables(out, old, kind, o.lines)
	return nil
}

// writeFile has write fill the file at a path, or the output where the path is "-".
func writeFile(path string, out io.Writer, write func(io.Writer) error) error {
	if path == "-" {
		return write(out)
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(write(file), file.Close())
}

// comment returns the value of a line in the comments, such as "1234" of "pid 1234".
func comment(p *profile.Profile, key string) string {
	for _, line := range p.Comments {
		if value, ok := strings.CutPrefix(line, key+" "); ok {
			return value
		}
	}
	return ""
}

// title says which program a profile is of.
func (f *profileFile) title() string {
	name := filepath.Base(cmp.Or(comment(f.profile, "program"), f.path))
	if pid := comment(f.profile, "pid"); pid != "" {
		name += " (process " + pid + ")"
	}
	if ns := f.profile.DurationNanos; ns > 0 {
		name += ", " + duration(uint64(ns))
	}
	return printable(name)
}
