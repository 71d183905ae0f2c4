package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"tieralloc/numa"
	"tieralloc/numa/plan"
)

const topologyHelp = `Show the memory nodes of this machine as the kernel and the firmware
describe them, the tiers that the library would make of them, and TA_NODE_* lines with the
same effect.`

func topologyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "topology",
		Short: "Show this machine's memory nodes, and the tiers made of them",
		Long:  topologyHelp,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := checkConfig(nil) // no settings: what the library does by itself
			if err != nil {
				return err
			}
			showTopology(cmd.OutOrStdout(), c)
			return nil
		},
	}
}

func showTopology(w io.Writer, c *configCheck) {
	fmt.Fprintln(w, nodeTable(c.nodes).Render())
	section(w, "tiers", append(placeLines(nil, c), orderWords(c.nodes)...))
	section(w, "limit on memory", memoryLimit(c.settings))
	var lines []string
	for _, p := range places(c.places) {
		lines = append(lines, "export "+prefix+"NODE_"+p.tier+"="+nodeWords(p.nodes))
	}
	section(w, "the same by hand", lines)
	section(w, "notes", topologyNotes(c.nodes))
}

// nodeTable has a row for each node.
func nodeTable(t *numa.Topology) table.Writer {
	online := nodeList(t.Online)
	table := newTable("node", "CPUs", ">memory", ">free", ">memory tier", ">latency r/w",
		">bandwidth r/w", "distance to "+nodeWords(online))
	for _, n := range online {
		table.AppendRow(nodeRow(t, n, online))
	}
	return table
}

func nodeRow(t *numa.Topology, n int, online []int) table.Row {
	node := &t.Node[n]
	bit := uint64(1) << n
	name := strconv.Itoa(n)
	memory, free, tier := none, none, none
	if t.Memory&bit != 0 {
		memory, free = size(node.MemTotal), size(numa.MemFree(uintptr(n)))
		if t.Allowed&bit == 0 {
			name += " (closed)"
		}
	}
	if t.Tiered&bit != 0 {
		tier = strconv.Itoa(int(node.MemoryTier))
	}
	var distances []string
	for _, m := range online {
		distances = append(distances, known(uint32(node.Distance[m])))
	}
	return table.Row{name, cpuList(n), memory, free, tier,
		readWrite(node.ReadLatency, node.WriteLatency, "ns"),
		readWrite(node.ReadBandwidth, node.WriteBandwidth, "MB/s"),
		strings.Join(distances, " ")}
}

// cpuList returns the processors of a node, as the kernel lists them.
func cpuList(n int) string {
	text, err := os.ReadFile(fmt.Sprintf("/sys/devices/system/node/node%d/cpulist", n))
	list := strings.TrimSpace(string(text))
	switch {
	case err != nil:
		return "?"
	case list == "":
		return none
	}
	return list
}

// readWrite writes two figures in one unit.
func readWrite(read, write uint32, unit string) string {
	if read|write == 0 {
		return none
	}
	return known(read) + "/" + known(write) + " " + unit
}

// known writes a figure; 0 means that it is not known.
func known(v uint32) string {
	if v == 0 {
		return "?"
	}
	return strconv.FormatUint(uint64(v), 10)
}

// orderWords says by which figures faster and slower nodes are distinguished, if there are several.
func orderWords(t *numa.Topology) []string {
	usable := t.Usable()
	if usable&(usable-1) == 0 {
		return nil
	}
	const told = "faster and slower are told apart by "
	switch plan.OrderOf(t, usable) {
	case plan.ByTier:
		return []string{told + "the kernel's memory tiers"}
	case plan.ByFigures:
		return []string{told +
			"the firmware's figures: latency, and bandwidth where latencies are within 1.5 times"}
	}
	return []string{told + "distance: memory without processors is slower"}
}

func topologyNotes(t *numa.Topology) []string {
	var notes []string
	if closed := t.Memory &^ t.Allowed; closed != 0 {
		notes = append(notes,
			"closed to this process (cpuset or container): node "+nodeWords(nodeList(closed)))
	}
	if t.Beyond {
		notes = append(notes, "nodes above 63 are left alone: their memory is not in any tier")
	}
	if far := nodeList(t.Usable() &^ t.CPUs); len(far) > 0 {
		words := nodeWords(far)
		notes = append(notes, "memory without CPUs, as CXL devices and HBM appear: node "+words)
		if len(far) > 1 {
			notes = append(notes,
				"to pool such nodes in one tier, name them together: TA_NODE_SLOW="+words+
					" fills them as they come, interleave:"+words+" takes pages in turn,",
				"and weighted:"+words+" in turn by the weights in "+
					"/sys/kernel/mm/mempolicy/weighted_interleave (Linux 6.9)")
		}
	}
	return notes
}
