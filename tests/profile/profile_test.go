package profile

import (
	"bytes"
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/pprof/profile"

	"tieralloc/internal/testlib"
)

// taken is a profile that a program has left.
type taken struct {
	*profile.Profile
	file    string
	symbols map[string][]elf.Symbol // the functions of each file, by their addresses
	loads   map[string][]elf.ProgHeader
}

// run runs a program with a profile and returns the profile and what the program printed.
func run(t *testing.T, rate string, args ...string) (taken, string) {
	t.Helper()
	return runWith(t, nil, rate, args...)
}

// runWith is run with further settings.
func runWith(t *testing.T, settings []string, rate string, args ...string) (taken, string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "heap.pb")
	res := testlib.Run(t, testlib.Cmd{Args: args, Preload: true,
		Env: append([]string{"TA_PROFILE=" + file, "TA_PROFILE_RATE=" + rate}, settings...)})
	if res.Status != 0 || res.Stderr != "" {
		t.Fatalf("%q ended with %d, standard error %q", args, res.Status, res.Stderr)
	}
	return read(t, file), res.Stdout
}

func read(t *testing.T, file string) taken {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if len(data) > 1<<20 {
		t.Errorf("the profile has %d bytes", len(data))
	}
	p, err := profile.Parse(bytes.NewReader(data))
	if err == nil {
		err = p.CheckValid()
	}
	if err != nil {
		t.Fatal(err)
	}
	return taken{p, file, map[string][]elf.Symbol{},
		map[string][]elf.ProgHeader{}}
}

// comment returns the number that follows a text in the profile's comments.
func (p taken) comment(t *testing.T, text string) (n int) {
	t.Helper()
	for _, c := range p.Comments {
		if _, err := fmt.Sscanf(c, text+" %d", &n); err == nil {
			return n
		}
	}
	t.Fatalf("no comment %q in %q", text, p.Comments)
	return 0
}

// function names the function that a location is in.
func (p taken) function(l *profile.Location) string {
	if l.Mapping == nil {
		return ""
	}
	list, known := p.symbols[l.Mapping.File]
	if !known {
		if f, err := elf.Open(l.Mapping.File); err == nil {
			all, _ := f.Symbols()
			dynamic, _ := f.DynamicSymbols()
			for _, s := range append(all, dynamic...) {
				if elf.ST_TYPE(s.Info) == elf.STT_FUNC && s.Size > 0 {
					list = append(list, s)
				}
			}
			for _, load := range f.Progs {
				p.loads[l.Mapping.File] = append(p.loads[l.Mapping.File], load.ProgHeader)
			}
			f.Close()
		}
		p.symbols[l.Mapping.File] = list
	}
	at := p.linked(l)
	for _, s := range list {
		if at >= s.Value && at < s.Value+s.Size {
			return s.Name
		}
	}
	return ""
}

// linked is the address of a location as its file has it. function has read the file.
func (p taken) linked(l *profile.Location) uint64 {
	offset := l.Address - l.Mapping.Start + l.Mapping.Offset
	for _, h := range p.loads[l.Mapping.File] {
		if h.Type == elf.PT_LOAD && offset-h.Off < h.Memsz && h.Flags&elf.PF_X != 0 {
			return offset - h.Off + h.Vaddr
		}
	}
	return offset
}

// stack names the functions of a sample, the innermost first.
func (p taken) stack(s *profile.Sample) (names []string) {
	for _, l := range s.Location {
		names = append(names, p.function(l))
	}
	return names
}

// value returns the index of a sample type.
func (p taken) value(t *testing.T, name string) int {
	t.Helper()
	i := slices.IndexFunc(p.SampleType, func(v *profile.ValueType) bool { return v.Type == name })
	if i < 0 {
		t.Fatalf("no sample type %s", name)
	}
	return i
}

// sums adds up the values of the samples by their innermost function with a prefix.
func (p taken) sums(t *testing.T, kind, prefix string) map[string]float64 {
	t.Helper()
	i, sums := p.value(t, kind), map[string]float64{}
	for _, s := range p.Sample {
		names := p.stack(s)
		k := slices.IndexFunc(names, func(n string) bool { return strings.HasPrefix(n, prefix) })
		if k >= 0 {
			sums[names[k]] += float64(s.Value[i])
		}
	}
	return sums
}
