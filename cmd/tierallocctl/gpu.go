package main

import (
	"fmt"
	"io"
	"math"
	"math/bits"
	"path/filepath"
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"tieralloc/cmd/tierallocctl/nvmllink"
)

const gpuHelp = `Show the NVIDIA devices of this machine as NVML reports them: their memory,
the memory nodes near them, and the processes on them. For a process with a live page
(TA_STATS_LIVE) the table also shows the library's memory on the device. Devices are matched
by UUID or by their address on the bus.

The largest free block is what one request may get at most without new memory from the driver.
Fragmentation is the share of the cached memory that is outside that block.

A process in a container may have another number there than in NVML. Its figures then have a
separate line.

The exit status is 69 if there is no NVML, or no driver behind it.`

func gpuCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "gpu",
		Short: "Show this machine's NVIDIA devices, and the processes on them",
		Long:  gpuHelp,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := nvmllink.Open(nvmllink.Library); err != nil {
				return &failure{statusUnavailable,
					fmt.Errorf("NVML is not installed (%w): it comes with NVIDIA's driver;"+
						" a container needs access to it", err)}
			}
			gpus, err := readGPUs(nvml.New())
			if err != nil {
				return err
			}
			pages, bad := allPages()
			if bad != nil {
				complain(cmd.ErrOrStderr(), bad)
			}
			rest := matchPages(gpus, pages)
			if asJSON {
				return writeJSON(cmd.OutOrStdout(), gpus)
			}
			showGPUs(cmd.OutOrStdout(), gpus, rest)
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "the same as JSON")
	cmd.AddCommand(snapshotCommand(), sleepCommand(), wakeCommand())
	return cmd
}

// gpu is a device as NVML reports it.
type gpu struct {
	Index     int          `json:"index"`
	Name      string       `json:"name"`
	UUID      string       `json:"uuid"` // with GPU- before it
	PCI       string       `json:"pci"`
	Total     uint64       `json:"bytes_total"`
	Used      uint64       `json:"bytes_used"`
	Free      uint64       `json:"bytes_free"`
	Nodes     []int        `json:"nodes"` // memory nodes near it
	Processes []gpuProcess `json:"processes"`
}

// gpuProcess is a process on a device, by NVML, by its live page, or both.
type gpuProcess struct {
	Pid     int     `json:"pid"`
	Program string  `json:"program"`
	Used    *uint64 `json:"bytes_used"` // by NVML; nil: not known
	Heap    *device `json:"heap"`       // by the process's live page; nil: no page
}

// showGPUs writes a table of the devices, and a table of the processes on each. rest are devices in
// live pages that NVML does not show.
func showGPUs(w io.Writer, gpus []gpu, rest []gpuProcess) {
	if len(gpus) == 0 {
		fmt.Fprintln(w, "NVML shows no device.")
	} else {
		t := newTable("gpu", "name", ">memory", ">used", ">free", "nodes", "bus", "uuid")
		for _, g := range gpus {
			t.AppendRow(table.Row{g.Index, printable(g.Name), size(g.Total), size(g.Used),
				size(g.Free), nodeWords(g.Nodes), g.PCI, g.UUID})
		}
		fmt.Fprintln(w, t.Render())
	}
	for _, g := range gpus {
		if len(g.Processes) > 0 {
			fmt.Fprintf(w, "\non gpu %d:\n%s\n", g.Index, processTable(g.Processes).Render())
		}
	}
	if len(rest) > 0 {
		fmt.Fprintf(w, "\non devices that NVML does not show:\n%s\n", processTable(rest).Render())
	}
}

func processTable(list []gpuProcess) table.Writer {
	t := newTable(">pid", "program", ">used", ">reserved", ">live", ">cached", ">largest free",
		">fragmentation", ">spilled", ">hard cap", ">allocations", ">efficiency")
	for _, p := range list {
		row := table.Row{p.Pid, printable(p.Program), none, none, none, none, none, none, none,
			none, none, none}
		if p.Used != nil {
			row[2] = size(*p.Used)
		}
		if d := p.Heap; d != nil {
			row[3], row[4], row[5], row[6] = size(d.BytesReserved), size(d.BytesLive),
				size(d.cached()), size(d.LargestFree)
			if d.cached() != 0 {
				row[7] = ratio(d.FragmentationRatio)
			}
			row[8], row[9], row[10], row[11] = size(d.BytesSpilled),
				limit(d.Tiers.Fast.CapacityHard), count(d.AllocCalls), ratio(d.Efficiency)
		}
		t.AppendRow(row)
	}
	return t
}

