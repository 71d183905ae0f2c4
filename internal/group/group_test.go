package group

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"tieralloc/internal/raw"
)

const mib = 1 << 20

func newPath(t *testing.T) string { return filepath.Join(t.TempDir(), "group") }

func TestLayout(t *testing.T) {
	if unsafe.Offsetof(Page{}.Slots) != raw.Page || Size%raw.Page != 0 ||
		unsafe.Sizeof(Member{})%64 != 0 {
		t.Errorf("slots of %d bytes at %d, %d bytes in all", unsafe.Sizeof(Member{}),
			unsafe.Offsetof(Page{}.Slots), Size)
	}
}

// TestOperation: an operation is what it was made of, and the numbers wrap.
func TestOperation(t *testing.T) {
	for _, before := range []operation{0, newOperation(0, 5, 7), ^operation(0)} {
		o := newOperation(before, 1023, deltaMask)
		if o.member() != 1023 || o.pages() != deltaMask ||
			o.number() != (before.number()+1)&tagMask {
			t.Errorf("%x after %x", uint64(o), uint64(before))
		}
	}
}

// TestCap: the sum of two members stays within the cap, to the byte of a page, whoever asks first,
// and what one has not reserved goes to the other.
func TestCap(t *testing.T) {
	path := newPath(t)
	a := start(t, path, Uncapped, 64*mib, 0)
	b := start(t, path, Uncapped, 64*mib, 0)
	a.want("true", "charge %d", 60*mib) // was granted 64 MiB
	b.want("true", "charge %d", 4*mib)
	b.want("false", "charge 1")
	a.want("false", "charge 1")
	a.want("ok", "release %d", 20*mib)
	b.want("true", "charge %d", 20*mib-4096)
	b.want("false", "charge 4097")
	a.want("true", "charge 4096")
	a.want("false", "charge 1")
	a.want(fmt.Sprint(40*mib+4096, 64*mib), "used")
	a.want("0", "room")
	b.want("ok", "release %d", 24*mib-4096)
	a.want(fmt.Sprint(24*mib-4096), "room")
	a.want("true", "charge %d", 24*mib-4096)
	b.want("false", "charge %d", uint64(1)<<62)
	m := &pageAt(t, path).Slots[1]
	if m.Pid != uint64(b.cmd.Process.Pid) || m.Refused != 3 || m.Taken < 20*mib-4096 {
		t.Errorf("pid %d, refused %d, taken %d", m.Pid, m.Refused, m.Taken)
	}
}

// deathSeen is how long it may take until a death is seen.
const deathSeen = 120 * time.Millisecond

// TestTotals: what members met stays counted when they have ended, and when a group begins again.
func TestTotals(t *testing.T) {
	path := newPath(t)
	a := start(t, path, Uncapped, 64*mib, 0)
	b := start(t, path, Uncapped, 64*mib, 0)
	a.want("true", "charge %d", 32*mib)
	b.want("true", "charge %d", 32*mib)
	a.want("ok", "release %d", 16*mib)
	b.want("true", "charge %d", 16*mib) // a was granted that
	b.want("false", "charge 1")
	a.want("false", "charge 1")
	p := pageAt(t, path)
	want := p.Totals[0]
	if taken := p.Slots[0].Taken + p.Slots[1].Taken; want.Refused != 2 || want.Waits != 0 ||
		want.Taken != taken || taken < 16*mib || p.Totals[1] != (Totals{}) {
		t.Errorf("%+v, %+v, taken %d", want, p.Totals[1], taken)
	}
	b.kill()
	time.Sleep(deathSeen)
	a.want("true", "charge %d", 48*mib)
	a.kill()
	start(t, path, Uncapped, 64*mib, 0)
	if got := p.Totals[0]; got != want || p.Slots[0].Refused+p.Slots[1].Refused != 0 {
		t.Errorf("%+v, not %+v", got, want)
	}
}

// TestDeath: what a killed member had is there for the others' next request.
func TestDeath(t *testing.T) {
	path := newPath(t)
	a := start(t, path, Uncapped, 64*mib, 0)
	for i := range 3 {
		b := start(t, path, Uncapped, 64*mib, 0)
		b.want("true", "charge %d", 50*mib)
		a.want("false", "charge %d", 20*mib)
		b.kill()
		time.Sleep(deathSeen)
		a.want("true", "charge %d", 64*mib)
		if slot := &pageAt(t, path).Slots[1]; slot.Pid != 0 || slot.Shares[0].used != 0 {
			t.Errorf("round %d: pid %d, used %d", i, slot.Pid, slot.Shares[0].used)
		}
		a.want("ok", "release %d", 64*mib)
	}
}

