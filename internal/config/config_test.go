package config

import (
	"encoding/binary"
	"os"
	"strings"
	"syscall"
	"testing"
	"tieralloc/internal/raw"
	"unsafe"
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

func (e *environ) addr() uintptr { return uintptr(unsafe.Pointer(&e.mem[0])) }

// clobber frees the environment, so that a reference kept into it would fault.
func (e *environ) clobber() { _ = syscall.Munmap(e.mem) }

// outcome is all that Parse says, in ordinary Go.
type outcome struct {
	disable, interpose, strict bool
	log                        uint32
	purgeDelay                 uint64
	statsFile, logFile         string
	lines                      []string
}

func (o outcome) equal(p outcome) bool {
	a, b := strings.Join(o.lines, "\n"), strings.Join(p.lines, "\n")
	o.lines, p.lines = nil, nil
	return a == b && o.fields() == p.fields()
}

func (o outcome) fields() any {
	return [...]any{o.disable, o.interpose, o.strict, o.log, o.purgeDelay, o.statsFile, o.logFile}
}

func (t *Text) String() string { return string(t.buf[:t.n]) }

func textOf(s string) *Text {
	t := new(Text)
	for i := range len(s) {
		t.Byte(s[i])
	}
	return t
}

// run parses the entries with the complaints going to a file of its own.
func run(tb testing.TB, entries []string, secure bool) outcome {
	tb.Helper()
	var fds [2]int
	if err := syscall.Pipe(fds[:]); err != nil {
		tb.Fatal(err)
	}
	env := newEnviron(tb, entries)
	s := new(Settings)
	s.Log = 99 // Parse leaves nothing as it was
	s.StatsFile.Byte('x')
	bad := parse(s, env.addr(), secure, uintptr(fds[1]))
	env.clobber()
	syscall.Close(fds[1])
	lines := readLines(tb, fds[0])
	if int(bad) != len(lines) {
		tb.Errorf("%d bad values and %d lines %q", bad, len(lines), lines)
	}
	return outcome{s.Disable, s.Interpose, s.Strict, s.Log, s.PurgeDelay,
		s.StatsFile.String(), s.LogFile.String(), lines}
}

// readLines reads a pipe to its end and closes it. Every line ends in a newline.
func readLines(tb testing.TB, fd int) []string {
	tb.Helper()
	f := os.NewFile(uintptr(fd), "pipe")
	defer f.Close()
	var all []byte
	buf := make([]byte, 4096)
	for {
		n, err := f.Read(buf)
		all = append(all, buf[:n]...)
		if err != nil {
			break
		}
	}
	if len(all) == 0 {
		return nil
	}
	if all[len(all)-1] != '\n' {
		tb.Errorf("the last line %q has no end", all)
	}
	return strings.Split(strings.TrimSuffix(string(all), "\n"), "\n")
}

func defaults() outcome {
	return outcome{interpose: true, purgeDelay: DefaultPurgeDelay}
}

func TestParse(t *testing.T) {
	with := func(change func(*outcome)) outcome {
		o := defaults()
		change(&o)
		return o
	}
	long := strings.Repeat("d/", PathMax/2)
	for _, c := range []struct {
		env    string // entries separated by spaces
		secure bool
		want   outcome
	}{
		{"", false, defaults()},
		{"TA_DISABLE=1 TA_INTERPOSE=0 TA_STRICT=1", false, with(func(o *outcome) {
			o.disable, o.interpose, o.strict = true, false, true
		})},
		{"TA_DISABLE=1 TA_DISABLE=0", false, with(func(o *outcome) { o.disable = true })},
		{"TA_DISABLE= TA_DISABLE=1", false, defaults()},
		{"TA_DISABLE TA_DISABL=1 TA_DISABLED=1 XTA_DISABLE=1 T TA TA_ = =TA_DISABLE=1", false, defaults()},
		{"TA_LOG=off", false, with(func(o *outcome) { o.log = LogOff })},
		{"TA_LOG=debug", false, with(func(o *outcome) { o.log = LogDebug })},
		{"TA_LOG= TA_PURGE_DELAY= TA_STATS_FILE= TA_LOG_FILE= TA_STRICT=", false, defaults()},
		{"TA_PURGE_DELAY=0", false, with(func(o *outcome) { o.purgeDelay = 0 })},
		{"TA_PURGE_DELAY=00s", false, with(func(o *outcome) { o.purgeDelay = 0 })},
		{"TA_PURGE_DELAY=7ns", false, with(func(o *outcome) { o.purgeDelay = 7 })},
		{"TA_PURGE_DELAY=7us", false, with(func(o *outcome) { o.purgeDelay = 7e3 })},
		{"TA_PURGE_DELAY=0010ms", false, with(func(o *outcome) { o.purgeDelay = 10e6 })},
		{"TA_PURGE_DELAY=3600s", false, with(func(o *outcome) { o.purgeDelay = 3600e9 })},
		{"TA_STATS_FILE=/t/%e.%p%%.json TA_LOG_FILE=%x", false, with(func(o *outcome) {
			o.statsFile, o.logFile = "/t/%e.%p%%.json", "%x"
		})},
		{"TA_STATS_FILE=/t/s TA_LOG_FILE=/t/l TA_STRICT=1", true, with(func(o *outcome) { o.strict = true })},
		{"TA_STATS_FILE=%z", true, defaults()},
		{"TA_STATS_FILE=" + long + " TA_LOG_FILE=" + long, false, with(func(o *outcome) {
			o.statsFile, o.logFile = long, long
		})},
	} {
		entries := strings.Split(c.env, " ")
		if got := run(t, entries, c.secure); !got.equal(c.want) {
			t.Errorf("%.100s:\n got %v\nwant %v", c.env, got, c.want)
		}
		if got := reference(entries, c.secure); !got.equal(c.want) {
			t.Errorf("the reference on %.100s:\n got %v\nwant %v", c.env, got, c.want)
		}
	}
}

func TestParseNoEnvironment(t *testing.T) {
	s := new(Settings)
	if bad := Parse(s, 0, false); bad != 0 || !s.Interpose || s.PurgeDelay != DefaultPurgeDelay {
		t.Errorf("%d bad, %v, %d", bad, s.Interpose, s.PurgeDelay)
	}
}

// TestBadValues holds the messages to their wording, and shows that a bad value
// leaves the default, whatever a good one after it says.
func TestBadValues(t *testing.T) {
	const (
		delay = `": expected a time such as 250ms (units ns, us, ms, s), 0 to 1h; using 250ms`
		file  = `": expected a path of at most 4000 bytes in which % begins %p (process id),` +
			` %e (program name) or %%; using no file`
		logFile = `": expected a path of at most 4000 bytes; using standard error`
	)
	long := strings.Repeat("x", PathMax+1)
	for _, c := range []struct{ entry, want string }{
		{"TA_DISABLE=2", `TA_DISABLE="2": expected 0 or 1; using 0`},
		{"TA_INTERPOSE=no", `TA_INTERPOSE="no": expected 0 or 1; using 1`},
		{"TA_STRICT=01", `TA_STRICT="01": expected 0 or 1; using 0`},
		{"TA_LOG=WARN", `TA_LOG="WARN": expected off, error, warn, info or debug; using off`},
		{"TA_LOG=warning", `TA_LOG="warning": expected off, error, warn, info or debug; using off`},
		{"TA_PURGE_DELAY=10x", `TA_PURGE_DELAY="10x` + delay},
		{"TA_PURGE_DELAY=10", `TA_PURGE_DELAY="10` + delay},
		{"TA_PURGE_DELAY=ms", `TA_PURGE_DELAY="ms` + delay},
		{"TA_PURGE_DELAY=-1s", `TA_PURGE_DELAY="-1s` + delay},
		{"TA_PURGE_DELAY= 1s", `TA_PURGE_DELAY=" 1s` + delay},
		{"TA_PURGE_DELAY=1.5s", `TA_PURGE_DELAY="1.5s` + delay},
		{"TA_PURGE_DELAY=3601s", `TA_PURGE_DELAY="3601s` + delay},
		{"TA_PURGE_DELAY=3600000000001ns", `TA_PURGE_DELAY="3600000000001ns` + delay},
		{"TA_PURGE_DELAY=18446744073709551616ns", `TA_PURGE_DELAY="18446744073709551616ns` + delay},
		{"TA_PURGE_DELAY=1s\n\x1b[0m\x80", `TA_PURGE_DELAY="1s??[0m?` + delay},
		{"TA_STATS_FILE=a%q", `TA_STATS_FILE="a%q` + file},
		{"TA_STATS_FILE=a%", `TA_STATS_FILE="a%` + file},
		{"TA_STATS_FILE=%%%", `TA_STATS_FILE="%%%` + file},
		{"TA_STATS_FILE=" + long, `TA_STATS_FILE="` + long[:shownMax] + `...` + file},
		{"TA_LOG_FILE=" + long, `TA_LOG_FILE="` + long[:shownMax] + `...` + logFile},
	} {
		name, _, _ := strings.Cut(c.entry, "=")
		entries := []string{c.entry, name + "=1"}
		want := defaults()
		want.lines = []string{"tieralloc: " + c.want}
		if got := run(t, entries, false); !got.equal(want) {
			t.Errorf("%.100q:\n got %v\nwant %v", c.entry, got, want)
		}
		if got := reference(entries, false); !got.equal(want) {
			t.Errorf("the reference on %.100q:\n got %v\nwant %v", c.entry, got, want)
		}
	}
}

// TestLongestLine shows that the line for the longest value is complete: a
// raw.Line drops what passes its size.
func TestLongestLine(t *testing.T) {
	for i := uintptr(0); i < varCount; i++ {
		v := &variables[i]
		n := len(`tieralloc: ="...": expected ; using `) + len(v.name) + shownMax + len(v.accepts) + len(v.fallback)
		if room := int(unsafe.Sizeof(raw.Line{})) - 9; n > room {
			t.Errorf("%s: a line of %d bytes, room for %d", v.name, n, room)
		}
	}
}

// TestStandardError shows that Parse complains on descriptor 2, one write a line.
func TestStandardError(t *testing.T) {
	var fds [2]int
	// Each read of a socket of this kind returns what one write sent.
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_SEQPACKET, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fds[0])
	env := newEnviron(t, []string{"TA_LOG=x", "TA_STRICT=1", "TA_DISABLE=x"})
	defer env.clobber()
	saved, err := syscall.Dup(2)
	if err != nil {
		t.Fatal(err)
	}
	s := new(Settings)
	if err := syscall.Dup2(fds[1], 2); err != nil {
		t.Fatal(err)
	}
	bad := Parse(s, env.addr(), false)
	if err := syscall.Dup2(saved, 2); err != nil {
		t.Fatal(err)
	}
	syscall.Close(saved)
	syscall.Close(fds[1])
	var got []string
	buf := make([]byte, 4096)
	for {
		n, err := syscall.Read(fds[0], buf)
		if err != nil || n == 0 {
			break
		}
		got = append(got, string(buf[:n]))
	}
	want := "tieralloc: TA_LOG=\"x\": expected off, error, warn, info or debug; using off\n|" +
		"tieralloc: TA_DISABLE=\"x\": expected 0 or 1; using 0\n"
	if bad != 2 || !s.Strict || strings.Join(got, "|") != want {
		t.Errorf("%d bad, strict %v, %q", bad, s.Strict, got)
	}
}
