package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"tieralloc/numa"
)

const checkHelp = `Explain the settings that the environment gives to programs on the library: each TA_
variable with its value and meaning, every mistake with what is accepted, where the
tiers would be on this machine, which sizes the rules make slower, settings that have no
effect, and what some of them bring along.

The exit status is 78 if there is a mistake, else 0.`

func checkCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check",
		Short: "Explain the settings in the environment, and every mistake in them",
		Long:  checkHelp,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			env := environ(os.Environ())
			v, err := judge(env)
			if err != nil {
				return err
			}
			explain(cmd.OutOrStdout(), env, v)
			if len(v.mistakes) > 0 {
				return &failure{statusConfig, nil}
			}
			return nil
		},
	}
}

// explain writes all that check has to say.
func explain(w io.Writer, env environ, v *verdict) {
	fmt.Fprintln(w, settingTable(env, v).Render())
	section(w, plural(len(v.mistakes), "mistake"), mistakeLines(v.mistakes))
	section(w, "tiers on this machine", placeLines(v))
	section(w, "rules", ruleLines(v.settings))
	section(w, "without effect", idleSettings(env, v.settings))
	section(w, "worth knowing", append(secureRemarks(v.settings), cudaRemarks(v.settings)...))
	var strange []string
	for _, name := range v.strange {
		strange = append(strange, printable(name))
	}
	section(w, "not known to the library, and passed over", strange)
}

// section writes lines below a title, and nothing where there are none.
func section(w io.Writer, title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%s:\n", title)
	for _, line := range lines {
		fmt.Fprintf(w, "  %s\n", line)
	}
}

// settingTable shows each variable with the value in effect.
func settingTable(env environ, v *verdict) table.Writer {
	bad := map[string]mistake{}
	for _, m := range v.mistakes {
		bad[m.name] = m
	}
	t := newTable("variable", "value", "from", "meaning")
	t.SetColumnConfigs([]table.ColumnConfig{{Number: 2, WidthMax: 48}})
	for _, s := range settings() {
		value, from := s.fallback, "default"
		if set, ok := env.get(s.name); ok {
			value, from = printable(set), "set"
			if m, wrong := bad[s.name]; wrong {
				value, from = m.used, "mistake"
			}
		}
		t.AppendRow(table.Row{s.name, value, from, meanings[s.name].text})
	}
	return t
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

// placeLines tells where the tiers would be.
func placeLines(v *verdict) []string {
	tiers := places(v.places)
	if tiers == nil {
		return []string{whySimulated(v.settings, v.nodes),
			"capacity, hints and throttling work as ever; memory is wherever the kernel puts it"}
	}
	t := newTable()
	for _, p := range tiers {
		t.AppendRow(table.Row{p.tier, "node " + nodeWords(p.nodes), size(memoryOn(v.nodes, p.nodes)), p.how})
	}
	return strings.Split(t.Render(), "\n")
}

// memoryOn is the memory of some nodes together.
func memoryOn(t *numa.Topology, nodes []int) (sum uint64) {
	for _, n := range nodes {
		sum += t.Node[n].MemTotal
	}
	return sum
}