// TestPending: what a member was granted and did not live to see is part of the sum until the
// member is found dead, and only then.
func TestPending(t *testing.T) {
	path := newPath(t)
	a := start(t, path, Uncapped, 64*mib, 0)
	b := start(t, path, Uncapped, 64*mib, 0)
	p := pageAt(t, path)
	// As b would, it is granted 60 MiB. It does not get to write its share.
	p.ops[0] = uint64(newOperation(operation(p.ops[0]), 1, 60*mib>>pageShift))
	a.want("true", "charge %d", 4*mib)
	if got := p.Slots[1].Shares[0].Granted(); got != 60*mib {
		t.Errorf("granted %d", got)
	}
	b.want(fmt.Sprint(60*mib), "granted")
	// b has not reserved it, so a may take it.
	a.want("true", "charge %d", 60*mib)
	a.want("ok", "release %d", 64*mib)
	p.ops[0] = uint64(newOperation(operation(p.ops[0]), 1, 60*mib>>pageShift))
	b.kill()
	time.Sleep(deathSeen)
	a.want("true", "charge %d", 64*mib)
	c := start(t, path, Uncapped, 64*mib, 0)
	c.want("0", "granted")
}

// TestFloor: the floor of a member is not taken from it.
func TestFloor(t *testing.T) {
	path := newPath(t)
	a := start(t, path, Uncapped, 64*mib, 0)
	b := start(t, path, Uncapped, 64*mib, 16*mib)
	a.want("false", "charge %d", 48*mib+1)
	a.want("true", "charge %d", 48*mib)
	a.want("0", "room")
	b.want("true", "charge %d", 16*mib)
	c := start(t, path, Uncapped, 64*mib, 50*mib)
	if !strings.HasSuffix(c.said, "floor false") || !strings.HasSuffix(b.said, "floor true") {
		t.Errorf("%q, %q", b.said, c.said)
	}
	// d comes when all is taken. What others return is d's, up to its floor.
	d := start(t, path, Uncapped, 64*mib, 8*mib)
	a.want("ok", "release %d", 4*mib)
	d.want("true", "charge %d", 4*mib)
	a.want("false", "charge 1")
	b.want("false", "charge 1")
	// d waits for the rest.
	fmt.Fprintln(d.in, "charge", 4*mib)
	p := pageAt(t, path)
	for p.Slots[3].Waits == 0 {
		time.Sleep(time.Millisecond)
	}
	a.want("ok", "release %d", 8*mib)
	if got := d.line(); got != "true" {
		t.Errorf("after a wait: %q", got)
	}
	a.want("true", "charge %d", 4*mib)
	d.want("false", "charge 1")
	if waits := p.Slots[3].Waits; p.Totals[0].Waits != waits {
		t.Errorf("%d waits, not %d", p.Totals[0].Waits, waits)
	}
}

// TestPause: a look that was long because others ran must not keep the next one from the dead for
// more than the 100 ms that are promised.
func TestPause(t *testing.T) {
	for took, want := range map[uint64]uint64{0: 0, 50_000: 400_000, 1 << 40: 80_000_000} {
		if got := pause(took); got != want || got+reapAsked > 100_000_000 {
			t.Errorf("after a look of %d ns: %d ns, want %d", took, got, want)
		}
	}
}

// TestFloorOfDead: the floors of processes that have ended leave room for that of the next.
func TestFloorOfDead(t *testing.T) {
	path := newPath(t)
	start(t, path, Uncapped, 64*mib, 8*mib)
	dead := []*worker{start(t, path, Uncapped, 64*mib, 24*mib), start(t, path, Uncapped, 64*mib,
		24*mib)}
	for _, w := range dead {
		w.kill()
	}
	b := start(t, path, Uncapped, 64*mib, 56*mib)
	if !strings.HasSuffix(b.said, "floor true") {
		t.Errorf("%q", b.said)
	}
}

// TestCapsOfFirst: the first member's caps hold, until the group has no member.
func TestCapsOfFirst(t *testing.T) {
	path := newPath(t)
	a := start(t, path, 32*mib, 64*mib, 0)
	b := start(t, path, 16*mib, Uncapped, 0)
	for _, w := range []*worker{a, b} {
		if want := fmt.Sprintf("caps %d %d floor true", 32*mib, 64*mib); !strings.HasSuffix(
			w.said, want) {
			t.Errorf("%q, not %q", w.said, want)
		}
	}
	b.want("true", "charge %d", 40*mib)
	a.kill()
	b.want("true", "charge %d", 24*mib)
	b.want("false", "charge 1")
	b.kill()
	c := start(t, path, Uncapped, 8*mib, 0)
	if want := fmt.Sprintf("slot 0 caps %d %d floor true", Uncapped, 8*mib); c.said != want {
		t.Errorf("%q, not %q", c.said, want)
	}
	c.want("false", "charge %d", 8*mib+1)
	c.want("true", "charge %d", 8*mib)
}

