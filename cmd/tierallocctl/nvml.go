package main

import (
	"fmt"
	"math"
	"math/bits"
	"path/filepath"
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

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
