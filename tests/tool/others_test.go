package tool

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"tieralloc/internal/testlib"
)

// These tests have users or processes who want the tool to do what they may not do, or more
// than it should.

// inNamespace runs a script of bash, as root of namespaces with a /dev/shm and a /proc of
// their own, in a folder that others can reach. It has the programs ./ctl, ./lib.so and
// those given.
func inNamespace(t *testing.T, script string, programs ...string) testlib.Result {
	t.Helper()
	testlib.Need(t, "unshare", "setpriv", "perl")
	begin := `mount -t tmpfs none /dev/shm && mount -t tmpfs none /mnt || exit 99
		chmod 1777 /dev/shm; cd /mnt; cp "$1" ctl; cp "$2" lib.so; shift 2
		for f; do cp "$f" .; done; chmod -R a+rx .
		as() { setpriv --reuid="$1" --regid="$1" --clear-groups "${@:2}"; }
		kept() { for i in {1..400}; do "$@" >/dev/null 2>&1 && return; sleep 0.05; done;
			echo "not: $*"; exit 98; }
		`
	args := append([]string{"unshare", "-m", "-p", "-f", "--mount-proc", "bash", "-c",
		begin + script, "x", tool(t), testlib.Lib(t)}, programs...)
	r := testlib.Run(t, testlib.Cmd{Args: args, Env: quiet()})
	if r.Status == 99 || strings.Contains(r.Stderr, "unshare") {
		testlib.Lacks(t, "mount namespace to be had: "+r.Stderr)
	}
	return r
}

// TestPruneRace: a user wants root's stats --prune to remove a file that is not theirs. They
// have a dead page of that name in a folder, and let a symbolic link take the folder's
// place between the look and the removal. Their environment names the page, they have it
// mapped, and at last root's own TA_STATS_LIVE names it.
func TestPruneRace(t *testing.T) {
	r := inNamespace(t, `
		mkdir -m 700 secret; echo precious >secret/victim
		TA_STATS_LIVE=/mnt/dead.%p LD_PRELOAD=/mnt/lib.so perl -e 'kill 9, $$'
		mkdir theirs theirs/x; mv dead.* theirs/page; ln -s /mnt/secret theirs/y;
			chown -hR 12345:12345 theirs
		TA_STATS_LIVE=/mnt/theirs/x/victim as 12345 ./swap theirs/page theirs/x theirs/y >started &
		kept grep -q ready started
		for i in {1..60}; do ./ctl stats --prune;
			TA_STATS_LIVE=/mnt/theirs/x/v%e ./ctl stats --prune; done >pruned 2>&1
		kill -9 $!
		cat secret/victim`, testlib.CC(t, "swap.c"))
	if r.Status != 0 || r.Stdout != "precious\n" {
		t.Errorf("%+v", r)
	}
}

// TestPruneOthers: root removes other users' dead pages, users those of their own. A dead
// page is listed with its owner, and a folder or a link with the name of a page is nothing.
func TestPruneOthers(t *testing.T) {
	r := inNamespace(t, `
		export TA_STATS_LIVE=1
		for u in 0 12345 12346; do as $u env LD_PRELOAD=/mnt/lib.so perl -e 'kill 9, $$'; done
		echo precious >victim; ln -s /mnt/victim /dev/shm/tieralloc.4194001;
			mkdir /dev/shm/tieralloc.4194002
		mkfifo /dev/shm/tieralloc.4194003
		./ctl stats; echo ==
		as 12345 ./ctl stats --prune; echo "status $?"; ls /dev/shm | wc -l; echo ==
		./ctl stats --prune; echo "status $?"; ls /dev/shm | wc -l; cat victim`)
	parts := strings.Split(squeeze(r.Stdout), "\n==\n")
	if r.Status != 0 || len(parts) != 3 {
		t.Fatalf("%+v", r)
	}
	says(t, parts[0], " root perl killed ", " 12345 perl killed ", " 12346 perl killed ",
		" ago /dev/shm/tieralloc.",
		"3 pages of processes that have ended; to remove them: tierallocctl stats --prune")
	if strings.Count(parts[1], "removed") != 1 ||
		!strings.Contains(parts[1], "(perl of 12345, killed)\nstatus 0\n5") {
		t.Errorf("a user: %s", parts[1])
	}
	if strings.Count(parts[2], "removed") != 2 ||
		!strings.Contains(parts[2], "status 0\n3\nprecious") {
		t.Errorf("root: %s", parts[2])
	}
}

