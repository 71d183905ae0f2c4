package main

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// goodSnapshot has a device with a small segment, one that grows, one on the host, and an
// allocation of the driver's own.
const goodSnapshot = `tieralloc snapshot 2 77 1000000 1700000000001000000
device 0 1073741824 67108864 31459328
heap 0 5 1024 512 2096128 0 512 0 0 29362176
segment 2097152 2097152 small fixed device 0 0
block 2097152 1024 1000 used 9
block 2098176 512 500 free 9
block 2098688 512 500 pending 9
block 2099200 2095104 0 free -
segment 8388608 27262976 large grows device 0 0
block 8388608 27262976 0 free -
segment 90000000 2097152 large fixed host 0 0
block 90000000 2097152 5 used -
foreign 2097664 1024 1000
frame 3 <module> /a%20b/é.py
frame 17 C.f /x%25.py
call 0 1
call 1 2
event 0 100000 expand 8388608 27262976 0 0 0
event 0 200000 map 2097152 2097152 0 0 0
event 0 300000 alloc 2097152 1000 9 3 2
event 0 400000 alloc 2098688 500 9 3 2
event 0 500000 free 2098688 500 9 3 2
event 0 600000 free 999 500 9 3 2
event 0 700000 alloc 2097664 1000 0 3 2
event 0 800000 unmap 50000000 2097152 0 0 0
event 0 900000 refused 0 99999999 0 3 2
end
`

func TestDecodeSnapshot(t *testing.T) {
	s, err := decodeSnapshot([]byte(goodSnapshot))
	if err != nil {
		t.Fatal(err)
	}
	v := &s.devices[0]
	if s.pid != 77 || len(v.segments) != 3 || v.spilled != 1 || v.onHost != 2<<20 ||
		v.live != 1024 || v.cached != 2096640 {
		t.Errorf("%+v", s)
	}
	trace := v.trace()
	var actions []string
	for _, e := range trace {
		actions = append(actions, e.action)
	}
	// The block at 999 is in no segment: it was an allocation of the driver's own, as is the one
	// whose handle lies in a segment. Pending blocks are not free yet.
	want := "segment_map segment_alloc alloc alloc free_requested free_requested free_completed " +
		"segment_free segment_alloc alloc segment_free oom"
	if got := strings.Join(actions, " "); got != want {
		t.Errorf("%s", got)
	}
	if a := trace[9]; a.address < foreignFrom || a.address != trace[8].address {
		t.Errorf("%+v", a)
	}
	if b := v.segments[0].blocks; b[0].call != 2 || b[1].call != 0 || b[2].call != 2 ||
		trace[2].call != 2 || s.frames[0] != (snapshotFrame{3, "<module>", "/a b/é.py"}) ||
		s.frames[1] != (snapshotFrame{17, "C.f", "/x%.py"}) {
		t.Errorf("%+v, %+v", b, s.frames)
	}
	if oom := trace[11]; oom.free != 64<<20-31459328 || oom.bytes != 99999999 {
		t.Errorf("%+v", oom)
	}
}

