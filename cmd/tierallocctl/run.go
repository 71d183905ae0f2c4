package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"

	"github.com/spf13/cobra"

	"tieralloc/internal/config"
)

const runHelp = `Start a program with libtieralloc.so preloaded, and summarise its statistics
at the end.

The library's own parser first checks the settings, from the flags below and from TA_
variables of the environment. If one is wrong, nothing is started and the exit status is 78.
A setting without effect, such as a cap on a tier that nothing is sent to, gets a line.
Otherwise the exit status is the command's own, or 128 and the number of the signal that
ended it. 125: tierallocctl itself failed; 126: the command cannot be run; 127: it was not
found.

Signals sent to tierallocctl are passed on to the command, except those that the terminal
sends to both (interrupt and quit). The summary is of the command's own process. Children,
and programs that continue in the background, write their reports where --stats-file says.

While they run, tierallocctl stats and top show the command and its children by their live
pages. A command that a signal ends writes no report. The summary then shows what its live
page had last, a tenth of a second earlier or when it last took new memory.`

// runOptions are the flags of run that are not settings of the library.
type runOptions struct {
	library string
	quiet   bool
	json    string
	noLive  bool
}

func runCommand() *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use:   "run [flags] -- COMMAND [ARG...]",
		Short: "Start a program on the library, and summarise its statistics",
		Long:  runHelp,
		Example: "  tierallocctl run --normal-soft 256M --on-softcap demote --rules " +
			"'size>=64M:cold' -- python3 train.py",
		RunE: func(cmd *cobra.Command, args []string) error { return run(cmd, o, args) },
	}
	startsCommand(cmd, &o.library)
	flags := cmd.Flags()
	flags.BoolVarP(&o.quiet, "quiet", "q", false,
		"no summary at the end, and no line for a setting without effect")
	flags.StringVar(&o.json, "json", "", "`PATH`: keep the statistics there")
	flags.BoolVar(&o.noLive, "no-live", false, "no live page: as TA_STATS_LIVE=0")
	return cmd
}

// startsCommand sets up cmd as a command that starts a program on the library: with a flag for each
// setting, and the program and its arguments as arguments.
func startsCommand(cmd *cobra.Command, library *string) {
	cmd.Args = func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return errors.New(cmd.Name() + ": no command is given")
		}
		return nil
	}
	flags := cmd.Flags()
	flags.SetInterspersed(false) // flags after the command are the command's
	flags.StringVar(library, "library", "", "`PATH`: the library, if it is not beside this program")
	addSettingFlags(cmd)
}

func run(cmd *cobra.Command, o runOptions, args []string) error {
	stderr := cmd.ErrOrStderr()
	env, flags := applySettingFlags(cmd.Flags(), os.Environ())
	if o.noLive && flags["TA_STATS_LIVE"] != "" {
		return &failure{statusUsage, errors.New("run: --live and --no-live exclude each other")}
	}
	if o.noLive {
		env = env.with("TA_STATS_LIVE", "0")
	}
	own := env
	env = env.withFile(readSystemFile(config.FilePath))
	c, err := checkConfig(env)
	if err != nil {
		return &failure{statusRunFailed, err}
	}
	if len(c.mistakes) > 0 {
		listMistakes(stderr, args[0], c.mistakes, flags)
		return &failure{statusConfig, nil}
	}
	library, err := findLibrary(o.library)
	if err != nil {
		return &failure{statusRunFailed, err}
	}
	if err := canCreate(o.json); err != nil {
		return &failure{statusRunFailed, err}
	}
	path, err := findProgram(args[0])
	if err != nil {
		return err
	}
	why := unfit(path)
	if why == "" && !env.serves(path, running(path)) {
		why = notNamed
	}
	if why != "" {
		complain(stderr, fmt.Errorf("the library will not serve %s: %s", path, why))
	}
	left, err := newRunReport(env)
	if err != nil {
		return &failure{statusRunFailed, err}
	}
	left.nodes = c.nodes
	if !o.quiet {
		// The command's own environment: this program has added a report to it.
		if c, err = checkConfig(left.env); err == nil {
			warnIdle(stderr, own, c, flags)
		}
	}
	end, err := runChild(path, args, left.env.preload(library))
	defer left.close(end)
	if err != nil {
		return &failure{statusNotRunnable, err}
	}
	if err := left.tell(stderr, o, end); err != nil {
		complain(stderr, err)
	}
	if end.status != 0 {
		return &failure{end.status, nil}
	}
	return nil
}

// listMistakes says why a command was not started. If a flag has set a variable, it shows the flag.
func listMistakes(w io.Writer, command string, mistakes []mistake, flags map[string]string) {
	fmt.Fprintf(w, "tierallocctl: %s was not started: %s in the settings\n", command,
		plural(len(mistakes), "mistake"))
	for _, m := range mistakes {
		if flag := flags[m.name]; flag != "" {
			fmt.Fprintf(w, "  %s: %s\n", flag, m.text)
		} else {
			fmt.Fprintf(w, "  %s\n", m.text)
		}
	}
}

// findProgram looks up the command as a shell does, with a shell's exit statuses.
func findProgram(name string) (string, error) {
	path, err := exec.LookPath(name)
	switch {
	case err == nil, errors.Is(err, exec.ErrDot): // PATH may contain the current folder
		return path, nil
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, os.ErrNotExist):
		return "", &failure{statusNotFound, fmt.Errorf("%s: command not found", name)}
	}
	var why *exec.Error
	if errors.As(err, &why) {
		err = why.Err
	}
	return "", &failure{statusNotRunnable, fmt.Errorf("cannot run %s: %w", name, err)}
}
