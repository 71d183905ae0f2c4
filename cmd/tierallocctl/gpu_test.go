package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"

	"tieralloc/stats/live"
)

const fixtureUUID = "4ae8987a-05b8-e95a-8001-ff102030405f" // of the fixture's device

// gpuMock is a device of a machine that exists only here.
func gpuMock(uuid string, bus uint32, affinity []uint, compute,
	graphics []nvml.ProcessInfo) *mock.Device {
	return &mock.Device{
		GetNameFunc: func() (string, nvml.Return) { return "NVIDIA\x1b[31m X", nvml.SUCCESS },
		GetUUIDFunc: func() (string, nvml.Return) { return uuid, nvml.SUCCESS },
		GetPciInfoFunc: func() (nvml.PciInfo, nvml.Return) {
			return nvml.PciInfo{Domain: 0, Bus: bus, Device: 0}, nvml.SUCCESS
		},
		GetMemoryInfoFunc: func() (nvml.Memory, nvml.Return) {
			return nvml.Memory{Total: 80 << 30, Used: 30 << 30, Free: 50 << 30}, nvml.SUCCESS
		},
		GetMemoryAffinityFunc: func(n int, scope nvml.AffinityScope) ([]uint, nvml.Return) {
			if n != 64 || scope != nvml.AFFINITY_SCOPE_NODE {
				return nil, nvml.ERROR_INVALID_ARGUMENT
			}
			return affinity, nvml.SUCCESS
		},
		GetComputeRunningProcessesFunc: func() ([]nvml.ProcessInfo, nvml.Return) {
			return compute,
				nvml.SUCCESS
		},
		GetGraphicsRunningProcessesFunc: func() ([]nvml.ProcessInfo, nvml.Return) {
			return graphics,
				nvml.SUCCESS
		},
	}
}

// nvmlMock is NVML with some devices.
func nvmlMock(devices ...nvml.Device) *mock.Interface {
	return &mock.Interface{
		InitFunc:           func() nvml.Return { return nvml.SUCCESS },
		ShutdownFunc:       func() nvml.Return { return nvml.SUCCESS },
		DeviceGetCountFunc: func() (int, nvml.Return) { return len(devices), nvml.SUCCESS },
		DeviceGetHandleByIndexFunc: func(i int) (nvml.Device, nvml.Return) {
			return devices[i], nvml.SUCCESS
		},
		SystemGetProcessNameFunc: func(pid int) (string, nvml.Return) {
			if pid == 1 {
				return "/usr/bin/python3", nvml.SUCCESS
			}
			return "", nvml.ERROR_NOT_FOUND
		},
		ErrorStringFunc: func(ret nvml.Return) string { return "words for it" },
	}
}

func TestReadGPUs(t *testing.T) {
	lib := nvmlMock(
		gpuMock("GPU-"+fixtureUUID, 0x1b, []uint{1<<1 | 1<<63, 1},
			[]nvml.ProcessInfo{{Pid: 1, UsedGpuMemory: 3 << 30},
				{Pid: 2, UsedGpuMemory: math.MaxUint64}},
			[]nvml.ProcessInfo{{Pid: 1, UsedGpuMemory: 7}, {Pid: 3, UsedGpuMemory: 1 << 20}}),
		gpuMock("GPU-0", 0x1c, nil, nil, nil))
	gpus, err := readGPUs(lib)
	if err != nil || len(gpus) != 2 {
		t.Fatalf("%v, %v", gpus, err)
	}
	g := gpus[0]
	if g.UUID != "GPU-"+fixtureUUID || g.PCI != "00000000:1b:00.0" || g.Total != 80<<30 ||
		g.Used != 30<<30 || g.Free != 50<<30 ||
		!slices.Equal(g.Nodes, []int{1, 63, 64}) || gpus[1].Index != 1 || len(gpus[1].Nodes) != 0 {
		t.Errorf("%+v", gpus)
	}
	p := g.Processes
	if len(p) != 3 || p[0].Pid != 1 || p[0].Program != "python3" || *p[0].Used != 3<<30 ||
		p[1].Used != nil || p[1].Program != none ||
		p[2].Pid != 3 || *p[2].Used != 1<<20 {
		t.Errorf("%+v", p)
	}
	if len(lib.ShutdownCalls()) != 1 {
		t.Error("NVML was not shut down")
	}
}

// TestSilentGPU: what NVML does not answer is left out.
func TestSilentGPU(t *testing.T) {
	no := nvml.ERROR_NOT_SUPPORTED
	gpus, err := readGPUs(nvmlMock(&mock.Device{
		GetNameFunc: func() (string, nvml.Return) { return "", no },
		GetUUIDFunc: func() (string, nvml.Return) { return "", no },
		GetPciInfoFunc: func() (nvml.PciInfo,
			nvml.Return) {
			return nvml.PciInfo{Bus: 5}, no
		},
		GetMemoryInfoFunc: func() (nvml.Memory,
			nvml.Return) {
			return nvml.Memory{Total: 5}, no
		},
		GetMemoryAffinityFunc: func(int, nvml.AffinityScope) ([]uint,
			nvml.Return) {
			return []uint{1}, no
		},
		GetComputeRunningProcessesFunc: func() ([]nvml.ProcessInfo, nvml.Return) {
			return nil,
				no
		},
		GetGraphicsRunningProcessesFunc: func() ([]nvml.ProcessInfo, nvml.Return) {
			return nil,
				no
		},
	}))
	if err != nil || len(gpus) != 1 || gpus[0].PCI != "" || gpus[0].Total != 0 ||
		len(gpus[0].Nodes)+len(gpus[0].Processes) != 0 {
		t.Errorf("%+v, %v", gpus, err)
	}
	// A device without UUID and place is not that of a page without them.
	if rest := matchPages(gpus, []*page{pageWith(t, 1, "", "")}); len(rest) != 1 {
		t.Errorf("%+v", rest)
	}
}

