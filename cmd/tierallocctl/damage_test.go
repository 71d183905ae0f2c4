package main

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unsafe"

	"tieralloc/stats"
)

// tame fails the test if a terminal would take part of the text for more than text.
func tame(t *testing.T, text string) {
	t.Helper()
	for i, r := range text {
		if r != '\n' && r != '\t' && !unicode.IsPrint(r) {
			t.Fatalf("%q is written in %q", r, text[max(0, i-40):min(len(text), i+40)])
		}
	}
}

// shownReport is all that is ever written of a report.
func shownReport(text []byte, r *report) string {
	var out bytes.Buffer
	summarize(&out, r)
	describe(&out, r)
	out.Write(escapeJSON(text))
	return out.String()
}

// complaint is what is written of an error.
func complaint(err error) string {
	var out bytes.Buffer
	complain(&out, err)
	return out.String()
}

// Texts that a terminal obeys, as JSON has them and as bytes.
var (
	hostileJSON = []string{`\u001b[2J`, "\u009b2J", `\u009b31m`, "\u202etxt", `\u0007\u000d`,
		"\x7f", `\ud83d`, "\xff\xfe", `\n\t`}
	hostileBytes = []string{"\x1b[2J", "\u009b2J", "\u202etxt", "\a\r", "\x7f", "\xff\xfe", "\n\n",
		"\x1b]0;x\a"}
)

var jsonString = regexp.MustCompile(`"[^"\n]*"`)

// TestHostileStrings: each string of a report, alone, names and values, is shown harmless.
func TestHostileStrings(t *testing.T) {
	good, err := os.ReadFile(fixture)
	if err != nil {
		t.Fatal(err)
	}
	read := 0
	for i, at := range jsonString.FindAllIndex(good, -1) {
		for k := range 2 {
			hostile := hostileJSON[(2*i+k)%len(hostileJSON)]
			text := fmt.Appendf(nil, "%s\"x%s\"%s", good[:at[0]], hostile, good[at[1]:])
			r, err := decodeReport(text)
			if err != nil {
				tame(t, complaint(fmt.Errorf("a\x1b: %w", err)))
				continue
			}
			read++
			tame(t, shownReport(text, r))
		}
	}
	if read < 500 {
		t.Errorf("only %d reports could be read", read)
	}
}

// damage changes some places of a text.
func damage(random *rand.Rand, text []byte, hostile []string) []byte {
	text = bytes.Clone(text)
	for range 1 + random.IntN(6) {
		at := random.IntN(len(text))
		switch random.IntN(6) {
		case 0:
			text[at] ^= 1 << random.IntN(8)
		case 1:
			text[at] = byte(random.IntN(256))
		case 2, 3:
			copy(text[at:], hostile[random.IntN(len(hostile))])
		case 4:
			copy(text[at:], text[random.IntN(len(text)):])
		case 5:
			if random.IntN(8) == 0 {
				text = text[:at+1]
			}
		}
	}
	return text
}

// TestDamagedReports: 5,000 reports that were damaged at random are errors, or are shown,
// and none harms a terminal.
func TestDamagedReports(t *testing.T) {
	good, err := os.ReadFile(fixture)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	strs := jsonString.FindAllIndex(good, -1)
	read := 0
	for range 5000 {
		text := good
		if random.IntN(3) > 0 { // in a string, so that most can be read
			at := strs[random.IntN(len(strs))]
			text = fmt.Appendf(nil, "%s\"%s\"%s", good[:at[0]],
				hostileJSON[random.IntN(len(hostileJSON))], good[at[1]:])
		}
		if random.IntN(3) == 0 {
			text = damage(random, text, hostileJSON)
		}
		r, err := decodeReport(text)
		if err != nil {
			tame(t, complaint(err))
			continue
		}
		read++
		tame(t, shownReport(text, r))
	}
	if read < 1000 {
		t.Errorf("only %d reports could be read", read)
	}
}

// someLivePage is the contents of a live page of no process.
func someLivePage() []byte {
	text := make([]byte, stats.LiveSize)
	head := stats.LiveHeader{Magic: stats.LiveMagic, Version: stats.LiveVersion,
		Size: uint64(stats.LiveSize),
		Pid:  1<<22 + 1, State: stats.LiveRunning, Begun: 1, Published: 1}
	head.ProgramLen = uint64(copy(head.Program[:], "program"))
	copy(text, unsafe.Slice((*byte)(unsafe.Pointer(&head)), unsafe.Sizeof(head)))
	return text
}

