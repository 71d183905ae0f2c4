package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"

	"golang.org/x/sys/unix"

	"tieralloc/stats"
	"tieralloc/stats/live"
)

// report is a report of the library (docs/stats.schema.json), as far as people are
// shown it.
type report struct {
	Schema      string            `json:"schema"`
	Pid         int               `json:"pid"`
	Program     string            `json:"program"`
	StartUnixNs uint64            `json:"start_unix_ns"`
	UptimeNs    uint64            `json:"uptime_ns"`
	Calls       map[string]uint64 `json:"calls"`
	CallsFailed uint64            `json:"calls_failed"`
	Heap        *heap             `json:"heap"`
	Backend     string            `json:"backend"`
	Policy      struct {
		DefaultHint string `json:"default_hint"`
		OnSoftcap   string `json:"on_softcap"`
		OnHardcap   string `json:"on_hardcap"`
		Throttle    string `json:"throttle"`
		Model       string `json:"model"`
		Rules       uint64 `json:"rules"`
	} `json:"policy"`
	Nodes        []int `json:"nodes"`
	NodesSampled bool  `json:"bytes_per_node_sampled"`
	Tiers        struct {
		Fast   *tier `json:"fast"`
		Normal *tier `json:"normal"`
		Slow   *tier `json:"slow"`
	} `json:"tiers"`
	Devices  []*device  `json:"devices"` // none in a process without CUDA
	Managers []*manager `json:"managers"`
}

type heap struct {
	BytesMapped      uint64 `json:"bytes_mapped"`
	BytesCommitted   uint64 `json:"bytes_committed"`
	BytesLive        uint64 `json:"bytes_live"`
	BytesPeak        uint64 `json:"bytes_peak"`
	BytesCached      uint64 `json:"bytes_cached"`
	BytesTotalAlloc  uint64 `json:"bytes_total_alloc"`
	BlocksLive       uint64 `json:"blocks_live"`
	BlocksTotalAlloc uint64 `json:"blocks_total_alloc"`
	BlocksTotalFreed uint64 `json:"blocks_total_freed"`
}

type tier struct {
	AllocCalls         uint64            `json:"alloc_calls"`
	FreeCalls          uint64            `json:"free_calls"`
	BytesCurrent       uint64            `json:"bytes_current"`
	BytesPeak          uint64            `json:"bytes_peak"`
	BytesTotalAlloc    uint64            `json:"bytes_total_alloc"`
	BlocksEntered      uint64            `json:"blocks_entered"`
	BlocksLeft         uint64            `json:"blocks_left"`
	BytesEntered       uint64            `json:"bytes_entered"`
	BytesLeft          uint64            `json:"bytes_left"`
	WaitNs             uint64            `json:"simulated_wait_ns"`
	CapacitySoft       uint64            `json:"capacity_soft"`
	CapacityHard       uint64            `json:"capacity_hard"`
	KernelMovedIn      uint64            `json:"kernel_moved_in"`
	KernelMovedOut     uint64            `json:"kernel_moved_out"`
	CapacityViolations uint64            `json:"capacity_violations"`
	SoftExceeded       uint64            `json:"soft_exceeded"`
	Rerouted           uint64            `json:"rerouted"`
	RoutedSlow         uint64            `json:"routed_slow"`
	Refused            uint64            `json:"refused"`
	ThrottleSleeps     uint64            `json:"throttle_sleeps"`
	ThrottleOvershoot  uint64            `json:"throttle_overshoot_ns"`
	ThrottleBW         uint64            `json:"throttle_bw"`
	ThrottleBurst      uint64            `json:"throttle_burst"`
	ThrottleLatNs      uint64            `json:"throttle_lat_ns"`
	HugePages          string            `json:"hugepages"`
	HugeFallbacks      uint64            `json:"hugepage_fallbacks"`
	Nodes              []int             `json:"nodes"`
	SameMemory         []string          `json:"same_memory"`
	BytesPerNode       map[string]uint64 `json:"bytes_per_node"`
	Migrations         struct {
		Attempted   uint64 `json:"attempted"`
		MovedPages  uint64 `json:"moved_pages"`
		FailedPages uint64 `json:"failed_pages"`
	} `json:"migrations"`
}

// tierNames are the tiers in the order of report.tiers.
var tierNames = [3]string{"FAST", "NORMAL", "SLOW"}

func (r *report) tiers() [3]*tier { return [3]*tier{r.Tiers.Fast, r.Tiers.Normal, r.Tiers.Slow} }

// decodeReport reads a report and makes sure that it is one, whole and of the format
// that this program knows.
func decodeReport(text []byte) (*report, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, errors.New("the file is empty")
	}
	r := &report{}
	var syntax *json.SyntaxError
	switch err := json.Unmarshal(text, r); {
	case errors.As(err, &syntax):
		return nil, fmt.Errorf("no statistics of tieralloc, or cut short: no JSON from byte %d on (%w)", syntax.Offset, err)
	case err != nil:
		return nil, fmt.Errorf("no statistics of tieralloc: %w", err)
	case r.Schema == "":
		return nil, errors.New("no statistics of tieralloc: there is no \"schema\"")
	case r.Schema != stats.Schema:
		return nil, fmt.Errorf("statistics of format %q; this program reads %q", r.Schema,
			stats.Schema)
	case r.Heap == nil || r.Tiers.Fast == nil || r.Tiers.Normal == nil || r.Tiers.Slow == nil:
		return nil, errors.New("damaged statistics: heap or tiers are missing")
	}
	if len(r.Devices) > stats.DeviceMax {
		return nil, fmt.Errorf("damaged statistics: %d devices", len(r.Devices))
	}
	for _, m := range r.Managers {
		if m == nil || slices.Contains(m.Instances, nil) {
			return nil, errors.New("damaged statistics: a memory manager or an instance is missing")
		}
	}
	for _, d := range r.Devices {
		if d == nil || d.Tiers.Fast == nil || d.Tiers.Slow == nil {
			return nil, errors.New("damaged statistics: tiers of a device are missing")
		}
	}
	makePrintable(reflect.ValueOf(r))
	return r, nil
}

// makePrintable makes all strings in v printable, so that none can reach a terminal as it
// is in a file.
func makePrintable(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(printable(v.String()))
	case reflect.Pointer:
		if !v.IsNil() {
			makePrintable(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			makePrintable(v.Field(i))
		}
	case reflect.Slice:
		for i := range v.Len() {
			makePrintable(v.Index(i))
		}
	case reflect.Map:
		clean := reflect.MakeMap(v.Type())
		for entry := v.MapRange(); entry.Next(); {
			clean.SetMapIndex(reflect.ValueOf(printable(entry.Key().String())), entry.Value())
		}
		v.Set(clean)
	}
}

// reportMax is more than any report is long: one has some 30 KiB.
const reportMax = 16 << 20

// readReportFile reads a statistics file.
func readReportFile(path string) (text []byte, r *report, err error) {
	file, err := live.OpenRegular(unix.AT_FDCWD, path, path, 0)
	if err != nil {
		return nil, nil, err
	}
	defer file.Close()
	text, err = io.ReadAll(io.LimitReader(file, reportMax+1))
	if err != nil {
		return nil, nil, err
	}
	if len(text) > reportMax {
		return nil, nil, fmt.Errorf("%s: no statistics of tieralloc: it has more than %s", path,
			size(reportMax))
	}
	if r, err = decodeReport(text); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	return text, r, nil
}
