package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/google/pprof/profile"
	"github.com/spf13/cobra"

	"tieralloc/internal/config"
)

const adviseHelp = `Write TA_RULES that place memory by the call site that allocates it, from a profile
that has heat (TA_PROFILE=FILE TA_PROFILE_HEAT=1): of a file, or of the running process PID, which
must have a live page (TA_STATS_LIVE=1). A later run with these rules needs neither profile nor
background work:

  tierallocctl advise --fast 8G heap.pb > rules
  TA_RULES="$(cat rules)" LD_PRELOAD=libtieralloc.so ./program

Sites whose memory is touched most are hot until --fast is full, the others are cold. Without
--fast, fast memory is as large as serves 90% of the touches.

Standard error has the sites, and what share of the touches fast memory of several sizes would
serve: with rules by site, with right hints for each part of the memory (the most that any
placement serves, measuring errors included), and where memory lies as it happens. If sites do
not tell hot from cold memory, or most memory is in blocks below 4 KiB, whose heat is not known,
the command says so, writes no rule and exits with 1.

A rule names addresses in the program's files. Make a new profile when they are compiled anew.`

const adviseSites = 20 // shown

func adviseCommand() *cobra.Command {
	fast := ""
	cmd := &cobra.Command{
		Use:     "advise PID|FILE",
		Short:   "Write rules that place memory by call site, from a profile",
		Long:    adviseHelp,
		Example: "  tierallocctl advise --fast 8G heap.pb > rules",
		Args:    cobra.ExactArgs(1),

		ValidArgsFunction: completeProcesses,
		RunE: func(cmd *cobra.Command, args []string) error {
			bytes, err := fastBytes(fast)
			if err != nil {
				return &failure{statusUsage, err}
			}
			f, err := openProfile(args[0], answerWait)
			if err != nil {
				return err
			}
			return f.advise(cmd.OutOrStdout(), cmd.ErrOrStderr(), bytes)
		},
	}
	cmd.Flags().StringVar(&fast, "fast", "", "the `SIZE` of fast memory that the rules fill, such as 8G")
	return cmd
}

// fastBytes reads a size, in which K, M, G and T are powers of 1024 as in the library's variables.
func fastBytes(text string) (uint64, error) {
	if text == "" {
		return 0, nil
	}
	full := text
	if strings.ContainsAny(text[len(text)-1:], "kKmMgGtT") {
		full += "iB"
	}
	n, err := humanize.ParseBytes(full)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("--fast %s: expected a size such as 512M or 8G", printable(text))
	}
	return n, nil
}

// advise writes the rules to out and the reasons to stderr.
func (f *profileFile) advise(out, stderr io.Writer, fast uint64) error {
	f.symbolize(stderr)
	sites, err := f.useSites()
	if err != nil {
		return err
	}
	p := newPlacement(sites, f.unmeasured(), float64(fast))
	if p.total.touches < 1 && p.mostlyMeasured() {
		return fmt.Errorf("%s: no touch of a block of 4 KiB or more was seen: heat is known of "+
			"such blocks only, in programs that run for ten seconds and more", f.path)
	}
	p.write(stderr)
	why := p.verdict()
	rules := rulesFor(p.ruled)
	switch {
	case why == "" && len(rules) == 0:
		why = "no site fits into fast memory as a whole"
	case why == "" && tooManyRules(rules):
		why = fmt.Sprintf("%d rules are too many: TA_RULES takes %d, and %d bytes of names",
			len(rules), config.RuleMax, config.TextSize-1)
	}
	if why != "" {
		return errors.New("no rules: " + why)
	}
	for _, r := range rules {
		if _, err := fmt.Fprintln(out, r+";"); err != nil {
			return err
		}
	}
	return nil
}

// write writes the sites and the curve.
func (p *placement) write(w io.Writer) {
	t := newTable("hint", ">bytes", ">touches", ">smallest", "site")
	for _, s := range p.sites[:min(len(p.sites), adviseSites)] {
		hint := s.hint
		if hint == "" {
			hint = "-"
		}
		t.AppendRow([]any{hint, size(uint64(s.bytes)), ratio(s.touches / p.total.touches),
			size(s.smallest), s.function})
	}
	fmt.Fprintln(w, t.Render())
	if more := len(p.sites) - adviseSites; more > 0 {
		fmt.Fprintf(w, "and %s\n", plural(more, "site"))
	}
	c := newTable(">fast memory", ">by site", ">right hints", ">by chance")
	for _, s := range p.curve() {
		mark := ""
		if s.bytes == p.fast {
			mark = "<- these rules"
		}
		c.AppendRow([]any{size(uint64(s.bytes)), ratio(s.rules), ratio(s.best), ratio(s.evenly),
			mark})
	}
	fmt.Fprintf(w, "\nTouches that fast memory would serve, of %s:\n%s\n",
		size(uint64(p.total.bytes)), c.Render())
}

