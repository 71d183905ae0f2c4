package profile

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/google/pprof/profile"
)

// atEnd reports whether the slot of a block lies around the end of a certain part of the samples.
func atEnd(addr uintptr) bool {
	k := slotOf(addr) % 1024
	return t.samples.of(addr) == &t.samples.part[3] && (k < 48 || k >= 1024-48)
}

// serialsNear returns numbers of blocks in a heap of which that is so.
func serialsNear(heap uint64, n int) (numbers []uintptr) {
	for serial := uint64(1); len(numbers) < n; serial++ {
		number := uintptr(deviceBit | heap<<HeapBit | serial)
		if atEnd(number) {
			numbers = append(numbers, number)
		}
	}
	return numbers
}

// TestDevicesDropped: contexts end while blocks of others, and of the host, share their slots.
// Exactly the lost blocks are gone, and every other one can still be freed.
func TestDevicesDropped(tt *testing.T) {
	for seed := range uint64(20) {
		newTable(tt)
		rnd := rand.New(rand.NewPCG(seed, 2))
		t.siteN = 3
		t.sites[1].Kind, t.sites[1].Device = Device, 1
		t.sites[2].Kind, t.sites[2].Device = Managed, 1
		live := map[uintptr]uint64{}
		where := map[uintptr]int{}
		for heap := range uint64(3) {
			for _, number := range serialsNear(heap, 60) {
				where[number] = 1 + rnd.IntN(2)
			}
		}
		for addr := uintptr(4096); len(where) < 240; addr += 4096 {
			if atEnd(addr) {
				where[addr] = 0
			}
		}
		for addr, site := range where {
			b := &Block{Addr: addr, Size: 1 + rnd.Uint64N(1<<40), Now: 1}
			if !t.keep(b, &t.sites[site]) {
				tt.Fatal("no room")
			}
			live[addr] = b.Size
		}
		check := func(when string) {
			var sums [3]float64
			devices := 0
			for addr, size := range live {
				sums[where[addr]] += float64(size)
				if where[addr] != 0 {
					devices++
				}
			}
			for i, sum := range sums {
				if s := &t.sites[i]; s.liveBytes() != sum || t.live[s.group()] != sum {
					tt.Errorf("%s site %d has %.0f bytes, its group %.0f, not %.0f", when, i,
						s.liveBytes(), t.live[s.group()], sum)
				}
			}
			if sampled() != len(live) || int(t.deviceN) != devices {
				tt.Errorf("%s there are %d samples, %d of devices, not %d and %d", when,
					sampled(), t.deviceN, len(live), devices)
			}
		}
		check("at first")
		ended := Ended{1: 1 << 40}
		for number := range where {
			if number>>HeapBit&(Heaps-1) == 2 && rnd.IntN(40) == 0 {
				ended[2] = max(ended[2], uint64(number)&(1<<HeapBit-1))
			}
		}
		t.dropDevices(&ended, 2)
		for addr := range live {
			if where[addr] != 0 && ended.has(addr) {
				delete(live, addr)
			}
		}
		check("after the ends")
		for addr := range where { // those that are gone, too
			if rnd.IntN(2) == 0 {
				t.drop(addr, 3)
				delete(live, addr)
			}
		}
		check("after frees")
		t.dropDevices(nil, 4)
		for addr := range live {
			if where[addr] != 0 {
				delete(live, addr)
			}
		}
		check("in a child")
	}
}

// TestDevicesFull: blocks beyond the table's room are counted as lost, and their frees change
// nothing. A block that is lost with its context before its sample ends is none of them.
func TestDevicesFull(tt *testing.T) {
	newTable(tt)
	lost, missed := Lost, Missed
	sample := func(number uintptr, ended *Ended) {
		if BeginDevice(8, true) == nil {
			tt.Fatal("the table is taken")
		}
		EndDevice(8, true, &Block{Addr: number, Size: 512, Kind: Device}, 0, ended)
	}
	const more = sampleCount // so that each part of the samples is full
	var none Ended
	for i := range uintptr(sampleCount + more) {
		sample(deviceBit|(i+1), &none)
	}
	sample(deviceBit|1<<40, &Ended{1 << 40})
	if Lost-lost != more || Missed != missed || t.deviceN != sampleCount || t.siteN != 1 {
		tt.Errorf("%d lost, %d missed, %d kept at %d sites", Lost-lost, Missed-missed, t.deviceN,
			t.siteN)
	}
	for i := range uintptr(sampleCount + more) {
		Freed(8, deviceBit|(i+1), true)
	}
	s, d := &t.sites[0], &t.spreads[0]
	if sampled() != 0 || t.deviceN != 0 || d.live() != 0 || s.liveBytes() != 0 ||
		d.size.sum != sampleCount || s.Peak != sampleCount*512 {
		tt.Errorf("%d samples are left, %d of devices: %+v", sampled(), t.deviceN, s)
	}
}

// TestGroups: every kind of memory on every device is a group of its own.
func TestGroups(tt *testing.T) {
	newTable(tt)
	type memory struct{ kind, device uint32 }
	seen := map[uintptr]memory{}
	s := &t.sites[0]
	for device := range uint32(Devices) {
		for kind := Host; kind <= Spilled; kind++ {
			s.Kind, s.Device = kind, device
			m := memory{kind, device}
			if kind == Host {
				m.device = 0
			}
			g := s.group()
			if o, ok := seen[g]; ok && o != m || g >= groupCount {
				tt.Errorf("%v and %v are group %d", o, m, g)
			}
			seen[g] = m
		}
	}
}

// TestDevicesHaveNoHeat: heat is that of addresses of the host, and the number of a block on a
// device is none. In a profile with both each sample has a value for each type.
func TestDevicesHaveNoHeat(tt *testing.T) {
	newTable(tt)
	t.siteN, t.deviceSites = 2, 1
	t.sites[1].Kind, t.sites[1].Device = Managed, 3
	for i, addr := range []uintptr{1 << 20, deviceBit | 1<<20} {
		if !t.keep(&Block{Addr: addr, Size: 1 << 16, Now: 1}, &t.sites[i]) {
			tt.Fatal("no room")
		}
	}
	regions := []Region{{0, deviceBit, 1}}
	Heat(8, uintptr(unsafe.Pointer(&regions[0])), 1, 20)
	Settle(2)
	buffer := make([]byte, 1<<16)
	n := Write(uintptr(unsafe.Pointer(&buffer[0])), uintptr(len(buffer)), &About{Now: 2})
	p, err := profile.Parse(bytes.NewReader(buffer[:n]))
	if err != nil {
		tt.Fatal(err)
	}
	var got []string
	at := map[string]int{}
	for i, s := range p.SampleType {
		at[s.Type] = i
	}
	for _, s := range p.Sample {
		words := []string{"host"}
		if d := s.Label["device"]; d != nil {
			words = []string{s.Label["kind"][0], d[0]}
		}
		for _, kind := range []string{"inuse_space", "heat_space", "device_inuse_space"} {
			words = append(words, fmt.Sprint(s.Value[at[kind]]))
		}
		got = append(got, strings.Join(words, " "))
	}
	want := []string{"host 65536 0 0", "host 0 65536 0", "managed 3 0 0 65536"}
	if !slices.Equal(got, want) {
		tt.Errorf("%q, want %q", got, want)
	}
}
