// Tierallocctl starts programs on libtieralloc.so, shows what the library does in
// them, and explains its settings.
//
// It is ordinary Go and no part of the library. It judges settings by the library's
// own parser, and reads the figures of other processes from what they leave: their
// live page or their statistics file.
//
//	main.go, failure.go      the commands' root and the exit statuses
//	settings.go, settingdocs.go
//	configcheck.go, nodes.go  what the library would say of an environment, and where
//	                         its tiers would be
//	run.go, child.go, runreport.go
//	                         a command on the library, to its end, and its figures
//	verify.go, trace.go, image.go, object.go, unreachable.go
//	                         which allocator serves a command and what it starts
//	report.go, tables.go     a statistics report, decoded and shown
//	device.go                its CUDA devices
//	stats.go, pages.go, watch.go
//	                         the reports of other processes
//	heapnodes.go, mappings.go
//	                         the nodes of another process's heap
//	top.go, sample.go, frame.go, screen.go
//	                         all of them on a full screen
//	check.go, rulelist.go, advice.go, advicecuda.go
//	                         the settings in effect, explained
//	topology.go              this machine's memory
//	gpu.go, nvml.go, nvmllink
//	                         its CUDA devices, by NVML
//	version.go               the version of the tool and the library
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
)

func main() {
	os.Exit(execute(os.Args[1:], os.Stdout, os.Stderr))
}

// execute runs the command that args name and returns the exit status.
func execute(args []string, stdout, stderr io.Writer) int {
	started := false // an error from before then is one of usage
	root := &cobra.Command{
		Use:               "tierallocctl",
		Short:             "Start programs on tieralloc, watch them, and check their settings",
		SilenceErrors:     true,
		SilenceUsage:      true,
		DisableAutoGenTag: true,
		PersistentPreRun:  func(*cobra.Command, []string) { started = true },
	}
	root.AddCommand(runCommand(), verifyCommand(), statsCommand(), topCommand(), checkCommand(),
		topologyCommand(),
		gpuCommand(), versionCommand())
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	cmd, err := root.ExecuteC()
	if err == nil {
		return 0
	}
	if !started {
		complain(stderr, err)
		fmt.Fprintf(stderr, "See: %s --help\n", cmd.CommandPath())
		return statusUsage
	}
	var f *failure
	if !errors.As(err, &f) {
		f = &failure{statusFailed, err}
	}
	if f.err != nil {
		complain(stderr, f.err)
	}
	return f.status
}

// complain writes an error, of which each line but not more may be of somebody else's
// choosing.
func complain(w io.Writer, err error) {
	for line := range strings.Lines("tierallocctl: " + err.Error()) {
		fmt.Fprintln(w, printable(strings.TrimSuffix(line, "\n")))
	}
}