// TestFiles: what is not a file of the user's own, for them alone, is no group.
func TestFiles(t *testing.T) {
	dir := t.TempDir()
	make := func(name string, size int64, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, mode); err != nil {
			t.Fatal(err)
		}
		os.Truncate(path, size)
		os.Chmod(path, mode)
		return path
	}
	link := filepath.Join(dir, "link")
	os.Symlink(make("target", 0, 0o600), link)
	fifo := filepath.Join(dir, "fifo")
	syscall.Mkfifo(fifo, 0o600)
	whole := make("zero", int64(Size), 0o600)
	for path, want := range map[string]syscall.Errno{
		make("readable", 0, 0o640):         syscall.EPERM,
		make("writable", 0, 0o602):         syscall.EPERM,
		make("short", 100, 0o600):          syscall.EINVAL,
		make("long", int64(Size)+1, 0o600): syscall.EINVAL,
		link:                               syscall.ELOOP,
		fifo:                               syscall.EINVAL,
		dir:                                syscall.EISDIR,
		dir + "/no/such":                   syscall.ENOENT,
	} {
		if w := start(t, path, Uncapped, mib, 0); w.said != want.Error() {
			t.Errorf("%s: %q, not %q", filepath.Base(path), w.said, want)
		}
	}
	if os.Getuid() == 0 {
		stranger := make("stranger", 0, 0o600)
		os.Chown(stranger, 65534, 65534)
		if w := start(t, stranger, Uncapped, mib, 0); w.said != syscall.EPERM.Error() {
			t.Errorf("a stranger's: %q", w.said)
		}
	}
	if w := start(t, whole, Uncapped, mib, 0); !strings.HasPrefix(w.said, "slot 0") {
		t.Errorf("zeros: %q", w.said)
	}
	if got, _ := os.Stat(filepath.Join(dir, "target")); got.Size() != 0 {
		t.Error("a link was followed")
	}
}

// TestJoinWaits: a process waits while many others join, for longer than each of them takes.
func TestJoinWaits(t *testing.T) {
	path := newPath(t)
	start(t, path, Uncapped, 64*mib, 0)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if errno := setLock(f.Fd(), joinByte, syscall.F_WRLCK); errno != 0 {
		t.Fatal(syscall.Errno(errno))
	}
	time.AfterFunc(500*time.Millisecond, func() { setLock(f.Fd(), joinByte, syscall.F_UNLCK) })
	if b := start(t, path, Uncapped, 64*mib, 0); !strings.HasPrefix(b.said, "slot 1") {
		t.Errorf("%q", b.said)
	}
}

// TestFull: of 1,024 slots the only free one is found, wherever it is; without one the group is
// full.
func TestFull(t *testing.T) {
	path := newPath(t)
	a := start(t, path, Uncapped, 64*mib, 0)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for slot := uintptr(1); slot < Members; slot++ {
		if errno := setLock(f.Fd(), slot, syscall.F_WRLCK); errno != 0 {
			t.Fatal(syscall.Errno(errno))
		}
	}
	for _, high := range []uint64{1, 500, Members} {
		pageAt(t, path).High = high
		if b := start(t, path, Uncapped, mib, 0); b.said != syscall.EUSERS.Error() {
			t.Errorf("%q", b.said)
		}
		for _, free := range []uintptr{1, 499, Members - 1} {
			setLock(f.Fd(), free, syscall.F_UNLCK)
			b := start(t, path, Uncapped, mib, 0)
			if !strings.HasPrefix(b.said, fmt.Sprint("slot ", free, " ")) {
				t.Errorf("%q, not slot %d", b.said, free)
			}
			b.kill()
			setLock(f.Fd(), free, syscall.F_WRLCK)
			pageAt(t, path).High = high
		}
	}
	a.want("true", "charge %d", mib)
}

// TestOldFile: a file that another version left is made anew once it has no members. A file that is
// no group's stays as it is, whatever its size.
func TestOldFile(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, size int, text string) string {
		path := filepath.Join(dir, name)
		page := make([]byte, size)
		copy(page, text)
		if err := os.WriteFile(path, page, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	old := write("old", 1000, "tagroup\x00")
	f, err := os.OpenFile(old, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if errno := setLock(f.Fd(), 3, syscall.F_WRLCK); errno != 0 {
		t.Fatal(syscall.Errno(errno))
	}
	if w := start(t, old, Uncapped, mib, 0); w.said != syscall.EINVAL.Error() {
		t.Errorf("with a member: %q", w.said)
	}
	f.Close()
	w := start(t, old, Uncapped, mib, 0)
	w.want("true", "charge %d", mib)
	w.want("false", "charge 1")
	data := write("data", int(Size), "data")
	if w := start(t, data, Uncapped, mib, 0); w.said != syscall.EINVAL.Error() {
		t.Errorf("another file: %q", w.said)
	}
	if text, _ := os.ReadFile(data); !strings.HasPrefix(string(text), "data\x00") {
		t.Errorf("another file was changed: %q", text[:16])
	}
}

// TestVersion: a living group of another version is not joined.
func TestVersion(t *testing.T) {
	path := newPath(t)
	start(t, path, Uncapped, mib, 0)
	pageAt(t, path).Version++
	if w := start(t, path, Uncapped, mib, 0); w.said != syscall.EINVAL.Error() {
		t.Errorf("%q", w.said)
	}
}
