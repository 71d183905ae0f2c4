package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tieralloc/internal/roff"
	"tieralloc/internal/version"
)

// manualCommand is for build.sh.
func manualCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "manual DIR",
		Short:  "Write the pages of sections 1 and 7 of the manual below a folder",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return writeManual(cmd.Root(), args[0])
		},
	}
}

func writeManual(root *cobra.Command, dir string) error {
	pages := map[string]*roff.Page{
		"man1/" + root.Name() + ".1": rootPage(root),
		"man7/tieralloc.7":           libraryPage(),
	}
	for _, c := range documented(root) {
		pages["man1/"+pageName(c)+".1"] = commandPage(c)
	}
	for name, page := range pages {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, page.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// documented returns the commands that have a page.
func documented(root *cobra.Command) (list []*cobra.Command) {
	for _, name := range commandNames(root) {
		if c, _, err := root.Find([]string{name}); err == nil {
			list = append(append(list, c), c.Commands()...)
		}
	}
	return list
}

func pageName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

func newPage(name string, section int, short string) *roff.Page {
	return roff.New(roff.Names{Names: []string{name}, Section: section,
		Short: strings.ToLower(short[:1]) + short[1:], Date: version.Date,
		Source: "tieralloc " + version.Number})
}

// rootPage writes tierallocctl(1).
func rootPage(root *cobra.Command) *roff.Page {
	p := newPage(root.Name(), 1, root.Short)
	p.Section("Synopsis")
	p.Synopsis(root.Name() + " COMMAND [ARG...]")
	p.Section("Description")
	p.Text(root.Long)
	p.Section("Commands")
	also := []string{"tieralloc(7)", "ta_alloc(3)"}
	for _, c := range documented(root) {
		p.Item(strings.TrimPrefix(c.CommandPath(), root.Name()+" "), c.Short+".")
		also = append(also, pageName(c)+"(1)")
	}
	p.Section("Exit status")
	for _, s := range []struct {
		status int
		text   string
	}{
		{0, "Success."}, {statusFailed, "Failure."},
		{statusUsage, "The arguments are wrong."},
		{statusUnavailable, "There is no NVML (gpu)."},
		{statusConfig, "A setting is wrong (check, run, verify)."},
	} {
		p.Item(fmt.Sprint(s.status), s.text)
	}
	p.Text("The pages of run and verify list the exit statuses of those commands.")
	p.SeeAlso(also...)
	return p
}

// commandPage writes the page of a command.
func commandPage(c *cobra.Command) *roff.Page {
	p := newPage(pageName(c), 1, c.Short)
	p.Section("Synopsis")
	p.Synopsis(strings.TrimSuffix(c.UseLine(), " [flags]"))
	p.Section("Description")
	if c.Long == "" {
		p.Text(c.Short + ".")
	}
	p.Text(c.Long)
	var own, ofSettings []*pflag.Flag
	c.InitDefaultHelpFlag()
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if isSettingFlag(c, f) {
			ofSettings = append(ofSettings, f)
		} else {
			own = append(own, f)
		}
	})
	p.Section("Options")
	writeFlags(p, own)
	if ofSettings != nil {
		p.Section("Settings")
		p.Text("Each variable of the library is an option. tieralloc(7) explains them." +
			" An empty value unsets the variable.")
		writeFlags(p, ofSettings)
	}
	if c.Example != "" {
		p.Section("Examples")
		p.Verbatim(c.Example)
	}
	p.SeeAlso("tierallocctl(1)", "tieralloc(7)")
	return p
}

// isSettingFlag reports whether a flag of run or verify is a variable of the library.
func isSettingFlag(c *cobra.Command, f *pflag.Flag) bool {
	if c.Flags().Lookup("fast-hard") == nil {
		return false
	}
	for _, s := range settings() {
		if s.flag() == f.Name {
			return true
		}
	}
	return false
}

func writeFlags(p *roff.Page, flags []*pflag.Flag) {
	for _, f := range flags {
		placeholder, text := pflag.UnquoteUsage(f)
		text = strings.TrimPrefix(text, placeholder+": ")
		tag := "--" + f.Name
		if f.Shorthand != "" {
			tag = "-" + f.Shorthand + ", " + tag
		}
		switch {
		case f.NoOptDefVal != "" && f.Value.Type() != "bool":
			tag += "[=" + placeholder + "]"
		case placeholder != "":
			tag += " " + placeholder
		}
		p.Item(tag, strings.ToUpper(text[:1])+text[1:]+".")
	}
}

const libraryHelp = `libtieralloc.so manages memory for unmodified programs: it replaces
malloc and, if the program uses CUDA, the device allocator. Preload it:

  LD_PRELOAD=libtieralloc.so.1 COMMAND
  tierallocctl run -- COMMAND

Memory is in three tiers, FAST, NORMAL and SLOW. A tier is a set of memory nodes; on a
machine with one kind of memory the tiers are simulated. A hint (hot, warm, cold, pin_fast,
prefer_fast) chooses the tier of a request, and caps limit the tiers. A program that is
written for the library gives hints itself (ta_alloc(3)).`

const variablesHelp = `All settings are environment variables. The library reads them once,
when it is loaded. For a bad value it prints one line on standard error and uses the default.
An empty value is the same as an unset variable. Set-user-ID programs ignore all of them.

Sizes take K, M, G and T, which are powers of 1024. Times take ns, us, ms and s. A percentage
is of the memory of the tier's nodes, or of the control group's limit, whichever is less.

"tierallocctl check" explains the settings in effect, and each mistake in them.`

const rulesHelp = `TA_RULES is a list of rules, separated by semicolons. A rule is a list of
conditions, separated by commas, then a colon and a hint. All conditions must hold, and the
first rule that matches wins:

  size>=N, size>N, size<=N, size<N, size=N, size=N-N
  thread=NAME, program=NAME, lib=NAME
  site=FILE+0xOFFSET, site=FUNCTION, and <CALLER up to three times after it

Names take the wildcards * and ?. lib is the shared object that makes the request, site the call
of malloc in it. "tierallocctl advise" writes rules by site from a profile.`

// libraryPage is tieralloc(7).
func libraryPage() *roff.Page {
	p := newPage("tieralloc", 7, "memory allocator with tiers")
	p.Section("Description")
	p.Text(libraryHelp)
	p.Section("Environment")
	p.Text(variablesHelp)
	for _, group := range settingGroups {
		p.Subsection(strings.ToUpper(group[:1]) + group[1:])
		for _, s := range settings() {
			if d := docOf(s.name); groupOf(s.name) == group {
				p.Item(s.name+"="+d.placeholder, strings.ToUpper(d.text[:1])+d.text[1:]+".",
					"Values: "+s.accepts+".", "Default: "+s.fallback+".",
					"Example: "+s.name+"="+d.example)
			}
		}
	}
	p.Section("Rules")
	p.Text(rulesHelp)
	p.SeeAlso("tierallocctl(1)", "tierallocctl-run(1)", "tierallocctl-check(1)", "ta_alloc(3)",
		"ta_get_stats(3)", "ta_cuda_malloc(3)")
	return p
}
