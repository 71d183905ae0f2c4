package testlib

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A tree is a process with its descendants, watched for progress. Progress is measured in processor
// time and not by the clock, because a sound program may take many times as long on a busy machine.
type tree struct {
	leader int
	limit  time.Duration
	start  time.Time
	begun  time.Time     // when the current window began
	mark   time.Duration // what the tree had used by then
	last   time.Duration // what its members had used at the last call
	used   time.Duration
}

func watch(leader int, limit time.Duration) *tree {
	now := time.Now()
	return &tree{leader: leader, limit: limit, start: now, begun: now}
}

// stuck returns the reason not to wait any longer, or "".
func (w *tree) stuck() string {
	sum, ended := time.Duration(0), true
	for _, p := range family(w.leader) {
		sum += p.used
		ended = ended && p.state == "Z"
	}
	why := w.seen(time.Now(), sum)
	if why != "" && ended { // it crashed, say: no hang has to be looked for
		why = "has ended"
	}
	return why
}

// seen notes that the tree's members have used sum of processor time, and says whether the tree is
// stuck. A tree stands still if it uses less than a thousandth of a processor for the time limit.
// It runs away if it has used ten times limit. A tree that polls for ever does neither, and is
// stuck after sixty times limit.
func (w *tree) seen(now time.Time, sum time.Duration) string {
	w.used += max(0, sum-w.last) // the time of an orphan is no longer in sum
	w.last = sum
	if w.used > 10*w.limit {
		return fmt.Sprintf("used %v of processor time", w.used)
	}
	if w.used-w.mark >= w.limit/1000 && w.used > w.mark {
		w.mark, w.begun = w.used, now
	}
	if now.Sub(w.begun) > w.limit {
		return fmt.Sprintf("stood still for %v", w.limit)
	}
	if most := 60 * w.limit; now.Sub(w.start) > most {
		return fmt.Sprintf("has not ended in %v", most)
	}
	return ""
}

// kill ends the whole tree. It stops the members first, until there are no new ones: a process that
// is to stop starts no other.
func (w *tree) kill() {
	stopped := map[int]bool{}
	for more := true; more; {
		more = false
		for _, p := range family(w.leader) {
			if !stopped[p.pid] {
				_ = syscall.Kill(p.pid, syscall.SIGSTOP)
				stopped[p.pid], more = true, true
			}
		}
	}
	for pid := range stopped {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// process is one line of /proc/PID/stat.
type process struct {
	pid, parent int
	state       string
	used        time.Duration // its own processor time and that of the children it has waited for
}

// family returns the process and its descendants.
func family(leader int) []process {
	children := map[int][]process{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range stats {
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if p, ok := readProcess(pid); ok {
			children[p.parent] = append(children[p.parent], p)
		}
	}
	var all []process
	if p, ok := readProcess(leader); ok {
		all = append(all, p)
	}
	for i := 0; i < len(all); i++ {
		all = append(all, children[all[i].pid]...)
	}
	return all
}

func readProcess(pid int) (process, bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return process{}, false
	}
	// The name in parentheses may hold any characters. Blanks separate the fields after it.
	f := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	p := process{pid: pid, state: f[0]}
	p.parent, _ = strconv.Atoi(f[1])
	const tick = time.Second / 100 // of user space, on every Linux that Go runs on
	for _, s := range f[11:15] {
		n, _ := strconv.Atoi(s)
		p.used += time.Duration(n) * tick
	}
	return p, true
}
