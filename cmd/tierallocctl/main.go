// Tierallocctl starts programs with libtieralloc.so, shows what the library does in them, and
// explains its settings.
//
// It is ordinary Go and not part of the library. It checks settings by the library's own parser,
// and reads the figures of other processes from their live page or their statistics file.
//
//	main.go, failure.go, help.go
//	                         the commands' root, the exit statuses, and help
//	settings.go, settingdocs.go
//	                         the TA_ variables as flags, and their documentation
//	manual.go, completion.go the manual's pages and shell completions, made from the same
//	configcheck.go, nodes.go the library's reading of an environment, and where
//	                         its tiers would be
//	systemfile.go            the file of settings for the whole system
//	run.go, child.go, runreport.go
//	                         a command on the library, to its end, and its figures
//	verify.go, trace.go, image.go, loader.go, unreachable.go
//	                         which allocator serves a command and its children
//	report.go, tables.go     a statistics report, decoded and shown
//	reporttables.go          its CUDA devices, memory managers and sites
//	stats.go, pages.go, watch.go
//	                         the reports of other processes
//	heapnodes.go, mappings.go
//	                         the nodes of another process's heap
//	top.go, sample.go, frame.go, screen.go
//	                         all processes on a full screen
//	export.go, exportserver.go, exportcollector.go, exportfamilies.go
//	                         their metrics, for Prometheus
//	record.go, recorder.go, recordfigures.go, recordwriter.go
//	                         their memory over time, sampled to a file
//	recordfile.go, recordview.go, recordevents.go, recordtext.go, recordsvg.go, recordhtml.go
//	                         and shown as a table, a picture or a page with curves
//	uplot                    uPlot, which draws the curves in a browser (its own LICENSE)
//	heat.go, heatgrid.go, heattext.go, heatsvg.go, heatscreen.go
//	                         the heat of a process's heap as a picture
//	profile.go, profilefile.go, profileframe.go
//	                         heap profiles, decoded
//	askprocess.go            and those of running processes
//	profilesymbols.go, profilecode.go, profiledwarf.go, profileperfmap.go
//	                         the names of functions for their addresses
//	profiletable.go, profileflame.go, profileleaks.go
//	                         and the views
//	svg.go                   what pictures have in common
//	check.go, rulelist.go, advice.go
//	                         the settings in effect, explained
//	topology.go              this machine's memory
//	gpu.go, nvmllink         its CUDA devices, by NVML
//	gpusnapshot.go, snapshotfile.go, snapshottrace.go, snapshotpickle.go
//	                         pictures of their memory
//	gpusleep.go              regions of their memory that sleep and wake
//	group.go, groupfile.go   groups of processes that have caps together
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

const rootHelp = `Start programs on libtieralloc.so, watch them, and check their settings.

"tierallocctl help COMMAND" explains a command, and "tierallocctl help VARIABLE" one of the
library's variables, such as TA_FAST_HARD.`

// execute runs the command that args name and returns the exit status.
func execute(args []string, stdout, stderr io.Writer) int {
	started := false // an error before then is a usage error
	root := &cobra.Command{
		Use:               "tierallocctl",
		Short:             "Start programs on tieralloc, watch them, and check their settings",
		Long:              rootHelp,
		SilenceErrors:     true,
		SilenceUsage:      true,
		DisableAutoGenTag: true,
		PersistentPreRun:  func(*cobra.Command, []string) { started = true },
	}
	root.AddCommand(runCommand(), verifyCommand(), statsCommand(), topCommand(), heatCommand(),
		exportCommand(), recordCommand(), profileCommand(), adviseCommand(), checkCommand(),
		topologyCommand(), gpuCommand(), groupCommand(), versionCommand(), completionCommand(),
		manualCommand())
	root.SetHelpCommand(helpCommand())
	root.CompletionOptions.DisableDefaultCmd = true // completionCommand takes its place
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

// complain writes an error line by line. Other users may have chosen parts of it, so it replaces
// characters that are not printable.
func complain(w io.Writer, err error) {
	for line := range strings.Lines("tierallocctl: " + err.Error()) {
		fmt.Fprintln(w, printable(strings.TrimSuffix(line, "\n")))
	}
}
