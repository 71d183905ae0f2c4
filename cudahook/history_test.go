package cudahook

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
	"unsafe"

	"tieralloc/internal/config"
)

// text is a device's history as a program gets it with a buffer of n bytes.
func text(device uint64, n int) (string, uintptr) {
	buf := make([]byte, n+1)
	buf[n] = '!'
	size := History(8, device, uintptr(unsafe.Pointer(&buf[0])), uintptr(n))
	if buf[n] != '!' {
		panic("written past the end")
	}
	s, _, _ := strings.Cut(string(buf[:n]), "\x00")
	return s, size
}

func TestHistory(t *testing.T) {
	p := newProg(t, gib, nil)
	p.sfree(p.salloc(100, 7), 7) // before it records
	if Configure(8, 0, ConfigTrace, 1) != 1 {
		t.Fatal("refused")
	}
	a := p.salloc(5000, 7)
	b := p.alloc(3 * mib)
	p.sfree(a, 7)
	p.free(b)
	p.is("refused", p.result(OpAlloc, func(r *Request) { r.Bytes = 2 * gib }), ErrorOutOfMemory)
	Configure(8, 0, ConfigTrace, 0)
	p.sfree(p.salloc(100, 7), 7) // after
	tid := os.Getpid()
	want := traceHeader + "\n"
	for _, l := range []string{
		fmt.Sprintf("allocate,%#x,5000,0x7", a), fmt.Sprintf("allocate,%#x,%d,0x0", b, 3*mib),
		fmt.Sprintf("free,%#x,5000,0x7", a), fmt.Sprintf("free,%#x,%d,0x0", b, 3*mib),
		fmt.Sprintf("allocate failure,0x0,%d,0x0", 2*gib),
	} {
		want += fmt.Sprintf("%d,%s\n", tid, l)
	}
	got, size := text(0, 4000)
	for _, l := range strings.SplitAfter(got, "\n")[1:] { // the goroutine may be on any thread
		if thread, rest, ok := strings.Cut(l, ","); ok {
			got = strings.Replace(got, l, fmt.Sprintf("%d,%s", tid, rest), 1)
			size = size - uintptr(len(thread)) + uintptr(len(fmt.Sprint(tid)))
		}
	}
	if got != want || size != uintptr(len(want)) {
		t.Errorf("%d bytes:\n%swant\n%s", size, got, want)
	}
	whole, size := text(0, 4000)
	for _, n := range []int{0, 1, 2, len(traceHeader), len(whole), len(whole) + 1} {
		part, need := text(0, n)
		if need != size || part != whole[:max(0, min(n-1, len(whole)))] {
			t.Errorf("%d bytes: %q, %d", n, part, need)
		}
	}
	if s, size := text(1, 100); s != traceHeader+"\n" || size != uintptr(len(s)) {
		t.Errorf("another device: %q", s)
	}
	if _, size := text(deviceMax, 100); size != 0 {
		t.Error("no device has a history")
	}
	Configure(8, everyDevice, ConfigTrace, 1)
	if s, _ := text(0, 100); s != traceHeader+"\n" {
		t.Errorf("recorded anew: %q", s)
	}
}

// TestHistoryFork: another thread is recording at a fork; the child can ask all the same.
func TestHistoryFork(t *testing.T) {
	newProg(t, gib, nil)
	unscheduled(t)
	history.lock.Take(16)
	ForkChild(8, ForkPrepare(8, true))
	done := make(chan bool)
	go func() { History(8, 0, 0, 0); close(done) }()
	select {
	case <-done:
	case <-time.After(time.Second):
		t.Error("History does not return in the child")
	}
	off = 0
}

// TestRefusalAfterEvent: a snapshot is due only once the history has the refusal, because another
// thread may write it at once.
func TestRefusalAfterEvent(t *testing.T) {
	p := newProg(t, gib, func(c *config.CUDA) { c.Snapshots = true })
	unscheduled(t)
	p.alloc(100)
	SnapshotTaken()
	*p.r = Request{Token: 8, Op: OpAlloc, Context: 0xc1, Bytes: 2 * gib}
	history.lock.Take(16)
	done := make(chan bool)
	go func() { p.f.run(p.r); close(done) }()
	for range 200 {
		time.Sleep(time.Millisecond)
		if RefusalDue() {
			t.Error("a snapshot is due before the refusal is in the history")
			break
		}
	}
	history.lock.Release()
	<-done
	if !RefusalDue() {
		t.Error("no snapshot is due")
	}
	SnapshotTaken()
}

// TestHistoryFull: the oldest events go.
func TestHistoryFull(t *testing.T) {
	p := newProg(t, gib, nil)
	Configure(8, everyDevice, ConfigTrace, 1)
	a := p.salloc(5000, 7)
	for range historyMax / 2 {
		p.sfree(a, 7)
		a = p.salloc(5000, 7)
	}
	s, size := text(0, 16<<20)
	if lines := strings.Count(s, "\n"); lines != historyMax+1 || int(size) != len(s) {
		t.Errorf("%d lines, %d bytes of %d", lines, size, len(s))
	}
	if first := strings.Split(s, "\n")[1]; !strings.Contains(first, ",free,") {
		t.Errorf("the oldest event is %s", first)
	}
}