// someDamagedHistory is what follows a page: some samples and moves, and some places that changed.
func someDamagedHistory(random *rand.Rand) []byte {
	text := make([]byte, stats.LiveHistorySize)
	memory := (*stats.LiveHistory)(unsafe.Pointer(unsafe.SliceData(text)))
	memory.SamplesBegun, memory.SamplesDone = 70, 70
	memory.MovesBegun, memory.MovesDone = 9, 9
	for i := range memory.Samples {
		s := &memory.Samples[i]
		s.UnixNs, s.Rows = random.Uint64(), 8
		for k := range s.Rows {
			s.Row[k] = stats.HeatRow{Start: random.Uint64()>>4&^0xf + k<<60,
				Pages: 1 + random.Uint32N(1<<20), Heat: uint8(random.Uint32()),
				Tier: uint8(random.IntN(3))}
		}
	}
	for i := range memory.Moves {
		at := random.Uint64() >> 1
		memory.Moves[i] = stats.HeatMove{UnixNs: random.Uint64(), Start: at, End: 2*at + 1,
			To: uint8(random.IntN(4)), Cause: uint8(random.IntN(int(stats.HeatCauses)))}
	}
	for range random.IntN(3) { // most places are of rows that no sample has
		text[random.IntN(40+random.IntN(len(text)-40))] = byte(random.Uint32())
	}
	return text
}

// TestDamagedPages: the same for 1,000 live pages, in all the ways that they are shown.
func TestDamagedPages(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	path := filepath.Join(t.TempDir(), "page\x1b[2J")
	read, drawn := 0, 0
	for range 1000 {
		text := damage(random, someLivePage(), hostileBytes)
		if random.IntN(2) == 0 { // where the names are
			at := random.IntN(int(unsafe.Sizeof(stats.LiveHeader{})))
			copy(text[min(at, len(text)):], hostileBytes[random.IntN(len(hostileBytes))])
		}
		if random.IntN(2) == 0 { // figures of any size
			for at := int(unsafe.Offsetof(stats.LivePage{}.Buffers)); at < len(text); at++ {
				text[at] = byte(random.Uint32())
			}
		}
		history := random.IntN(4) == 0
		if history {
			text = append(text[:min(len(text), int(stats.LiveSize))], someDamagedHistory(random)...)
			size := stats.LiveSize + stats.LiveHistorySize
			copy(text[unsafe.Offsetof(stats.LiveHeader{}.Size):],
				unsafe.Slice((*byte)(unsafe.Pointer(&size)), 8))
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if p, err := heatPage(path); err == nil {
			drawn++
			tame(t, shownHeat(t, p))
		} else {
			tame(t, complaint(err))
		}
		p, err := readPage(path, snapshot)
		if err != nil {
			tame(t, complaint(err))
			continue
		}
		read++
		tame(t, shownPage(t, p))
	}
	if read < 300 {
		t.Errorf("only %d pages could be read", read)
	}
	if drawn < 25 {
		t.Errorf("only %d maps could be drawn", drawn)
	}
}

// shownHeat is all that is ever drawn of a page's heat, without colours.
func shownHeat(t *testing.T, p *page) string {
	t.Helper()
	var out, picture bytes.Buffer
	if err := errors.Join(heatOnce(&out, p, 0, false), heatPicture(&picture, p, 20)); err != nil {
		t.Fatal(err)
	}
	checkSVG(t, picture.String())
	s := heatScreen{page: p, width: 100, height: 30}
	s.View()
	return out.String()
}

// shownPage is all that is ever written of a page.
func shownPage(t *testing.T, p *page) string {
	t.Helper()
	var out bytes.Buffer
	for _, asJSON := range []bool{false, true} {
		if _, err := showPage(&out, p, asJSON); err != nil {
			out.WriteString(complaint(err))
		}
		if err := writeList(&out, []*page{p}, asJSON); err != nil {
			t.Fatal(err)
		}
	}
	list := compareSamples(sample{}, sample{pages: []*page{p}})
	out.WriteString((&frame{list: list}).String())
	out.WriteString(detail(&list[0]))
	return out.String()
}

// TestEscapeJSON: what may stay as it is does.
func TestEscapeJSON(t *testing.T) {
	good, err := os.ReadFile(fixture)
	if err != nil {
		t.Fatal(err)
	}
	if got := escapeJSON(good); !bytes.Equal(got, good) {
		t.Error("a good report is changed")
	}
	want := `"a\u009b\u007f\udb40\udc01é` + "\ufffd\" \n"
	if got := string(escapeJSON([]byte("\"a\u009b\x7f\U000e0001é\xff\"\r\n"))); got != want {
		t.Errorf("%q", got)
	}
	if strings.ContainsRune(complaint(os.ErrNotExist), '?') {
		t.Error("a good message is changed")
	}
}