// readGPUs asks NVML for all devices. Fields that NVML does not answer stay zero.
func readGPUs(lib nvml.Interface) ([]gpu, error) {
	if ret := lib.Init(); ret != nvml.SUCCESS {
		return nil, &failure{statusUnavailable,
			fmt.Errorf("NVML cannot be used: %s", nvmlWords(lib, ret))}
	}
	defer lib.Shutdown()
	n, ret := lib.DeviceGetCount()
	if ret != nvml.SUCCESS {
		return nil, fmt.Errorf("NVML cannot count the devices: %s", nvmlWords(lib, ret))
	}
	gpus := []gpu{}
	for i := range n {
		d, ret := lib.DeviceGetHandleByIndex(i)
		if ret != nvml.SUCCESS {
			return nil, fmt.Errorf("NVML has no access to device %d of %d: %s", i, n,
				nvmlWords(lib, ret))
		}
		gpus = append(gpus, readGPU(lib, d, i))
	}
	return gpus, nil
}

func nvmlWords(lib nvml.Interface, ret nvml.Return) string {
	return fmt.Sprintf("%s (%d)", printable(lib.ErrorString(ret)), int(ret))
}

func readGPU(lib nvml.Interface, d nvml.Device, index int) gpu {
	g := gpu{Index: index, Nodes: []int{}, Processes: []gpuProcess{}}
	g.Name, _ = d.GetName()
	g.UUID, _ = d.GetUUID()
	if pci, ret := d.GetPciInfo(); ret == nvml.SUCCESS {
		g.PCI = fmt.Sprintf("%08x:%02x:%02x.0", pci.Domain, pci.Bus, pci.Device)
	}
	if m, ret := d.GetMemoryInfo(); ret == nvml.SUCCESS {
		g.Total, g.Used, g.Free = m.Total, m.Used, m.Free
	}
	if set, ret := d.GetMemoryAffinity(64, nvml.AFFINITY_SCOPE_NODE); ret == nvml.SUCCESS {
		g.Nodes = nodesOf(set)
	}
	compute, _ := d.GetComputeRunningProcesses()
	graphics, _ := d.GetGraphicsRunningProcesses()
	seen := map[uint32]bool{} // some programs do both
	for _, p := range append(compute, graphics...) {
		if seen[p.Pid] {
			continue
		}
		seen[p.Pid] = true
		name, _ := lib.SystemGetProcessName(int(p.Pid))
		process := gpuProcess{Pid: int(p.Pid), Program: filepath.Base(name)}
		if name == "" {
			process.Program = none
		}
		if p.UsedGpuMemory != math.MaxUint64 { // NVML_VALUE_NOT_AVAILABLE
			process.Used = &p.UsedGpuMemory
		}
		g.Processes = append(g.Processes, process)
	}
	return g
}

// nodesOf lists the bits of a set of nodes.
func nodesOf(set []uint) []int {
	nodes := []int{}
	for i, word := range set {
		for ; word != 0; word &= word - 1 {
			nodes = append(nodes, i*bits.UintSize+bits.TrailingZeros(word))
		}
	}
	return nodes
}

// matchPages adds the devices of running processes' live pages to the matching GPUs, and returns
// those that match none.
func matchPages(gpus []gpu, pages []*page) (rest []gpuProcess) {
	for _, p := range pages {
		if p.report == nil || p.state.Dead() {
			continue
		}
		for _, d := range p.report.Devices {
			if g := gpuOf(gpus, d); g != nil {
				g.add(p, d)
			} else {
				rest = append(rest, gpuProcess{Pid: p.pid, Program: p.program, Heap: d})
			}
		}
	}
	return rest
}

// gpuOf returns the GPU of a report's device. A part of a GPU (MIG) has a UUID of its own, and the
// GPU's bus address.
func gpuOf(gpus []gpu, d *device) *gpu {
	for i := range gpus {
		if d.Uuid != "" && strings.TrimPrefix(gpus[i].UUID, "GPU-") == d.Uuid {
			return &gpus[i]
		}
	}
	for i := range gpus {
		if d.Pci != "" && gpus[i].PCI == d.Pci {
			return &gpus[i]
		}
	}
	return nil
}

// add adds a process's figures to NVML's entry for it, or as a new entry.
func (g *gpu) add(p *page, d *device) {
	for i := range g.Processes {
		if at := &g.Processes[i]; at.Pid == p.pid && at.Heap == nil {
			at.Program, at.Heap = p.program, d
			return
		}
	}
	g.Processes = append(g.Processes, gpuProcess{Pid: p.pid, Program: p.program, Heap: d})
}
