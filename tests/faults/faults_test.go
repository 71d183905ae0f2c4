package faults

import (
	"encoding/json"
	"flag"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"tieralloc/internal/config"
	"tieralloc/internal/testlib"
)

// Every call of every kind, which takes many minutes:
//
//	go test ./tests/faults/ -run TestRefused -timeout 2h -every
var (
	every = flag.Bool("every", false, "refuse every call of every kind in turn, in each way")
	seed  = flag.String("seed", "1", "seed of the workload")
)

// few is how many calls of a kind are refused in turn where not every one is.
const few = 5

// What the library asks of the kernel, and how that may be refused.
var (
	errsOfMaps = []syscall.Errno{syscall.ENOMEM}
	kinds      = []*kind{
		{name: "mmap", calls: []uint64{syscall.SYS_MMAP},
			errnos: []syscall.Errno{syscall.ENOMEM, syscall.EAGAIN}},
		{name: "munmap", calls: []uint64{syscall.SYS_MUNMAP}, errnos: errsOfMaps},
		{name: "mremap", calls: []uint64{syscall.SYS_MREMAP},
			errnos: []syscall.Errno{syscall.ENOMEM, syscall.EINVAL, syscall.EAGAIN}},
		{name: "mremap, late", calls: []uint64{syscall.SYS_MREMAP}, errnos: errsOfMaps, late: true},
		{name: "madvise", calls: []uint64{syscall.SYS_MADVISE},
			errnos: []syscall.Errno{syscall.EINVAL, syscall.ENOMEM, syscall.EAGAIN}},
		{name: "getrandom", calls: []uint64{318},
			errnos: []syscall.Errno{syscall.EAGAIN, syscall.ENOSYS}},
		{name: "mbind", never: oneNode(), calls: []uint64{syscall.SYS_MBIND},
			errnos: []syscall.Errno{syscall.EPERM, syscall.ENOMEM, syscall.EINVAL}},
		{name: "move_pages", never: oneNode(), calls: []uint64{279},
			errnos: []syscall.Errno{syscall.EPERM, syscall.ENOMEM}},
		{name: "futex", calls: []uint64{syscall.SYS_FUTEX},
			errnos: []syscall.Errno{syscall.EINTR, syscall.EAGAIN, syscall.ENOSYS},
			of:     func(args *[6]uint64) bool { return args[1]&127 == 0 }}, // FUTEX_WAIT
		{name: "the rest", calls: []uint64{syscall.SYS_PRLIMIT64, syscall.SYS_PRCTL,
			syscall.SYS_GET_MEMPOLICY,
			syscall.SYS_SCHED_GETAFFINITY, syscall.SYS_OPENAT, syscall.SYS_READ, syscall.SYS_FSTAT,
			syscall.SYS_CLOSE,
			syscall.SYS_GETDENTS64, syscall.SYS_SCHED_YIELD, syscall.SYS_CLOCK_NANOSLEEP},
			errnos: []syscall.Errno{syscall.EPERM, syscall.EINVAL, syscall.EMFILE}},
	}
)

// Configurations in which the heap goes different ways.
var configs = []struct {
	name string
	env  []string
}{
	{"plain", nil},
	{"no delay", []string{"TA_PURGE_DELAY=0ms"}},
	{"tiers", []string{"TA_USE_LIBNUMA=0", "TA_PURGE_DELAY=0ms", "TA_NORMAL_SOFT=20M",
		"TA_NORMAL_HARD=40M", "TA_FAST_HARD=16M",
		"TA_SLOW_HARD=64M", "TA_ON_SOFTCAP=demote", "TA_RULES=size<=4K:hot;size>=1M:cold"}},
	{"huge pages", []string{"TA_HUGEPAGES=thp", "TA_PURGE_DELAY=0ms"}},
	{"hardened", []string{"TA_SECURE=1", "TA_PURGE_DELAY=0ms"}},
	{"throttled", []string{"TA_THROTTLE=sleep", "TA_NORMAL_BW=4G", "TA_NORMAL_LAT=1us",
		"TA_PURGE_DELAY=0ms"}},
}

// quiet is an environment that no caller's settings reach. glibc frees what belongs to a thread
// when it is joined, so that each run ends with the same blocks.
var quiet = func() []string {
	env := []string{"LC_ALL=C", "LD_BIND_NOW=", "GLIBC_TUNABLES=glibc.pthread.stack_cache_size=0"}
	for i := uintptr(0); ; i++ {
		name, _, _, ok := config.Describe(i)
		if !ok {
			return env
		}
		env = append(env, name+"=")
	}
}()

// ending is what a run of the workload says at its end.
type ending struct {
	refusals, rss, size int64 // RssAnon and VmSize in KiB
	Heap                struct {
		BlocksLive     int64 `json:"blocks_live"`
		BytesLive      int64 `json:"bytes_live"`
		BytesCommitted int64 `json:"bytes_committed"`
		BytesMapped    int64 `json:"bytes_mapped"`
	}
	Tiers map[string]struct {
		BytesCurrent int64 `json:"bytes_current"`
	}
}