// TestWhoSeesWhat: pages elsewhere than in the usual place are seen by their user and by
// root, and not by others. A page that says to be another process's is not listed.
func TestWhoSeesWhat(t *testing.T) {
	r := inNamespace(t, `
		mkdir -m 777 pages
		TA_STATS_LIVE=/mnt/pages/%p as 12345 env LD_PRELOAD=/mnt/lib.so perl -e '`+hog+`' >/dev/null &
		kept sh -c '[ -n "$(ls pages)" ]'
		page=$(ls -d pages/*); cp -p $page lie; chown 12346 lie; mkdir -m 777 other
		as 12346 ./swap lie other other >started &
		kept grep -q ready started
		for u in 0 12345 12346; do as $u ./ctl stats | tr -s ' ' |
			grep -c " 12345 perl running .* /mnt/$page$"; as $u ./ctl stats | grep -c /mnt/lie; done
		as 12346 ./ctl stats ${page#pages/}
		kill -9 $!; kill -9 ${page#pages/}`, testlib.CC(t, "swap.c"))
	if r.Stdout != "1\n0\n1\n0\n0\n0\n" || !strings.Contains(r.Stderr,
		"run this as its user, or as root") {
		t.Errorf("%+v", r)
	}
}

// watched tells of files and folders that are opened.
type watched struct{ fd int }

func watchOpens(t *testing.T, paths ...string) watched {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	for _, path := range paths {
		if _, err := unix.InotifyAddWatch(fd, path, unix.IN_OPEN); err != nil {
			t.Fatal(err)
		}
	}
	return watched{fd}
}

// opened says whether one of them was, since the last time.
func (w watched) opened() bool {
	var events [1 << 16]byte
	n, _ := unix.Read(w.fd, events[:])
	return n > 0
}

// TestOthersEnvironment: what a process says in TA_STATS_LIVE is looked for nowhere: no
// folder is searched for what matches it, and neither a pipe nor a file of its choice opened.
func TestOthersEnvironment(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(os.MkdirAll(in("a/b"), 0o700), syscall.Mkfifo(in("fifo"), 0o600),
		os.WriteFile(in("file"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	var pids []string
	for _, value := range []string{in("%e/%e/none.%p"), in("fifo"), in("file")} {
		cmd := start(t, []string{"TA_STATS_LIVE=" + value}, "sh", "-c", "echo ready; sleep 100; :")
		pids = append(pids, strconv.Itoa(cmd.Process.Pid))
	}
	w := watchOpens(t, dir, in("a"), in("a/b"), in("fifo"), in("file"))
	for _, args := range [][]string{{"stats"}, {"stats", "--prune"},
		{"top", "--once", "--interval", "100ms"},
		{"stats", pids[0]}, {"stats", pids[1]}, {"stats", pids[2]}} {
		ctl(t, nil, args...)
		if w.opened() {
			t.Errorf("%q opens what the environment of a process names", args)
		}
	}
}

// TestStatsOpensNoPipe: also one that the user names is only looked at.
func TestStatsOpensNoPipe(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	w := watchOpens(t, fifo)
	ctl(t, nil, "stats", fifo)
	ctl(t, []string{"TA_STATS_LIVE=" + dir + "/%e"}, "stats")
	if w.opened() {
		t.Error("the pipe was opened")
	}
}
