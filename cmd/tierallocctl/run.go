package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"

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
	// a group for the command and its children
	ownGroup bool
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
	flags.BoolVar(&o.ownGroup, "own-group", false,
		"caps for the sum of the command and its children: as TA_GROUP with a name of its own")
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
	if o.noLive && cmd.Flags().Changed("live") {
		return usage("run: --live and --no-live exclude each other")
	}
	if o.ownGroup && cmd.Flags().Changed("group") {
		return usage("run: --group and --own-group exclude each other")
	}
	if err := canCreate(o.json); err != nil {
		return &failure{statusRunFailed, err}
	}
	own := ownGroup()
	if o.ownGroup {
		removeLeftGroups()
	}
	l, err := prepare(cmd, o.library, args[0], func(env environ) environ {
		if o.noLive {
			env = env.with("TA_STATS_LIVE", "0")
		}
		if o.ownGroup {
			env = env.with("TA_GROUP", own)
		}
		return env
	})
	if err != nil {
		return err
	}
	left, err := newRunReport(l.env)
	if err != nil {
		return &failure{statusRunFailed, err}
	}
	left.nodes = l.config.nodes
	if !o.quiet {
		// The command's own environment: this program has added a report to it.
		if c, err := checkConfig(left.env); err == nil {
			warnIdle(stderr, l.own, c, l.flags)
		}
	}
	end, err := runChild(l.path, args, left.env.preload(l.library))
	defer left.close(end)
	if o.ownGroup {
		_ = removeGroup(groupPath(own)) // unless children are still in it
	}
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

// ownGroup names a group for this process's command. A process number alone may be that of another
// group: of an earlier command whose children live on, or in a container with the same /dev/shm.
func ownGroup() string { return fmt.Sprintf("run-%d-%s", os.Getpid(), rand.Text()[:10]) }

// ownGroupName matches what ownGroup returns.
var ownGroupName = regexp.MustCompile(`^run-[0-9]+-[A-Z2-7]{10}$`)

// removeLeftGroups removes the groups of earlier commands of this user that have no members: of
// those whose children lived longer than they, or whose tierallocctl was killed. A command that
// still runs and has no process on the library loses nothing: the next one makes the group anew.
func removeLeftGroups() {
	prefix := groupPath("")
	paths, _ := filepath.Glob(prefix + "run-*")
	for _, path := range paths {
		if ownGroupName.MatchString(path[len(prefix):]) {
			_ = removeGroup(path) // unless it has members
		}
	}
}

// launch is a program that can be started on the library.
type launch struct {
	path, library string
	own           environ // with the settings of the flags
	env           environ // with those for the whole system, too
	flags         map[string]string
	config        *configCheck
}

// prepare checks the settings, and finds the library and the program called name. change changes
// the environment.
func prepare(cmd *cobra.Command, library, name string,
	change func(environ) environ) (l *launch, err error) {
	if l, err = settle(cmd, name, change); err != nil {
		return nil, err
	}
	if l.library, err = findLibrary(library); err != nil {
		return nil, &failure{statusRunFailed, err}
	}
	if l.path, err = findProgram(name); err != nil {
		return nil, err
	}
	why := unfit(l.path)
	if why == "" && !l.env.serves(l.path, running(l.path)) {
		why = notNamed
	}
	if why != "" {
		complain(cmd.ErrOrStderr(),
			fmt.Errorf("the library will not serve %s: %s", l.path, why))
	}
	return l, nil
}

// settle checks the settings for the program called name.
func settle(cmd *cobra.Command, name string, change func(environ) environ) (l *launch, err error) {
	l = &launch{}
	l.own, l.flags = applySettingFlags(cmd.Flags(), os.Environ())
	l.own = change(l.own)
	l.env = l.own.withFile(readSystemFile(config.FilePath))
	if l.config, err = checkConfig(l.env); err != nil {
		return nil, &failure{statusRunFailed, err}
	}
	if len(l.config.mistakes) > 0 {
		listMistakes(cmd.ErrOrStderr(), name, l.config.mistakes, l.flags)
		return nil, &failure{statusConfig, nil}
	}
	return l, nil
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
