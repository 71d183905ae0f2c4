package tool

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"tieralloc/internal/raw"
	"tieralloc/internal/testlib"
	"tieralloc/stats"
)

// atRest says that it is ready, with figures that no longer change.
const atRest = `my $x = "a" x 30_000_000; for (1..9) { my @y = map { "b" x 99 } 1..9999 }
	select undef, undef, undef, 0.3; my @z = map { "c" x 99 } 1..9999;
	$| = 1; print "ready\n"; sleep 999`

// metric returns the value of the metric of a process, or "".
func metric(text, name string, pid int, labels ...string) string {
	for line := range strings.Lines(text) {
		rest, ok := strings.CutPrefix(line, name+"{")
		found := ok && strings.Contains(rest, fmt.Sprintf(`pid="%d"`, pid))
		for _, l := range labels {
			found = found && strings.Contains(rest, l)
		}
		if found {
			return strings.TrimSpace(line[strings.LastIndexByte(line, ' '):])
		}
	}
	return ""
}

// TestExportProcess: the metrics of a process are the figures of its report, and vanish with it.
func TestExportProcess(t *testing.T) {
	testlib.Need(t, "perl")
	cmd := start(t, preloaded(t, "TA_STATS_LIVE="+t.TempDir()+"/%p", "TA_NORMAL_HARD=512M"), "perl",
		"-e", atRest)
	pid := cmd.Process.Pid
	var r report
	var export testlib.Result
	testlib.Wait(t, "the figures are at rest", cmd.Process, func() bool {
		shown := ctl(t, nil, "stats", "--json", strconv.Itoa(pid))
		export = ctl(t, nil, "export")
		return shown.Status == 0 && json.Unmarshal([]byte(shown.Stdout), &r) == nil &&
			same(metric(export.Stdout, "tieralloc_tier_charged_bytes", pid), r.Tiers["normal"].BytesCurrent)
	})
	if r.Tiers["normal"].BytesCurrent < 30_000_000 {
		t.Errorf("%+v", r)
	}
	for name, want := range map[string]int64{"malloc": r.Calls["malloc"], "free": r.Calls["free"]} {
		got := metric(export.Stdout, "tieralloc_calls_total", pid, `program="perl"`,
			`function="`+name+`"`)
		if !same(got, want) {
			t.Errorf("%s: %s, not %d", name, got, want)
		}
	}
	if got := metric(export.Stdout, "tieralloc_tier_hard_cap_bytes", pid); !same(got, 512<<20) {
		t.Errorf("the cap is %s", got)
	}
	cmd.Process.Kill()
	cmd.Wait()
	if r := ctl(t, nil, "export"); r.Status != 0 || strings.Contains(r.Stdout,
		fmt.Sprintf(`pid="%d"`, pid)) {
		t.Errorf("after the end: %+v", r)
	}
}

func same(text string, n int64) bool {
	v, err := strconv.ParseFloat(text, 64)
	return err == nil && v == float64(n)
}

// TestExportListen: the server answers in both formats, shows a page, and ends with SIGTERM.
func TestExportListen(t *testing.T) {
	testlib.Need(t, "perl")
	place := "TA_STATS_LIVE=" + t.TempDir() + "/%p"
	perl := start(t, preloaded(t, place), "perl", "-e", atRest)
	cmd := exec.Command(tool(t), "export", "--listen", "127.0.0.1:0")
	cmd.Env = append(os.Environ(), quiet()...)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	line, _ := bufio.NewReader(stderr).ReadString('\n')
	_, url, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "tierallocctl: metrics at ")
	if !ok {
		t.Fatalf("%q", line)
	}
	get := func(url, accept string) (kind, text string, status int) {
		request, _ := http.NewRequest("GET", url, nil)
		request.Header.Set("Accept", accept)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response.Header.Get("Content-Type"), string(body), response.StatusCode
	}
	kind, text, _ := get(url, "application/openmetrics-text; version=1.0.0")
	if !strings.HasPrefix(kind, "application/openmetrics-text") ||
		!strings.HasSuffix(text, "\n# EOF\n") ||
		metric(text, "tieralloc_heap_live_bytes", perl.Process.Pid) == "" {
		t.Errorf("%s\n%s", kind, text)
	}
	kind, text, _ = get(url, "*/*")
	if !strings.HasPrefix(kind, "text/plain") || strings.Contains(text, "# EOF") ||
		metric(text, "tieralloc_heap_live_bytes", perl.Process.Pid) == "" {
		t.Errorf("%s\n%s", kind, text)
	}
	root := strings.TrimSuffix(url, "metrics")
	_, text, _ = get(root, "text/html")
	says(t, text, `<a href="/metrics">`, fmt.Sprintf("<td>%d</td><td>perl</td>", perl.Process.Pid))
	if _, _, status := get(root+"none", ""); status != http.StatusNotFound {
		t.Errorf("/none: %d", status)
	}
	address := strings.TrimSuffix(strings.TrimPrefix(root, "http://"), "/")
	if r := ctl(t, nil, "export", "--listen", address); r.Status != 1 ||
		!strings.Contains(r.Stderr, "--listen "+address+": ") ||
		!strings.Contains(r.Stderr, "address already in use") {
		t.Errorf("a second server: %+v", r)
	}
	cmd.Process.Signal(syscall.SIGTERM)
	if err := testlib.End(cmd); err != nil {
		t.Errorf("SIGTERM: %v", err)
	}
}