// TestFirstSnapshots: the first version of the format had no stacks.
func TestFirstSnapshots(t *testing.T) {
	text := strings.NewReplacer("snapshot 2", "snapshot 1", "0 0 0\n", "0 0\n", " 3 2\n", " 3\n").
		Replace(goodSnapshot)
	s, err := decodeSnapshot([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(s.devices[0].events); n != 9 {
		t.Errorf("%d events", n)
	}
}

// TestDamagedSnapshots: a damaged snapshot is one error that names the line or the place.
func TestDamagedSnapshots(t *testing.T) {
	for _, c := range [][3]string{
		{"tieralloc snapshot 2", "tieralloc snapshot 3", `format "3": this tool reads 1 and 2`},
		{"tieralloc", "tieralock", "not a snapshot"},
		{"end\n", "", "its end is missing"},
		{"end\n", "end\nend\n", "more after its end"},
		{"block 2097152 1024", "block 2097152 1x", `line 5: "1x": expected a number`},
		{"1000 used 9", "1000 lent 9", `"lent": expected used, free`},
		{"1000 used 9", "1000 used", "a field is missing"},
		{"1000 used 9", "1000 used 9 9", `"9": expected no more fields`},
		{"1000 used 9", "2000 used 9", "the segment at 0x200000 does not fit its blocks"},
		{"block 2097152 1024", "block 2097153 1024", "does not fit its blocks"},
		{"heap 0 5 1024", "heap 0 5 1025", "device 0 has 1025 bytes in use, its blocks 1024"},
		{"heap 0", "heap 64", "device 64: expected a number below 64"},
		{"segment 8388608", "segment 2097152", "the segment at 0x200000 does not fit its blocks"},
		{"heap", "heep", `"heep": expected device`},
		{"heap 0 5 1024 512 2096128 0 512 0 0 29362176\n", "", "segment without a heap"},
		{"segment 2097152 2097152 small fixed device 0 0\n", "", "block without a segment"},
		{"1700000000001000000", "1700000000001000000 1", "expected no more fields"},
		{"frame 17", "frame 1x", `"1x": expected a number`},
		{"%25.py", "%2.py", "invalid URL escape"},
		{"call 1 2", "call 2 2", "2: there are only 1 so far"},
		{"call 1 2", "call 1 3", "3: there are only 2 so far"},
		{"call 1 2", "call 1 0", "a call without a frame"},
		{"500 9 3 2", "500 9 3 3", "3: there are only 2 so far"},
		{"500 9 3 2", "500 9 3", "a field is missing"},
		{"map 2097152 2097152", "map 9999999999999999999 1", "no memory is so large"},
	} {
		text := strings.Replace(goodSnapshot, c[0], c[1], 1)
		if _, err := decodeSnapshot([]byte(text)); err == nil ||
			!strings.Contains(err.Error(), c[2]) {
			t.Errorf("%q: %v; expected %q", c[1], err, c[2])
		}
	}
	path := filepath.Join(t.TempDir(), "s")
	if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, words := range map[string]string{path: path + ": not a snapshot",
		path + "y": "no such file"} {
		if _, err := readSnapshot(name); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%v", err)
		}
	}
}

// TestRandomSnapshots: whatever was changed in a snapshot, it is an error or becomes a pickle.
func TestRandomSnapshots(t *testing.T) {
	lines := strings.SplitAfter(goodSnapshot, "\n")
	for range 3000 {
		var text []byte
		for _, line := range lines {
			for n := rand.IntN(20); n != 0 && n < 3 || n > 2; n = 0 {
				text = append(text, line...)
				if n == 2 {
					text = append(text, line...)
				}
			}
		}
		for range rand.IntN(4) {
			text[rand.IntN(len(text))] = byte("0123456789 \n-"[rand.IntN(13)])
		}
		s, err := decodeSnapshot(text)
		if err == nil {
			err = s.writePickle(&bytes.Buffer{})
			s.describe(&bytes.Buffer{}, "x")
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestPickle compares with what Python's own pickler writes, but for its memo.
func TestPickle(t *testing.T) {
	var out bytes.Buffer
	p := newPickler(&out)
	p.dict(func() {
		p.textOf("a", "é")
		p.text("b")
		p.list(2, func(i int) { p.number([]uint64{255, 1 << 63}[i]) })
		p.text("c")
		p.pair(0, 1<<31)
		p.text("d")
		p.truth(true)
		p.text("e")
		p.truth(false)
		p.text("f")
		p.list(0, nil)
		p.text("g")
		p.again(p.remember())
	})
	if err := p.end(); err != nil {
		t.Fatal(err)
	}
	want := "\x80\x04}(X\x01\x00\x00\x00aX\x02\x00\x00\x00éX\x01\x00\x00\x00b](J\xff\x00\x00\x00" +
		"\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x80\x00eX\x01\x00\x00\x00cJ\x00\x00\x00\x00" +
		"\x8a\x05\x00\x00\x00\x80\x00\x86X\x01\x00\x00\x00d\x88X\x01\x00\x00\x00e\x89" +
		"X\x01\x00\x00\x00f]" +
		"X\x01\x00\x00\x00g\x94j\x00\x00\x00\x00u."
	if out.String() != want {
		t.Errorf("%q", out.String())
	}
}
