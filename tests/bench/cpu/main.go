package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"syscall"
)

// options are what the command line says.
type options struct {
	peers, only, chart, root string
	programs                 string
	scaling                  []int
	rounds, threads          int
	quick                    bool
}

const usage = `usage: ./build.sh bench cpu [FLAGS]
  --peers LIST   who is compared, besides glibc and this library (default: installed), with commas between:
                   installed   each of %s that is there
                   fetch       the same, after installing Debian's packages of those that lack (as root)
                   none
                   NAME        one of the above
                   NAME=PATH[:VAR=VALUE...]   any library, with variables set
  --rounds N     rounds for each program (default: 5, with --quick 3)
  --only REGEX   only the workloads whose names it matches
  --threads N    threads in workloads with several (default: one for each processor, at least 2)
  --quick        a quarter of the work
  --chart FILE   writes the ratios as an SVG
  --scaling LIST how the time grows with these numbers of threads, as 1,2,4,8; of larson, mstress and xmalloc
                 and of the same without an allocator (larson-still, ...), unless --only says otherwise
  --programs DIR where work/'s programs are, compiled already (for a machine without a compiler)
  --root DIR     the source tree, whose build/libtieralloc.so is measured (default: the working directory)
`

// parse reads the command line. flag.ErrHelp: the usage was asked for.
func parse(args []string) (options, error) {
	o := options{}
	f := flag.NewFlagSet("bench cpu", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.StringVar(&o.peers, "peers", "installed", "")
	f.StringVar(&o.only, "only", "", "")
	f.StringVar(&o.chart, "chart", "", "")
	f.StringVar(&o.root, "root", ".", "")
	f.StringVar(&o.programs, "programs", "", "")
	f.Func("scaling", "", func(list string) (err error) {
		o.scaling, err = parseCounts(list)
		return err
	})
	f.IntVar(&o.rounds, "rounds", 0, "")
	f.IntVar(&o.threads, "threads", max(2, runtime.NumCPU()), "")
	f.BoolVar(&o.quick, "quick", false, "")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	rounds := false
	f.Visit(func(x *flag.Flag) { rounds = rounds || x.Name == "rounds" })
	switch {
	case f.NArg() > 0:
		return o, fmt.Errorf("%q: only flags are accepted", f.Arg(0))
	case rounds && (o.rounds < 1 || o.rounds > 1000):
		return o, fmt.Errorf("--rounds %d: 1 to 1000 are accepted", o.rounds)
	case o.scaling != nil && o.chart != "":
		return o, errors.New("--chart: there is none of --scaling")
	case o.threads < 1 || o.threads > 1024:
		return o, fmt.Errorf("--threads %d: 1 to 1024 are accepted", o.threads)
	}
	if !rounds {
		o.rounds = 5
		if o.quick {
			o.rounds = 3
		}
	}
	return o, nil
}

// chosen are the workloads that --only names.
func (o options) chosen() ([]workload, error) {
	list := workloads
	if o.scaling != nil {
		list = slices.Concat(workloads, stills)
		if o.only == "" {
			o.only = scalingOnly
		}
	}
	re, err := regexp.Compile(o.only)
	if err != nil {
		return nil, fmt.Errorf("--only %q: %w", o.only, err)
	}
	var out []workload
	for _, w := range list {
		if re.MatchString(w.name) {
			out = append(out, w)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("--only %q: it matches none of %s", o.only, names(list))
	}
	return out, nil
}

func (o options) scale() int {
	if o.quick {
		return 250
	}
	return 1000
}

// contenders are glibc, this library and the peers.
func (o options) contenders() ([]contender, error) {
	library := filepath.Join(o.root, "build", "libtieralloc.so")
	if _, err := os.Stat(library); err != nil {
		return nil, fmt.Errorf("the library is not built (./build.sh build): %w", err)
	}
	library, err := filepath.Abs(library)
	if err != nil {
		return nil, err
	}
	list, err := parsePeers(o.peers)
	return append([]contender{{name: "glibc", library: "libc.so.6"},
		{name: "tieralloc", library: library}}, list...), err
}

func run(ctx context.Context, args []string, out, progress io.Writer) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	list, err := o.chosen()
	if err != nil {
		return err
	}
	all, err := o.contenders()
	if err != nil {
		return err
	}
	if o.chart != "" { // a mistake in it would show after a quarter of an hour
		f, err := os.OpenFile(o.chart, os.O_WRONLY|os.O_CREATE, 0o644)
		if err != nil {
			return fmt.Errorf("--chart: %w", err)
		}
		f.Close()
	}
	p, err := newPlace(o.root, o.programs, o.threads, o.scale())
	if err != nil {
		return err
	}
	defer p.remove()
	if all[ours].library, err = p.keep(all[ours].library); err != nil {
		return err
	}
	if o.scaling != nil {
		return p.scaling(ctx, list, all, o.scaling, o.rounds, out, progress)
	}
	r, err := p.measure(ctx, list, all, o.rounds, progress)
	if err != nil {
		return err
	}
	r.print(out)
	if o.chart != "" {
		if err := r.draw(o.chart); err != nil {
			return fmt.Errorf("--chart: %w", err)
		}
	}
	return r.verdict()
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Printf(usage, knownNames())
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench cpu:", err)
		os.Exit(1)
	}
}