// TestExportRefuses: each wrong option is named, with its value and what is accepted.
func TestExportRefuses(t *testing.T) {
	for _, c := range []struct{ option, value, accepted string }{
		{"--listen", "9464", "HOST:PORT or :PORT"}, {"--listen", ":none", "from 0 to 65535"},
		{"--listen", "", ":9464 or 127.0.0.1:9464"}, {"--textfile", "a.txt", "ends in .prom"},
		{"--textfile", "", "ends in .prom"},
	} {
		r := ctl(t, nil, "export", c.option, c.value)
		if r.Status != 2 || r.Stdout != "" || !strings.Contains(r.Stderr,
			c.option+" "+c.value+": expected ") || !strings.Contains(r.Stderr, c.accepted) {
			t.Errorf("%+v: %+v", c, r)
		}
	}
	if r := ctl(t, nil, "export", "--listen", ":0", "--textfile", "a.prom"); r.Status != 2 ||
		!strings.Contains(r.Stderr, "--listen and --textfile") {
		t.Errorf("both: %+v", r)
	}
}

// TestExportTextfile: without processes as well the file has metrics.
func TestExportTextfile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tieralloc.prom")
	if r := ctl(t, nil, "export", "--textfile", path); r.Status != 0 || r.Stdout != "" {
		t.Errorf("%+v", r)
	}
	text, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(text), "\ntieralloc_export_processes ") {
		t.Errorf("%v\n%s", err, text)
	}
}

// TestExportOthers: a user sees the own processes, root those of all, also where a third user left
// pages that are damaged, or that say to be of another's process.
func TestExportOthers(t *testing.T) {
	var head stats.LiveHeader
	forge := fmt.Sprintf(`open F, "+<", $ARGV[0]; seek F, %d, 0; print F pack "Q", $ARGV[1];
		seek F, %d, 0; print F pack "Q", 0;`, unsafe.Offsetof(head.Pid), unsafe.Offsetof(head.StartTicks))
	r := inNamespace(t, `
		export TA_STATS_LIVE=1
		for u in 12345 12346 0; do
			as $u env LD_PRELOAD=/mnt/lib.so perl -e '`+atRest+`' >started.$u & kept grep -q ready started.$u
		done
		sleep 999 & lone=$!
		theirs=$(find /dev/shm -user 12346); cp $theirs forged
		perl -e '`+forge+`' forged $lone; chown 12346 forged; chmod 644 forged
		mv forged /dev/shm/tieralloc.$lone
		head -c 5000 $theirs >/dev/shm/tieralloc.1; chown 12346 /dev/shm/tieralloc.1
		for u in 0 12345; do as $u ./ctl export >out.$u 2>err.$u; echo "status $?"
			grep -c ^tieralloc_heap_live_bytes out.$u; grep -c "pid=.$lone" out.$u
			cat err.$u; done
		as 12345 ./ctl stats | grep -c "^ *$lone .*running"
		kill -9 $(jobs -p)`)
	damaged := fmt.Sprintf("tierallocctl: /dev/shm/tieralloc.1: damaged live page: 5000 bytes, not "+
		"%d\n", raw.RoundUp(unsafe.Sizeof(stats.LivePage{}), raw.Page))
	if r.Stdout != "status 0\n3\n0\n"+damaged+"status 0\n1\n0\n"+damaged+"1\n" {
		t.Errorf("%+v", r)
	}
}