func parse(stdout string) (e ending, err error) {
	_, rest, ok := strings.Cut(stdout, "end ")
	line, text, _ := strings.Cut(rest, "\n")
	if !ok {
		return e, fmt.Errorf("no end in %q", stdout)
	}
	if _, err = fmt.Sscan(line, &e.refusals, &e.rss, &e.size); err == nil {
		err = json.Unmarshal([]byte(text), &e)
	}
	return e, err
}

func (e *ending) charged() (sum int64) {
	for _, t := range e.Tiers {
		sum += t.BytesCurrent
	}
	return sum
}

// wrong is what is not as it should be after a run with a refusal, or "". Before its main
// begins a program may end as the loader does that gets no memory.
func wrong(o outcome, good *ending) string {
	if o.status == 127 && !strings.HasPrefix(o.stdout, "main\n") &&
		strings.Contains(o.stderr, "memory") {
		return ""
	}
	if o.status == 3 { // no memory for the report
		return ""
	}
	if o.status != 0 || o.stderr != "" {
		return fmt.Sprintf("status %d, stderr: %s", o.status, o.stderr)
	}
	e, err := parse(o.stdout)
	h, g := &e.Heap, &good.Heap
	switch {
	case err != nil:
		return err.Error()
	case h.BlocksLive != g.BlocksLive || h.BytesLive != g.BytesLive:
		return fmt.Sprintf("%d blocks of %d bytes are live, not %d of %d", h.BlocksLive,
			h.BytesLive, g.BlocksLive, g.BytesLive)
	case e.charged() != h.BytesCommitted:
		return fmt.Sprintf("%d bytes charged, %d committed", e.charged(), h.BytesCommitted)
	case e.rss<<10-h.BytesCommitted > good.rss<<10-g.BytesCommitted+uncounted:
		return fmt.Sprintf("%d KiB resident, %d bytes committed; without a refusal %d and %d",
			e.rss, h.BytesCommitted, good.rss, g.BytesCommitted)
	}
	return ""
}

// uncounted is by how much memory that the heap holds no blocks in may differ from run to run:
// descriptors, stacks.
const uncounted = 1 << 20

// oneNode reports whether the machine has one node of memory, or does not tell.
func oneNode() bool {
	nodes, _ := filepath.Glob("/sys/devices/system/node/node[0-9]*")
	return len(nodes) < 2
}

// TestRefused refuses calls of each kind, one alone and all from one on, in each
// configuration: of mmap without settings each, of the others a few; with -every each, with
// each of its errors.
func TestRefused(t *testing.T) {
	program := testlib.CC(t, "work.c", "-O2", "-ldl")
	t.Cleanup(func() { // when the parallel parts have ended
		for _, k := range kinds {
			if k.seen.Load() == k.never && !t.Failed() {
				t.Errorf("%s: calls were seen: %v", k.name, k.seen.Load())
			}
		}
	})
	for _, c := range configs {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			env := append(append([]string{}, quiet...), c.env...)
			first, good := unrefused(t, env, program, *seed)
			for i, k := range kinds {
				all := *every || i == 0 && c.env == nil
				t.Run(k.name, func(t *testing.T) {
					for _, on := range []bool{false, true} {
						k.refuseOf(t, &first, &good, env, on, all, program, *seed)
					}
				})
			}
		})
	}
}

// unrefused runs a program of which no call is refused.
func unrefused(t *testing.T, env []string, argv ...string) (outcome, ending) {
	o := trace(t, fault{}, env, argv...)
	e, err := parse(o.stdout)
	if err != nil || o.status != 0 || o.stderr != "" {
		t.Fatalf("without a refusal: status %d, %v, %s", o.status, err, o.stderr)
	}
	return o, e
}

// refuse refuses calls of a kind that a program makes, one in each run, or with on set all from
// one on: with all set each call, and a few else. It returns how many.
func (k *kind) refuse(t *testing.T, env []string, on, all bool, argv ...string) (pairs int) {
	first, good := unrefused(t, env, argv...)
	return k.refuseOf(t, &first, &good, env, on, all, argv...)
}

// refuseOf is refuse where the outcome and the ending without a refusal are known.
func (k *kind) refuseOf(t *testing.T, first *outcome, good *ending, env []string, on, all bool,
	argv ...string) (pairs int) {
	calls := first.seen[k]
	if calls == 0 {
		return 0 // not with these settings
	}
	k.seen.Store(true)
	step, errnos := 1, k.errnos
	if !all {
		step = (calls + few - 1) / few
	}
	if !*every {
		errnos = errnos[:1]
	}
	for _, errno := range errnos {
		for n := 1; all || n <= calls; n += step {
			f := fault{kind: k, errno: errno, n: n, on: on}
			o := trace(t, f, env, argv...)
			if why := wrong(o, good); why != "" {
				t.Errorf("%v: %s", f, why)
			}
			if o.seen[k] < n {
				break
			}
			pairs++
		}
	}
	t.Logf("%d calls without a refusal, %d refused, with all that follow: %v", calls, pairs, on)
	return pairs
}
