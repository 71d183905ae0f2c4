package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"tieralloc/stats"
	"tieralloc/stats/live"
)

const sleepHelp = `Have a running process give the device memory of its regions back to the
driver. The blocks keep their addresses, and the host keeps their contents in page-locked memory,
unless --discard gives them up. "tierallocctl gpu wake" brings the memory back.

A region is memory that the program allocated between ta_cuda_region_begin and ta_cuda_region_end
(in Python: tieralloc.cuda.region). Other device memory stays.

The process waits for the device first. Until the region is awake the program must not use its
memory: a kernel that does fails, and with it all CUDA work of the process. Allocations in the
region fail. So send a program to sleep while it serves nothing.

The process needs TA_BACKGROUND=1 and a live page (TA_STATS_LIVE=1). It carries this out on a thread
of its own.`

const wakeHelp = `Have a running process bring back the device memory of regions that sleep, at the
same addresses and with the contents that the host has. Contents that were discarded are undefined.

If the device has no memory the region sleeps on, with its contents. "tierallocctl gpu sleep" says
what the process needs.`

// sleepWait is how long a process is given: the host's page-locked memory takes seconds to get.
const sleepWait = time.Minute

// regionOrder is what gpu sleep and gpu wake ask for.
type regionOrder struct {
	what     stats.LiveOrder
	device   int
	tag      string
	keep     bool
	discard  bool
	wait     time.Duration
	verb     string
	done     string // what became of the memory
	already  string
	noMemory string
}

func sleepCommand() *cobra.Command {
	o := &regionOrder{verb: "sleep", done: "given back to the driver", already: "sleeps already",
		noMemory: "the host has no memory for its contents; --discard gives them up"}
	cmd := &cobra.Command{
		Use:   "sleep PID",
		Short: "Have a process give device memory of its regions back for a while",
		Long:  sleepHelp,
		Example: "  tierallocctl gpu sleep $(pidof server)\n" +
			"  tierallocctl gpu sleep --tag kv --discard 1234",
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.keep, "keep", false, "the host keeps the contents (the default)")
	flags.BoolVar(&o.discard, "discard", false, "the contents are lost")
	return o.command(cmd)
}

func wakeCommand() *cobra.Command {
	o := &regionOrder{verb: "wake", done: "of memory again", already: "is awake already",
		noMemory: "the device has no memory; it sleeps on, with its contents",
		what:     stats.LiveOrder{Kind: stats.OrderWake}}
	return o.command(&cobra.Command{
		Use:     "wake PID",
		Short:   "Have a process bring its device memory back after gpu sleep",
		Long:    wakeHelp,
		Example: "  tierallocctl gpu wake $(pidof server)",
	})
}

// command completes the command of an order.
func (o *regionOrder) command(cmd *cobra.Command) *cobra.Command {
	cmd.Args = cobra.ExactArgs(1)
	cmd.ValidArgsFunction = completeProcesses
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		pid, err := strconv.Atoi(args[0])
		if err != nil || pid <= 0 {
			return usage("%q is not the number of a process", args[0])
		}
		if err := o.encode(cmd.Flags().Changed("device"), cmd.Flags().Changed("tag")); err != nil {
			return &failure{statusUsage, err}
		}
		lines, err := o.give(pid)
		if err != nil {
			return err
		}
		return o.tell(cmd.OutOrStdout(), pid, lines)
	}
	flags := cmd.Flags()
	flags.IntVar(&o.device, "device", 0, "only regions of device `N`, by the process's own numbers")
	flags.StringVar(&o.tag, "tag", "", "only regions of the name `TAG`")
	flags.DurationVar(&o.wait, "wait", sleepWait, "give the process so much `TIME`")
	return cmd
}

