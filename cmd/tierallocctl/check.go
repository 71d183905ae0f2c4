package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"tieralloc/internal/config"
	"tieralloc/numa"
	"tieralloc/numa/plan"
)

const checkHelp = `Explain the settings that programs on the library get from the environment
and from /etc/tieralloc.conf. Problems come first: each mistake with the values that are
accepted, settings without effect, and side effects of others. Then the command shows each
TA_ variable that is set (--all: every variable) with its value, its origin and its meaning,
the tiers on this machine, and the sizes that the rules keep off the fast path.

The exit status is 78 if there is a mistake, else 0.`

func checkCommand() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Explain the settings in the environment, and each mistake in them",
		Long:  checkHelp,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			file := readSystemFile(config.FilePath)
			own := environ(os.Environ())
			env := own.withFile(file)
			c, err := checkConfig(env)
			if err != nil {
				return err
			}
			file.misread(c)
			explain(cmd.OutOrStdout(), own, file, c, all)
			if len(c.mistakes) > 0 {
				return &failure{statusConfig, nil}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "also the variables that are not set")
	return cmd
}

// explain writes the output of check, problems first.
func explain(w io.Writer, own environ, file *systemFile, c *configCheck, all bool) {
	var text bytes.Buffer
	env := own.withFile(file)
	section(&text, plural(len(c.mistakes), "mistake"), mistakeLines(c.mistakes))
	section(&text, "without effect", idleSettings(env, c))
	section(&text, "worth knowing", slices.Concat(overflowRemarks(c, numa.MemFree),
		secureRemarks(c.settings), cudaRemarks(c.settings)))
	var strange []string
	for _, name := range c.strange {
		strange = append(strange, printable(name))
	}
	section(&text, "unknown to the library, and ignored", strange)
	section(&text, "file for the whole system", file.told())
	for _, group := range settingGroups {
		section(&text, group, settingLines(env, len(own), c, group, all))
	}
	if len(env.names(prefix)) == 0 && !all {
		section(&text, "settings",
			[]string{"none is set; to see the defaults: tierallocctl check --all"})
	}
	section(&text, "tiers on this machine", placeLines(env, c))
	section(&text, "limit on memory", memoryLimit(c.settings))
	section(&text, "rules", ruleLines(c.settings))
	w.Write(bytes.TrimPrefix(text.Bytes(), []byte("\n")))
}

// section writes lines below a title. It writes nothing if there are none.
func section(w io.Writer, title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%s:\n", title)
	for _, line := range lines {
		fmt.Fprintf(w, "  %s\n", line)
	}
}

// settingGroups are the titles of the groups of settings.
var settingGroups = []string{"settings", "settings of " + tierNames[config.TierFast],
	"settings of " + tierNames[config.TierNormal], "settings of " + tierNames[config.TierSlow],
	"settings of CUDA"}

// groupOf returns the group of a variable: the tier that it names, CUDA, or the general one.
func groupOf(name string) string {
	if cudaOnly(name) || name == prefix+"CUDA" {
		return "settings of CUDA"
	}
	for i, tier := range tierNames {
		if slices.Contains(tierVariables(uint32(i)), name) {
			return "settings of " + tier
		}
	}
	return "settings"
}

// settingLines shows the variables of a group that are set, or all of them, with the values in
// effect. The first own entries of env come from the environment, the others from the file.
func settingLines(env environ, own int, c *configCheck, group string, all bool) []string {
	bad := map[string]mistake{}
	for _, m := range c.mistakes {
		bad[m.name] = m
	}
	t := newTable()
	t.SetColumnConfigs([]table.ColumnConfig{{Number: 2, WidthMax: 48}})
	for _, s := range settings() {
		set, ok := env.get(s.name)
		if groupOf(s.name) != group || !ok && !all {
			continue
		}
		value, from := s.fallback, "default"
		if ok {
			value, from = printable(set), "set"
			if _, here := env[:own].get(s.name); !here {
				from = "file"
			}
			if m, wrong := bad[s.name]; wrong {
				value, from = m.used, "mistake"
			}
		}
		t.AppendRow(table.Row{s.name, value, from, docOf(s.name).text})
	}
	if t.Length() == 0 {
		return nil
	}
	return strings.Split(t.Render(), "\n")
}

func mistakeLines(mistakes []mistake) []string {
	var lines []string
	for _, m := range mistakes {
		line := m.text
		if m.used != "" {
			line += "; the library uses: " + m.used
		}
		lines = append(lines, line)
	}
	return lines
}

// placeLines describes where the tiers would be.
func placeLines(env environ, c *configCheck) []string {
	tiers := places(c.places)
	if tiers == nil {
		if c.settings.SlowSwap && plan.SwapUnused(c.settings, c.places) == "" {
			return []string{whySimulated(c.settings, c.nodes),
				"the heap stays resident up to the smallest soft cap; the coldest goes to swap"}
		}
		return []string{whySimulated(c.settings, c.nodes),
			"caps, hints and throttling work as usual; the kernel chooses where memory is"}
	}
	t := newTable()
	for _, p := range tiers {
		t.AppendRow(table.Row{p.tier, "node " + nodeWords(p.nodes),
			size(memoryOn(c.nodes, p.nodes)), p.how})
	}
	return append(strings.Split(t.Render(), "\n"), sameInPlan(env, c)...)
}

// memoryOn returns the memory of some nodes together.
func memoryOn(t *numa.Topology, nodes []int) (sum uint64) {
	for _, n := range nodes {
		sum += t.Node[n].MemTotal
	}
	return sum
}
