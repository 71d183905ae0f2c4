package live

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"tieralloc/stats"
)

// answering answers the next order to a page as a process would, by the text that reply makes of
// its Until.
func answering(t *testing.T, w *writer, errno syscall.Errno, reply func(until string) string) {
	t.Helper()
	file, err := os.OpenFile(w.path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	const at = int64(unsafe.Offsetof(stats.LivePage{}.Asks) +
		stats.AskRegions*unsafe.Sizeof(stats.LiveAsk{}))
	read := func(at int64) (v uint64) {
		_, _ = file.ReadAt(words(&v), at)
		return v
	}
	before := read(at)
	go func() {
		for read(at) == before {
			time.Sleep(time.Millisecond)
		}
		until := read(int64(unsafe.Offsetof(stats.LivePage{}.Order)))
		text := reply(strconv.FormatUint(until, 10))
		a := stats.LiveAsk{Asked: before + 1, Done: before + 1, Errno: uint64(errno),
			PathLen: uint64(len(text))}
		copy(a.Path[:], text)
		_, _ = file.WriteAt(words(&a), at)
	}()
}

// TestOrder: an answer is that to one's own order, a refusal or an error.
func TestOrder(t *testing.T) {
	w := start(t, "idle")
	p := w.open(t)
	order := func(errno syscall.Errno, text string) ([]Region, syscall.Errno, error) {
		answering(t, w, errno, func(until string) string {
			return strings.Replace(text, "UNTIL", until, 1)
		})
		return p.Order(stats.LiveOrder{}, time.Minute)
	}
	got, refused, err := order(0, "UNTIL\n3 0 4096 77 a b\n0 12 0 5 kv\n")
	if err != nil || refused != 0 || len(got) != 2 || got[0] != (Region{3, "a b", 0, 4096, 77}) ||
		got[1] != (Region{0, "kv", syscall.ENOMEM, 0, 5}) {
		t.Errorf("%v, %v, %v", got, refused, err)
	}
	if got, refused, err := order(0, "UNTIL\n"); len(got) != 0 || refused != 0 || err != nil {
		t.Errorf("no region: %v, %v, %v", got, refused, err)
	}
	_, refused, err = order(syscall.ENODEV, "UNTIL\n")
	if refused != syscall.ENODEV || err != nil {
		t.Errorf("refused: %v, %v", refused, err)
	}
	if _, _, err := order(0, "1\n0 0 0 5 kv\n"); !errors.Is(err, ErrOther) {
		t.Errorf("another's order: %v", err)
	}
	for _, text := range []string{"UNTIL\n1 2 3 4\n", "UNTIL\n1 2 3 -4 kv\n", "UNTIL\n\n"} {
		if _, _, err := order(0, text); err == nil || !strings.Contains(err.Error(), "damaged") {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, _, err := p.Order(stats.LiveOrder{}, 30*time.Millisecond); !errors.Is(err, ErrLate) {
		t.Errorf("nobody answers: %v", err)
	}
}

// TestRegionName: names are those that ta_cuda_region_begin takes.
func TestRegionName(t *testing.T) {
	for name, want := range map[string]bool{"": false, "kv": true, "fifteen bytes..": true,
		"sixteen bytes...": false, "a\x00b": false} {
		if _, ok := RegionName(name); ok != want {
			t.Errorf("%q: %v", name, ok)
		}
	}
}
