package main

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"
)

const verifyHelp = `Start a program with libtieralloc.so preloaded, as run does, and report
which allocator serves it and each program that it starts.

The command stops each program when the loader has loaded it, and examines the loaded
objects. A program is not served if the loader ignores LD_PRELOAD (set-user-ID), if there is
no loader or another one (static, 32-bit, musl), if a library before this one has malloc, or
if a variable turns the library off. The table on standard error names the reason. If
LD_PRELOAD names the library already, verify does not change it.

The exit status is 0 if the library serves every program, and 1 if not, whatever the
command's own status is. 78: a setting is wrong; 125 to 127: as for run. Children that
continue after the command has ended are no longer watched. Programs that trace others (gdb,
strace) cannot do so here. Unless you are root, set-user-ID programs get no further rights.`

func verifyCommand() *cobra.Command {
	var library string
	cmd := &cobra.Command{
		Use:     "verify [flags] -- COMMAND [ARG...]",
		Short:   "Report whether the library serves a program and its children",
		Long:    verifyHelp,
		Example: "  tierallocctl verify -- make -C src",
		RunE: func(cmd *cobra.Command, args []string) error {
			return verify(cmd, library, args)
		},
	}
	startsCommand(cmd, &library)
	return cmd
}

func verify(cmd *cobra.Command, named string, args []string) error {
	stderr := cmd.ErrOrStderr()
	l, err := settle(cmd, args[0], func(env environ) environ { return env })
	if err != nil {
		return err
	}
	library, command := l.env.preloaded(), l.env
	if library == "" || named != "" {
		if library, err = findLibrary(named); err != nil {
			return &failure{statusRunFailed, err}
		}
		command = l.env.preload(library)
	}
	path, err := findProgram(args[0])
	if err != nil {
		return err
	}
	images, err := trace(path, args, command, library)
	if err != nil {
		return &failure{statusNotRunnable, fmt.Errorf("cannot trace %s: %w", path, err)}
	}
	served := tellImages(stderr, images)
	section(stderr, "tiers on this machine", placeLines(l.env, l.config))
	if !served {
		return &failure{statusFailed, nil}
	}
	return nil
}

// preloaded returns the name of the library in LD_PRELOAD, or "".
func (e environ) preloaded() string {
	value, _ := e.get("LD_PRELOAD")
	for _, name := range preloadNames(value) {
		if strings.HasPrefix(filepath.Base(name), libraryName) {
			return name
		}
	}
	return ""
}

// preloadNames returns the names in a value of LD_PRELOAD.
func preloadNames(value string) []string {
	return strings.FieldsFunc(value, func(c rune) bool { return c == ':' || c == ' ' })
}

// tellImages lists programs with their allocators, equal ones on one line, and reports whether the
// library serves all.
func tellImages(w io.Writer, images []*image) (served bool) {
	type line struct{ path, allocator string }
	count := map[line]int{}
	var lines []line
	bad := 0
	for _, i := range images {
		l := line{printable(i.path), printable(i.allocator())}
		if count[l]++; count[l] == 1 {
			lines = append(lines, l)
		}
		if !i.served() {
			bad++
		}
	}
	t := newTable("program", "times", "served by")
	for _, l := range lines {
		t.AppendRow(table.Row{l.path, count[l], l.allocator})
	}
	if bad == 0 {
		fmt.Fprintf(w, "tierallocctl: the library serves all programs, %d\n", len(images))
	} else {
		fmt.Fprintf(w, "tierallocctl: the library does not serve %d of %s\n", bad,
			plural(len(images), "program"))
	}
	for line := range strings.Lines(t.Render()) {
		fmt.Fprintf(w, "  %s\n", strings.TrimSuffix(line, "\n"))
	}
	return bad == 0
}