func TestNVMLFails(t *testing.T) {
	lib := nvmlMock()
	if gpus, err := readGPUs(lib); err != nil || gpus == nil || len(gpus) != 0 {
		t.Errorf("a machine without devices: %v, %v", gpus, err)
	}
	lib.DeviceGetCountFunc = func() (int, nvml.Return) { return 1, nvml.SUCCESS }
	lib.DeviceGetHandleByIndexFunc = func(int) (nvml.Device, nvml.Return) {
		return nil,
			nvml.ERROR_NO_PERMISSION
	}
	if _, err := readGPUs(lib); err == nil ||
		!strings.Contains(err.Error(), "no access to device 0 of 1: words for it") {
		t.Errorf("no access: %v", err)
	}
	lib.DeviceGetCountFunc = func() (int, nvml.Return) { return 0, nvml.ERROR_UNKNOWN }
	if _, err := readGPUs(lib); err == nil || !strings.Contains(err.Error(), "count") {
		t.Errorf("no count: %v", err)
	}
	lib.InitFunc = func() nvml.Return { return nvml.ERROR_DRIVER_NOT_LOADED }
	_, err := readGPUs(lib)
	var f *failure
	if !errors.As(err, &f) || f.status != 69 || !strings.Contains(err.Error(), "words for it (9)") {
		t.Errorf("no driver: %v", err)
	}
}

// pageWith is a live page of a process on a device.
func pageWith(t *testing.T, pid int, uuid, pci string) *page {
	p := process(t, pid, 1, live.Running)
	p.report.Devices[0].Uuid, p.report.Devices[0].Pci = uuid, pci
	return p
}

func TestMatchPages(t *testing.T) {
	gpus := []gpu{{UUID: "GPU-a", PCI: "00000000:01:00.0",
		Processes: []gpuProcess{{Pid: 7, Program: "-"}}}, {UUID: "GPU-b", PCI: "00000000:02:00.0"}}
	dead, unborn, plain := pageWith(t, 1, "a", ""), pageWith(t, 2, "a", ""), pageWith(t, 3, "a", "")
	dead.state, unborn.report, plain.report.Devices = live.Killed, nil, nil
	rest := matchPages(gpus, []*page{dead, unborn, plain,
		pageWith(t, 7, "a", "00000000:02:00.0"), // the UUID goes first
		pageWith(t, 8, "part", "00000000:02:00.0"),
		pageWith(t, 9, "c", "00000000:03:00.0"),
		pageWith(t, 7, "a", ""), // in another container
	})
	pids := func(list []gpuProcess) (pids []int) {
		for _, p := range list {
			pids = append(pids, p.Pid)
			if p.Heap == nil || p.Program != "prog" {
				t.Errorf("%+v", p)
			}
		}
		return pids
	}
	if a, b, c := pids(gpus[0].Processes), pids(gpus[1].Processes),
		pids(rest); !slices.Equal(a, []int{7, 7}) ||
		!slices.Equal(b, []int{8}) || !slices.Equal(c, []int{9}) {
		t.Errorf("%v, %v, %v", a, b, c)
	}
}

func TestShowGPUs(t *testing.T) {
	gpus, err := readGPUs(nvmlMock(gpuMock("GPU-"+fixtureUUID, 0x1b, []uint{0b1100},
		[]nvml.ProcessInfo{{Pid: 1, UsedGpuMemory: 3 << 30}}, nil)))
	if err != nil {
		t.Fatal(err)
	}
	rest := matchPages(gpus, []*page{pageWith(t, 1, fixtureUUID, ""), pageWith(t, 5, "x", "")})
	var out bytes.Buffer
	showGPUs(&out, gpus, rest)
	d := goodReport(t).Devices[0]
	for _, words := range []string{
		"0 NVIDIA?[31m X 80 GiB 30 GiB 50 GiB 2-3 00000000:1b:00.0 GPU-" + fixtureUUID,
		"on gpu 0:\n",
		"1 prog 3.0 GiB " + size(d.BytesReserved) + " " + size(d.BytesLive) + " " +
			size(d.BytesCachedLocal+d.BytesCachedGlobal),
		" 8.0 GiB " + count(d.AllocCalls) + " 87.5%", "on devices that NVML does not show:\n",
		"5 prog - ",
	} {
		if !strings.Contains(squeeze(out.String()), words) {
			t.Errorf("%q is missing in\n%s", words, squeeze(out.String()))
		}
	}
	text, err := json.Marshal(gpus)
	if err != nil || !strings.Contains(string(text),
		`"bytes_used":3221225472,"heap":{"ordinal":0,`) {
		t.Errorf("%s, %v", text, err)
	}
	out.Reset()
	showGPUs(&out, nil, nil)
	if out.String() != "NVML shows no device.\n" {
		t.Errorf("%q", out.String())
	}
}
