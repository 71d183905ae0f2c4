package config

import (
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// environ is a mapping that holds the entries as the kernel lays an environment
// out, so that the code under test meets no Go pointers.
type environ struct {
	mem []byte
}

func newEnviron(tb testing.TB, entries []string) *environ {
	tb.Helper()
	vector := 8 * (len(entries) + 1)
	size := vector
	for _, e := range entries {
		size += len(e) + 1
	}
	mem, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_PRIVATE|syscall.MAP_ANONYMOUS)
	if err != nil {
		tb.Fatal(err)
	}
	at := vector
	for i, e := range entries {
		addr := uintptr(unsafe.Pointer(&mem[at]))
		binary.LittleEndian.PutUint64(mem[8*i:], uint64(addr))
		at += copy(mem[at:], e) + 1
	}
	return &environ{mem}
}

// entry is the address of an entry.
func (e *environ) entry(i int) uintptr {
	return uintptr(binary.LittleEndian.Uint64(e.mem[8*i:]))
}

func (e *environ) addr() uintptr { return uintptr(unsafe.Pointer(&e.mem[0])) }

// clobber frees the environment, so that a reference kept into it would fault.
func (e *environ) clobber() { _ = syscall.Munmap(e.mem) }

// outcome is all that Parse says, in ordinary Go.
type outcome struct {
	disable, interpose, strict    bool
	libnuma, sleep, background    bool
	secure, slowSwap              bool
	secureWarn                    uint32
	log, model                    uint32
	onSoftcap, onHardcap, hint    uint32
	balancing                     uint32
	purgeDelay, migrateBW         uint64
	tiers                         [3]Tier
	statsFile, logFile, statsLive string
	rules                         []plainRule
	cuda                          plainCUDA
	lines                         []string
	_                             struct{} // fields are named
}

// plainCUDA is CUDA without its padding.
type plainCUDA struct {
	enable, event, all, spill, zero, leaks, managed, expandable, async bool
	soft, hard, spillHard, proportion, segment, cacheLimit, bw, lat    uint64
	warm                                                               []Warm
	trace, snapshot                                                    string
}

// plainRule is a Rule with its patterns.
type plainRule struct {
	min, max             uint64
	thread, program, lib string
	site                 string
	hint                 uint32
}

func (o outcome) equal(p outcome) bool {
	// A list without elements is an empty one.
	for _, x := range []*outcome{&o, &p} {
		x.rules = append([]plainRule{}, x.rules...)
		x.lines = append([]string{}, x.lines...)
		x.cuda.warm = append([]Warm{}, x.cuda.warm...)
	}
	return reflect.DeepEqual(o, p)
}

func (t *Text) String() string { return string(t.buf[:t.n]) }

func textOf(s string) *Text {
	t := new(Text)
	for i := range len(s) {
		t.Byte(s[i])
	}
	return t
}

// patternOf is the text of a pattern.
func patternOf(l *RuleList, g Glob) string {
	addr, n := l.Pattern(g)
	return string(unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(&l.text.buf), addr-l.text.Addr())),
		n))
}

// siteOf is the text of a rule's condition on the site.
func siteOf(l *RuleList, r *Rule) string {
	var callers []string
	for _, c := range r.Site {
		if !c.Name.Set() {
			break
		}
		text := patternOf(l, c.Name)
		if c.Offset != 0 {
			text += fmt.Sprintf("+0x%x", c.Offset)
		}
		callers = append(callers, text)
	}
	return strings.Join(callers, "<")
}

// outcomeOf is what s holds.
func outcomeOf(s *Settings) outcome {
	o := outcome{disable: s.Disable, interpose: s.Interpose, strict: s.Strict,
		libnuma: s.UseLibnuma, balancing: s.NumaBalancing,
		sleep: s.ThrottleSleep, background: s.Background, secure: s.Secure,
		secureWarn: s.SecureWarn, log: s.Log, model: s.Model, onSoftcap: s.OnSoftcap,
		onHardcap: s.OnHardcap, slowSwap: s.SlowSwap,
		hint: s.DefaultHint, purgeDelay: s.PurgeDelay, migrateBW: s.MigrateBW,
		statsFile: s.StatsFile.String(), logFile: s.LogFile.String(),
		statsLive: s.StatsLive.String()}
	copy(o.tiers[:], s.Tiers[:])
	c := &s.CUDA
	o.cuda = plainCUDA{enable: c.Enable, event: c.ReuseEvent, all: c.SuballocAll, spill: c.Spill,
		zero: c.Zero, leaks: c.Leaks,
		soft: c.Soft, hard: c.Hard, spillHard: c.SpillHard, proportion: c.Proportion,
		segment: c.SegmentSize, cacheLimit: c.CacheLimit,
		bw: c.BW, lat: c.Lat, warm: c.Warmup[:c.Warmups], trace: s.TraceFile.String(),
		snapshot: s.SnapshotFile.String(),
		managed:  c.Managed, expandable: c.Expandable, async: c.AsyncHeap}
	for _, r := range s.Rules.Rule[:s.Rules.Count] {
		o.rules = append(o.rules, plainRule{r.Min, r.Max, patternOf(&s.Rules, r.Thread),
			patternOf(&s.Rules, r.Program),
			patternOf(&s.Rules, r.Lib), siteOf(&s.Rules, &r), r.Hint})
	}
	return o
}

// run parses the entries with the complaints going to a file of its own.
func run(tb testing.TB, entries []string) outcome {
	tb.Helper()
	// A file and not a pipe, which a thousand lines could fill with nobody reading.
	fd, err := unix.MemfdCreate("complaints", 0)
	if err != nil {
		tb.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), "complaints")
	defer f.Close()
	env := newEnviron(tb, entries)
	s := new(Settings)
	for i := range unsafe.Sizeof(*s) { // Parse leaves nothing as it was
		*(*byte)(unsafe.Add(unsafe.Pointer(s), i)) = 1
	}
	bad := ParseTo(s, env.addr(), uintptr(fd))
	env.clobber()
	text, err := io.ReadAll(io.NewSectionReader(f, 0, 1<<30))
	if err != nil {
		tb.Fatal(err)
	}
	o := outcomeOf(s)
	o.lines = linesOf(tb, string(text))
	if int(bad) != len(o.lines) {
		tb.Errorf("%d bad values and %d lines %q", bad, len(o.lines), o.lines)
	}
	if s.Tiers[3] != (Tier{}) && s.Tiers[3] != (Tier{HugePages: s.Tiers[3].HugePages}) {
		tb.Errorf("the padding is %+v", s.Tiers[3])
	}
	return o
}

// linesOf splits what was written. Every line ends in a newline.
func linesOf(tb testing.TB, text string) []string {
	tb.Helper()
	if text == "" {
		return nil
	}
	if !strings.HasSuffix(text, "\n") {
		tb.Errorf("the last line of %q has no end", text)
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

func defaults() outcome {
	return outcome{interpose: true, purgeDelay: DefaultPurgeDelay, libnuma: true, hint: HintWarm,
		migrateBW: 1 << 30,
		cuda: plainCUDA{enable: true, expandable: true, segment: 20 << 20,
			cacheLimit: 1 << 63}}
}

// with is the defaults and a change.
func with(change func(*outcome)) outcome {
	o := defaults()
	change(&o)
	return o
}
