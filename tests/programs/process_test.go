package programs

import (
	"path/filepath"
	"strings"
	"testing"

	"tieralloc/internal/testlib"
)

const (
	killed = "a process that a signal ends writes no statistics"
	lost   = "the environment, and with it the library, is taken away"
)

// TestMapped proves that the preload works here at all.
func TestMapped(t *testing.T) {
	r := testlib.Run(t, testlib.Cmd{Args: []string{"cat", "/proc/self/maps"}, Preload: true})
	if name := filepath.Base(testlib.Lib(t)); !strings.Contains(r.Stdout, name) {
		t.Errorf("%s is not in the maps of a preloaded process:\n%s", name, r.Stdout)
	}
}

// processPrograms show what a process is to the system. TestVariants runs them again.
func processPrograms() []program {
	return []program{
		{name: "no thread and no handler", args: []string{"grep", "-E",
			"^(Threads|SigPnd|ShdPnd|SigBlk|SigIgn|SigCgt|CapEff|NoNewPrivs|Seccomp):",
			"/proc/self/status"}},
		script("no file left open",
			`ls /proc/self/fd; bash -c 'ls /proc/$$/fd'; exec python3 -c 'import os; `+
				`print(os.listdir("/proc/self/fd"))'`, "python3"),
		script("exec chain",
			`exec env env nice env sh -c 'exec bash -c "exec printf \"%s\" done"'`),
		script("env -i", `exec env -i A=1 /bin/bash -c 'echo $A; exec /usr/bin/env -i B=2 `+
			`/usr/bin/env'`).unseenFor(lost),
		script("env -i keeps the preload",
			`exec env -i ${LD_PRELOAD:+LD_PRELOAD="$LD_PRELOAD" TA_STATS_FILE="$TA_STATS_FILE"} `+
				`bash -c 'cd /; echo $((6 * 7)) | cat'`),
		script("very long argv", `exec /usr/bin/expr length "$(/bin/echo $(seq 1 20000))"; `),
		script("many arguments",
			`seq 1 300000 | xargs -n 20000 /bin/echo | md5sum; seq 1 4000 | xargs -n 20 -P 4 true`),
		script("large environment",
			`for i in $(seq 1 2000); do printf -v "V$i" %064d "$i"; export "V$i"; done; env | `+
				`grep -c '^V[0-9]*=0'`),
		script("an address space limit",
			`ulimit -v 3000000; exec python3 -c 'print(sum(map(len, [bytearray(1000000) for i in `+
				`range(300)])))'`, "python3"),
		script("closed standard files",
			`true <&- >&- 2>&-; echo $?; bash -c 'echo to nowhere' >&- 2>&-; echo $?; cat <&- `+
				`2>&-; echo $?`),
		script("a daemon",
			`setsid bash -c 'for fd in /proc/self/fd/*; do n=${fd##*/}; eval "exec $n>&-"; done; `+
				`seq 1 10 >out; mv out done' & wait; cat done`, "setsid"),
	}
}

func (p program) unseenFor(why string) program {
	p.unseen = why
	return p
}

func TestProcess(t *testing.T) {
	runAll(t, processPrograms())
}

// TestUnshare needs a process with a single thread: a library that starts
// another makes unshare fail with EINVAL. Some containers forbid it altogether.
func TestUnshare(t *testing.T) {
	namespaces(t)
	runAll(t, []program{
		{name: "user namespace", args: []string{"unshare", "-U", "true"}},
		{name: "as root", args: []string{"unshare", "-Ur", "id", "-u"}},
		{name: "forking", args: []string{"unshare", "-Urpf", "bash", "-c",
			"echo $$; seq 1 3 | sort -r"}},
	})
}

// TestEnds holds the ways in which a process may come to its end.
func TestEnds(t *testing.T) {
	crash := testlib.CC(t, "crash.c")
	end := func(status int, args ...string) program {
		p := program{name: strings.Join(args, " "), args: append([]string{crash}, args...),
			status: status}
		if status > 128 {
			p.unseen = killed
		}
		return p
	}
	runAll(t, []program{
		end(139, "segv"), end(139, "thread"), end(134, "abort"), end(136, "fpe"), end(135, "bus"),
		end(141, "pipe"),
		end(20, "urg"), end(21, "caught"), end(22, "quick"), end(20, "exec", "100"),
		script("a shell reports the signal", `exec 2>/dev/null # bash names process numbers
			`+crash+` segv; echo $?; `+crash+` bus | cat; echo "${PIPESTATUS[@]}"; kill -SEGV $BASHPID`).with("", 139),
		script("killed", `kill -KILL $$`).with("", 137).unseenFor(killed),
	})
}