// useSites reads the sites of a profile with heat.
func (f *profileFile) useSites() ([]*useSite, error) {
	bytes, touches := f.typeIndex("heat_space"), f.typeIndex("touches")
	if bytes < 0 || touches < 0 {
		return nil, fmt.Errorf("%s: the profile has no heat: TA_PROFILE_HEAT=1 measures it, of "+
			"blocks of 4 KiB or more, in programs that run for ten seconds and more. At its peak "+
			"the process had %s in smaller blocks", f.path, size(uint64(f.unmeasured())))
	}
	names := f.callerNames()
	sites := map[string]*useSite{}
	var list []*useSite
	for _, s := range f.profile.Sample {
		callers := names.of(s)
		if len(callers) == 0 || memoryOf(s) != "" {
			continue
		}
		key := strings.Join(callers, "<")
		site := sites[key]
		if site == nil {
			site = &useSite{callers: callers, function: siteFunction(s), smallest: ^uint64(0)}
			sites[key] = site
			list = append(list, site)
		}
		if least := s.NumLabel["size_min"]; len(least) > 0 {
			site.smallest = min(site.smallest, uint64(least[0]))
		}
		if c := (useCell{float64(s.Value[bytes]), float64(s.Value[touches])}); c.bytes > 0 {
			site.cells = append(site.cells, c)
		}
	}
	list = slices.DeleteFunc(list, func(s *useSite) bool {
		s.useCell = sumOf(s.cells)
		s.smallest = max(s.smallest, leastBlock)
		return s.bytes == 0
	})
	return list, nil
}

// unmeasured is the bytes of blocks whose heat is not known, when the process used most memory: the
// other values of a profile that ends with the process are those of its last memory.
func (f *profileFile) unmeasured() (bytes float64) {
	peak := f.typeIndex("peak_space")
	if peak < 0 {
		return 0
	}
	for _, s := range f.profile.Sample {
		median := s.NumLabel["size_median"]
		if len(median) > 0 && median[0] < leastBlock && memoryOf(s) == "" {
			bytes += float64(s.Value[peak])
		}
	}
	return bytes
}

// leastBlock is the smallest block whose heat is known: a memory page.
const leastBlock = 4096

// callerNames is how rules name the locations of a profile.
type callerNames map[*profile.Location]string

// callerNames names the locations that are in files.
func (f *profileFile) callerNames() callerNames {
	names := callerNames{}
	files := map[*profile.Mapping]*codeFile{}
	for _, l := range f.profile.Location {
		m := l.Mapping
		if m == nil || !isFile(m.File) {
			continue
		}
		file, known := files[m]
		if !known {
			file, _ = openCode(m.File, m.BuildID, "") // symbolize has complained
			files[m] = file
		}
		if file == nil {
			continue
		}
		if at, ok := file.address(l.Address - m.Start + m.Offset); ok {
			names[l] = fmt.Sprintf("%s+%#x", filepath.Base(m.File), at)
		}
	}
	for _, file := range files {
		if file != nil {
			file.close()
		}
	}
	return names
}

// of returns the callers of a sample's stack, as many as a rule can name.
func (names callerNames) of(s *profile.Sample) (callers []string) {
	for _, l := range s.Location {
		name := names[l]
		if name == "" || len(callers) == config.SiteMax ||
			strings.ContainsAny(name, ",;:<>*?") { // TA_RULES gives them a meaning
			break
		}
		callers = append(callers, name)
	}
	return callers
}

// siteFunction names a stack for people: its innermost functions.
func siteFunction(s *profile.Sample) string {
	var names []string
	for _, frame := range frames(s) {
		if len(names) == config.SiteMax {
			break
		}
		names = append(names, shortName(frame.name))
	}
	return strings.Join(names, " < ")
}
