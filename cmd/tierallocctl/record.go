package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"tieralloc/stats/live"
)

const recordHelp = `Record the memory of a program and its children over time, and show it.

With -o the command starts a program on the library, as tierallocctl run does, and writes what the
live pages of the program and its children say to FILE. Its exit status is the program's. Or it
records running processes, and their children, by their numbers until they have ended, or until
SIGINT or SIGTERM. At the end it prints the peaks, and what the caps did.

Without -o it shows such a file: as a table, with --html as a page with curves for a browser, or
with --svg as a picture. The page needs no network. It has the same curves for all processes
together and for each of the twelve largest.

A recording is small: a sample is written when a figure has changed by more than a 64th of its
largest value, or when a cap was met, a request refused or memory moved; smaller changes once a
second. Peaks between samples are kept. A recording that was cut off, by SIGKILL for example, can
be read: it lacks the last second.

The program gets live pages in a folder that is removed at the end, wherever TA_STATS_LIVE wants
them. Programs that continue in the background are recorded until the program that was started
ends.`

// recordOptions are the flags of record that are not settings of the library.
type recordOptions struct {
	library, output, html, svg string
	interval                   time.Duration
	quiet                      bool
}

func recordCommand() *cobra.Command {
	var o recordOptions
	cmd := &cobra.Command{
		Use:   "record [flags] [-- COMMAND [ARG...]|PID...|FILE]",
		Short: "Record the memory of a program and its children over time, and show it",
		Long:  recordHelp,
		Example: "  tierallocctl record -o train.rec --normal-soft 4G -- python3 train.py\n" +
			"  tierallocctl record -o server.rec $(pidof server)\n" +
			"  tierallocctl record --html train.html train.rec",
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.output == "" {
				return o.show(cmd, args)
			}
			return o.record(cmd, args)
		},
	}
	startsCommand(cmd, &o.library)
	cmd.Args = func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return errors.New("record: expected a command or processes to record with -o, or a" +
				" recording to show")
		}
		return nil
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.output, "output", "o", "", "write the recording to `FILE`")
	flags.DurationVar(&o.interval, "interval", 200*time.Millisecond, "`TIME` between samples")
	flags.StringVar(&o.html, "html", "", "write a page with curves to `OUT`, - for the output")
	flags.StringVar(&o.svg, "svg", "", "write an SVG picture to `OUT`, - for the output")
	flags.BoolVarP(&o.quiet, "quiet", "q", false,
		"no summary at the end, and no line for a setting without effect")
	return cmd
}

// show shows a recording.
func (o *recordOptions) show(cmd *cobra.Command, args []string) error {
	out := cmd.OutOrStdout()
	switch {
	case len(args) > 1:
		return usage("record %s %s: expected one recording to show, after the flags; to record a "+
			"command or processes, name a file with -o", args[0], args[1])
	case o.html != "" && o.svg != "":
		return usage("--html and --svg: expected one of them")
	}
	r, err := readRecording(args[0])
	switch {
	case err != nil:
		return err
	case o.html != "":
		return writeFile(o.html, out, r.html)
	case o.svg != "":
		return writeFile(o.svg, out, r.picture)
	}
	r.summary(out)
	return nil
}

// record writes a recording, and shows its summary.
func (o *recordOptions) record(cmd *cobra.Command, args []string) error {
	if o.html != "" || o.svg != "" {
		return usage("-o records, --html and --svg show what was recorded: expected one of them")
	}
	if o.interval < shortest {
		return wrongInterval(o.interval)
	}
	status, err := 0, error(nil)
	if _, number := processNumber(args[0]); number && cmd.ArgsLenAtDash() < 0 {
		err = o.recordProcesses(args)
	} else {
		status, err = o.recordProgram(cmd, args)
	}
	if err != nil {
		return err
	}
	if !o.quiet {
		if r, err := readRecording(o.output); err != nil {
			complain(cmd.ErrOrStderr(), err)
		} else {
			r.summary(cmd.ErrOrStderr())
		}
	}
	if status != 0 {
		return &failure{status, nil}
	}
	return nil
}

// recordProgram starts a program and records it. An error of the file does not change the
// program's exit status.
func (o *recordOptions) recordProgram(cmd *cobra.Command, args []string) (status int, err error) {
	finder, path, err := newFolderFinder()
	if err != nil {
		return 0, &failure{statusRunFailed, fmt.Errorf("cannot make live pages: %w", err)}
	}
	defer finder.close()
	l, err := prepare(cmd, o.library, args[0], func(env environ) environ {
		return env.with("TA_STATS_LIVE", path)
	})
	if err != nil {
		return 0, err
	}
	if !o.quiet {
		warnIdle(cmd.ErrOrStderr(), l.own, l.config, l.flags)
	}
	file, err := os.Create(o.output)
	if err != nil {
		return 0, &failure{statusRunFailed, err}
	}
	r := o.start(file, finder.find, args)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		r.run(o.interval, stop, false)
		close(stopped)
	}()
	end, err := runChild(l.path, args, l.env.preload(l.library))
	close(stop)
	<-stopped
	if bad := errors.Join(r.finish(end.status), file.Close()); bad != nil {
		complain(cmd.ErrOrStderr(), fmt.Errorf("%s: %w", o.output, bad))
	}
	if err != nil {
		return 0, &failure{statusNotRunnable, err}
	}
	return end.status, nil
}

// start begins a recording.
func (o *recordOptions) start(file *os.File, find func() []*live.Page,
	command []string) *recorder {
	now := time.Now()
	return &recorder{find: find, start: now,
		out: newRecordingWriter(file, now, o.interval, command)}
}

// recordProcesses records running processes.
func (o *recordOptions) recordProcesses(args []string) error {
	var pids []int
	for _, arg := range args {
		pid, err := strconv.Atoi(arg)
		if err != nil || pid <= 0 {
			return usage("record %s: expected the number of a process; a command comes after --",
				arg)
		}
		pids = append(pids, pid)
	}
	finder, err := newTreeFinder(pids)
	if err != nil {
		return err
	}
	file, err := os.Create(o.output)
	if err != nil {
		return err
	}
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGHUP,
		os.Interrupt)
	defer cancel()
	r := o.start(file, finder.find, nil)
	r.run(o.interval, ctx.Done(), true)
	if err := errors.Join(r.finish(0), file.Close()); err != nil {
		return fmt.Errorf("%s: %w", o.output, err)
	}
	return nil
}