// encode fills in what the process is told.
func (o *regionOrder) encode(oneDevice, oneTag bool) error {
	o.what.Device = stats.OrderEvery
	if oneDevice {
		if o.device < 0 {
			return fmt.Errorf("--device %d: devices count from 0", o.device)
		}
		o.what.Device = uint64(o.device)
	}
	if oneTag {
		var ok bool
		if o.what.Name, ok = live.RegionName(o.tag); !ok {
			return fmt.Errorf("--tag %q: a region's name has 1 to %d bytes", o.tag,
				live.RegionNameMax)
		}
	}
	if o.keep && o.discard {
		return errors.New("--keep, --discard: give one of them")
	}
	if o.discard {
		o.what.Kind = stats.OrderDiscard
	}
	return checkWait(o.wait)
}

// give has the process carry the order out. It returns a line for each region.
func (o *regionOrder) give(pid int) (lines []live.Region, err error) {
	err = askProcess(pid, func(file *live.Page) error {
		lines, err = o.givePage(file)
		return err
	})
	return lines, err
}

func (o *regionOrder) givePage(file *live.Page) ([]live.Region, error) {
	pid := file.Pid()
	lines, refused, err := file.Order(o.what, o.wait)
	switch {
	case errors.Is(err, live.ErrEnded):
		return nil, fmt.Errorf("process %d ended before it answered", pid)
	case errors.Is(err, live.ErrLate):
		return nil, fmt.Errorf("process %d has not answered in %v: it is stopped, or idle without "+
			"TA_BACKGROUND=1, or still at it. If it has not begun by now it will not; wait longer "+
			"with --wait", pid, o.wait)
	case err != nil:
		return nil, notAsked(file, err)
	case refused != 0:
		return nil, fmt.Errorf("process %d %s", pid, o.refusal(refused))
	}
	return lines, nil
}

// refusal says why a process does nothing.
func (o *regionOrder) refusal(errno syscall.Errno) string {
	switch errno {
	case syscall.ENODATA:
		return "has device memory that is not the library's: start it without TA_CUDA=0"
	case syscall.ENODEV:
		return "has no device memory: it uses no CUDA device"
	case syscall.EOPNOTSUPP:
		return "has no thread that could do this: start it with TA_BACKGROUND=1"
	case syscall.E2BIG:
		return "has more regions than can be listed"
	case syscall.ETIMEDOUT:
		return "saw the request too late, and has done nothing: wait longer (--wait)"
	}
	return "cannot do this: " + errno.Error()
}

// tell prints a line for each region, and returns an error if one did not obey.
func (o *regionOrder) tell(w io.Writer, pid int, lines []live.Region) error {
	if len(lines) == 0 {
		return fmt.Errorf("process %d has no %s", pid, o.named())
	}
	var failed []string
	for _, r := range lines {
		where := fmt.Sprintf("device %d, region %s", r.Device, printable(r.Name))
		took := time.Duration(min(r.Took, math.MaxInt64)).Round(time.Microsecond)
		switch {
		case r.Errno != 0:
			failed = append(failed, where+": "+o.why(r.Errno))
		case r.Bytes == 0:
			fmt.Fprintf(w, "%s: %s, or has no memory\n", where, o.already)
		default:
			fmt.Fprintf(w, "%s: %s %s in %v\n", where, size(r.Bytes), o.done, took)
		}
	}
	if failed != nil {
		return fmt.Errorf("process %d: %s", pid, strings.Join(failed, "\n"))
	}
	return nil
}

// named describes the regions that the order is about.
func (o *regionOrder) named() string {
	s := "region"
	if o.what.Name[0] != 0 {
		s += " " + printable(o.tag)
	}
	if o.what.Device != stats.OrderEvery {
		s += fmt.Sprintf(" on device %d", o.what.Device)
	}
	return s + ": regions are made by ta_cuda_region_begin, or tieralloc.cuda.region"
}

// why says why a region did not obey.
func (o *regionOrder) why(errno syscall.Errno) string {
	switch errno {
	case syscall.ENOMEM:
		return o.noMemory
	case syscall.EBUSY:
		return "a graph is being captured; try again"
	case syscall.ENOTSUP:
		return "the driver cannot map memory at its addresses, or TA_CUDA_EXPANDABLE=0"
	case syscall.ENODEV:
		return "its device is gone"
	case syscall.EINVAL:
		return "it is gone"
	case syscall.EIO:
		return "the driver has failed; its contents may be lost"
	}
	return errno.Error()
}
