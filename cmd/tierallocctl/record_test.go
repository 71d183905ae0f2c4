package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"tieralloc/stats/live"
)

// recordingOf writes a recording and returns its bytes.
func recordingOf(t *testing.T, write func(w *recordingWriter) (end int64)) []byte {
	t.Helper()
	var file bytes.Buffer
	w := newRecordingWriter(&file, time.Unix(1e9, 0), 200*time.Millisecond, []string{"a", "<b>"})
	end := write(w)
	if err := w.close(end, 0); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// readBytes reads a recording from a file with these bytes.
func readBytes(t *testing.T, text []byte) (*recording, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return readRecording(path)
}

func mustRead(t *testing.T, text []byte) *recording {
	t.Helper()
	r, err := readBytes(t, text)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// busyFigures are those of a process that never stands still.
func busyFigures(random *rand.Rand) map[string]uint64 {
	some := func() uint64 { return random.Uint64N(8 << 30) }
	return map[string]uint64{"resident": some(), "committed": some(), "peak": 8 << 30,
		"live": some(), "cached": some(), "fast.charged": some(), "fast.live": some(),
		"fast.node0": some(), "fast.hard": 4 << 30, "fast.moved": some(),
		"normal.charged": some(), "normal.live": some(), "normal.node0": some(),
		"normal.node1": some()}
}

// TestRecordHour: an hour of a process is at most 10 MB where all figures change at each sample,
// and below 1 MB where they change as those of a usual program do.
func TestRecordHour(t *testing.T) {
	const step, hour = 200, 3_600_000
	for _, c := range []struct {
		name string
		most int
		of   func(random *rand.Rand, t int64) map[string]uint64
	}{
		{"busy", 10_000_000, func(r *rand.Rand, _ int64) map[string]uint64 {
			return busyFigures(r)
		}},
		{"usual", 1_000_000, func(r *rand.Rand, t int64) map[string]uint64 {
			live := uint64(1<<30 + 512*math.Sin(float64(t)/60_000)*(1<<20))
			live += r.Uint64N(4 << 20)
			return map[string]uint64{"resident": live + 64<<20, "committed": live + 16<<20,
				"live": live, "cached": 12 << 20, "normal.charged": live + 16<<20,
				"normal.live": live, "normal.node0": live, "peak": 3 << 29}
		}},
		{"idle", 1000, func(*rand.Rand, int64) map[string]uint64 {
			return map[string]uint64{"live": 1 << 30}
		}},
	} {
		random := rand.New(rand.NewPCG(1, 2))
		text := recordingOf(t, func(w *recordingWriter) int64 {
			w.begin(0, 1, recordBegin{Pid: 7, Program: "p"})
			for at := int64(0); at < hour; at += step {
				w.sample(at, 1, c.of(random, at), false)
				w.flush(at)
			}
			return hour
		})
		t.Logf("%s: an hour has %d bytes", c.name, len(text))
		if len(text) > c.most {
			t.Errorf("%s: an hour has %d bytes, more than %d", c.name, len(text), c.most)
		}
		var page bytes.Buffer
		if err := mustRead(t, text).html(&page); err != nil || page.Len() > 1_000_000 {
			t.Errorf("%s: the page of an hour has %d bytes (%v)", c.name, page.Len(), err)
		}
	}
}

// TestFiguresOld: live memory is old where the figures are, and nothing else is.
func TestFiguresOld(t *testing.T) {
	s := &live.Snapshot{Updates: 1}
	s.Heap.BytesLive, s.Heap.BytesCached = 5, 6
	for old, want := range map[bool]string{false: "map[cached:6 live:5 resident:7]",
		true: "map[cached:6 live:5 live_old:5 resident:7]"} {
		if got := fmt.Sprint(figuresOf(s, 7, old)); got != want {
			t.Errorf("%s, not %s", got, want)
		}
	}
}

// TestRecordThins: small changes wait for a second, large ones and events do not; the last values
// of a process are written.
func TestRecordThins(t *testing.T) {
	r := mustRead(t, recordingOf(t, func(w *recordingWriter) int64 {
		w.begin(0, 1, recordBegin{Pid: 7, Program: "p"})
		sample := func(t int64, live, refused uint64, final bool) {
			w.sample(t, 1, map[string]uint64{"live": live, "normal.refused": refused}, final)
		}
		const big = 64 << 20
		sample(0, big, 0, false)
		sample(200, big+1000, 0, false)      // small
		sample(400, big+big/32, 0, false)    // large
		sample(600, big+big/32, 1, false)    // an event
		sample(800, big+big/32+1, 1, false)  // small
		sample(1600, big+big/32+2, 1, false) // a second after the last
		sample(1800, 0, 1, false)
		sample(2000, 7, 1, true)
		w.end(2000, 1, "exited")
		return 2000
	}))
	var got []string
	for _, p := range r.processes[0].series["live"] {
		got = append(got, fmt.Sprint(p.t))
	}
	if s := strings.Join(got, " "); s != "0 400 1600 1800 2000" {
		t.Errorf("written at %s", s)
	}
	if got := r.processes[0].series["normal.refused"]; len(got) != 1 || got[0] != (point{600, 1}) {
		t.Errorf("%v", got)
	}
}

// TestRecordPeaks: a peak between samples is on the curve; one from before the recording is not.
func TestRecordPeaks(t *testing.T) {
	for _, c := range []struct {
		start int64
		want  string
	}{{0, "[{0 90} {1 10} {200 50} {201 0}]"}, {-5, "[{0 10} {200 50} {201 0}]"}} {
		r := mustRead(t, recordingOf(t, func(w *recordingWriter) int64 {
			w.begin(0, 1, recordBegin{Pid: 7, Program: "p", Start: c.start})
			w.sample(0, 1, map[string]uint64{"normal.charged": 10, "normal.peak": 90}, true)
			w.sample(200, 1, map[string]uint64{"normal.charged": 50, "normal.peak": 90}, true)
			w.end(200, 1, "exited")
			return 300
		}))
		if got := fmt.Sprint(r.processes[0].curve("normal.charged")); got != c.want {
			t.Errorf("started at %d: %s", c.start, got)
		}
	}
}

// twoProcesses is a recording with something of everything.
func twoProcesses(t *testing.T) []byte {
	return recordingOf(t, func(w *recordingWriter) int64 {
		w.begin(0, 1, recordBegin{Pid: 7, Program: "first"})
		w.sample(0, 1, map[string]uint64{"live": 1 << 20, "committed": 2 << 20,
			"normal.charged": 2 << 20, "normal.live": 1 << 20, "normal.hard": 4 << 20,
			"normal.node3": 5000, "device1.charged": 3 << 20, "device1.spilled": 9}, false)
		w.begin(500, 2, recordBegin{Pid: 8, Parent: 7, Program: "</script><b>", Start: 400})
		w.sample(500, 2, map[string]uint64{"live": 3 << 20, "committed": 5 << 20,
			"normal.charged": 5 << 20}, false)
		w.sample(600, 1, map[string]uint64{"live": 1 << 20, "normal.hard": 4 << 20,
			"normal.refused": 3, "normal.hard_met": 4, "normal.moved": 1 << 20}, false)
		w.end(700, 2, "killed")
		return 1000
	})
}

// TestRecordShows: the summary has the peaks of all processes together, and the events.
func TestRecordShows(t *testing.T) {
	r := mustRead(t, twoProcesses(t))
	var text bytes.Buffer
	r.summary(&text)
	for _, want := range []string{"a <b>: 1.0s from", "2 processes", "live 4.0 MiB 0.5s",
		"NORMAL 7.0 MiB 0.5s 4 3 1.0 MiB", "device 1 3.0 MiB 0.0s", "still running", "killed"} {
		if squeezed := strings.Join(strings.Fields(text.String()), " "); !strings.Contains(squeezed,
			want) {
			t.Errorf("%q is missing in\n%s", want, text.String())
		}
	}
	var events []string
	for _, e := range r.events() {
		events = append(events, fmt.Sprint(e.T, " ", e.Text))
	}
	for _, want := range []string{"0 first (7) begins", "400 </script><b> (8) begins",
		"600 first (7): 3 requests refused in NORMAL",
		"600 first (7): hard cap of NORMAL met by 4 requests",
		"600 first (7): 1.0 MiB moved out of NORMAL", "700 </script><b> (8) ends: killed"} {
		if !strings.Contains(strings.Join(events, "\n"), want) {
			t.Errorf("%q is missing in %q", want, events)
		}
	}
}

// outside is what may make a browser load something.
var outside = regexp.MustCompile(`(?i)https?://[^\s"'<>)]*|\b(src|href)\s*=|url\(|@import|\bfetch\(` +
	`|XMLHttpRequest|WebSocket|import\(|EventSource|sendBeacon`)

// TestRecordPage: the page refers to nothing outside; the chart library's comment names its home.
// Names of programs are no markup in the page and the picture.
func TestRecordPage(t *testing.T) {
	r := mustRead(t, twoProcesses(t))
	var page, picture bytes.Buffer
	if err := r.html(&page); err != nil {
		t.Fatal(err)
	}
	if err := r.picture(&picture); err != nil {
		t.Fatal(err)
	}
	for _, found := range outside.FindAllString(page.String(), -1) {
		if found != "https://github.com/leeoniya/uPlot" {
			t.Errorf("the page has %s", found)
		}
	}
	for _, found := range outside.FindAllString(picture.String(), -1) {
		if found != "http://www.w3.org/2000/svg" {
			t.Errorf("the picture has %s", found)
		}
	}
	for _, text := range []string{page.String(), picture.String()} {
		if strings.Contains(text, "<b>") || !strings.Contains(text, "NORMAL on node 3") ||
			!strings.Contains(text, "hard cap 4.0 MiB") {
			t.Errorf("%s", text[max(0, len(text)-5000):])
		}
	}
	if n := strings.Count(page.String(), "</script>"); n != 3 {
		t.Errorf("%d scripts end", n)
	}
	if !strings.Contains(page.String(), "Copyright (c) 2022 Leon Sorokin") {
		t.Error("the page lacks the licence of uPlot")
	}
}

// TestRecordCut: a recording that is cut off anywhere can be read up to its last whole sample, once
// it has a line.
func TestRecordCut(t *testing.T) {
	var file bytes.Buffer
	w := newRecordingWriter(&file, time.Now(), time.Second, nil)
	whole := file.Len() // with the first line
	w.begin(0, 1, recordBegin{Pid: 7, Program: "p"})
	for at := int64(0); at < 100_000; at += 1000 {
		w.sample(at, 1, map[string]uint64{"live": uint64(at) << 20}, false)
		w.flush(at)
	}
	text := bytes.Clone(file.Bytes())
	most := 0
	for n := whole; n <= len(text); n++ {
		r := mustRead(t, text[:n])
		if r.whole || r.samples < most {
			t.Fatalf("%d bytes: %d samples after %d", n, r.samples, most)
		}
		most = r.samples
	}
	if most != 99 { // one line a second; the first flush is after the first second
		t.Errorf("%d samples", most)
	}
	var summary bytes.Buffer
	if mustRead(t, text).summary(&summary); !strings.Contains(summary.String(), "cut off") {
		t.Error(summary.String())
	}
}

// zipped compresses text.
func zipped(text string) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	io.WriteString(z, text)
	z.Close()
	return b.Bytes()
}

// TestRecordRefuses: a file that is no recording, or a damaged one, gives one error that names it.
func TestRecordRefuses(t *testing.T) {
	const head = `{"schema":"tieralloc-recording/1"}` + "\n"
	const begin = `{"t":5,"id":1,"begin":{"pid":7,"program":"p","start":2}}` + "\n"
	const id2 = `{"t":5,"id":2,"begin":{"pid":7,"program":"p","start":2}}` + "\n"
	const large = `{"t":5,"id":1,"set":{"live":18446744073709551615}}` + "\n"
	for _, c := range []struct {
		want string
		text []byte
	}{
		{"not a recording of tierallocctl record", []byte("no")},
		{"not a recording of tierallocctl record: EOF", nil},
		{`line 1: the format is "x"; this program reads`, zipped(`{"schema":"x"}` + "\n")},
		{"line 1: it was cut short", zipped(`{"schema`)},
		{"line 2: unexpected end of JSON input", zipped(head + "{\n")},
		{"line 2: no process has the id 1", zipped(head + `{"t":1,"id":1}` + "\n")},
		{"line 2: the time t is -1; expected 0 to", zipped(head + `{"t":-1}` + "\n")},
		{"line 2: the process's id is 2; expected 1", zipped(head + id2)},
		{"line 3: the time t is 1, after 2", zipped(head + begin + `{"t":1,"id":1}` + "\n")},
		{`"live" is 18446744073709551615; expected at most`, zipped(head + begin + large)},
		{"line 2: it has more than 1.0 MiB", zipped(head + strings.Repeat(" ", 2<<20))},
	} {
		_, err := readBytes(t, c.text)
		if err == nil || !strings.Contains(err.Error(), c.want) ||
			!strings.Contains(err.Error(), "/file: ") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v", c.want, err)
		}
	}
}

// TestRecordDamage: any damage leads to a result or an error, and to harmless text.
func TestRecordDamage(t *testing.T) {
	zip, err := gzip.NewReader(bytes.NewReader(twoProcesses(t)))
	if err != nil {
		t.Fatal(err)
	}
	good, err := io.ReadAll(zip)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(3, 4))
	read := 0
	for range 2000 {
		r := &recording{}
		text := zipped(string(damage(random, good, hostileJSON)))
		if err := r.read(bytes.NewReader(text)); err != nil {
			tame(t, complaint(err))
			continue
		}
		read++
		var out bytes.Buffer
		r.summary(&out)
		r.picture(&out)
		tame(t, out.String())
		r.html(io.Discard)
	}
	if read < 20 {
		t.Errorf("%d of the damaged recordings were read", read)
	}
}
