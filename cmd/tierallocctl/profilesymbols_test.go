package main

import (
	"bytes"
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"
)

// cProgram calls malloc in an inlined function of a function with a name of C++. With an argument
// it prints where malloc returned to, and its mappings.
const cProgram = `#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__attribute__((noinline)) void *take(unsigned n, void **from) {
	*from = (char *)__builtin_return_address(0) - 1;
	return malloc(n);
}
static inline __attribute__((always_inline)) char *inner(unsigned n, void **from) {
	char *p = take(n, from);
	p[0] = 1;
	return p;
}
__attribute__((noinline)) char *outer(unsigned n, void **from) __asm__("_ZN6parrot5outerEjPPv");
__attribute__((noinline)) char *outer(unsigned n, void **from) {
	char *p = inner(n, from);
	p[1] = 2;
	return p;
}
int main(void) {
	void *from;
	char line[4096], *p = outer(100, &from);
	printf("%p\n", from);
	FILE *maps = fopen("/proc/self/maps", "r");
	while (fgets(line, sizeof line, maps))
		fputs(line, stdout);
	return p[2];
}
`

const cBuildID = "0123456789abcdef"

// compiled compiles the program.
func compiled(t *testing.T, flags ...string) string {
	t.Helper()
	return compiledFrom(t, "parrot.c", cProgram, flags...)
}

func compiledFrom(t *testing.T, name, text string, flags ...string) string {
	t.Helper()
	dir := t.TempDir()
	source, program := filepath.Join(dir, name), filepath.Join(dir, "parrot")
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	command(t, "gcc", append([]string{"-O2", "-Wl,--build-id=0x" + cBuildID, "-o", program, source},
		flags...)...)
	return program
}

func command(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).Output()
	if err != nil {
		t.Fatalf("%s %q: %v", name, args, err)
	}
	return string(out)
}

// profileOfProgram runs the program, and returns a profile with the call of malloc and its mapping.
func profileOfProgram(t *testing.T, program string) *profile.Profile {
	t.Helper()
	out, err := exec.Command(program).Output()
	if _, exited := err.(*exec.ExitError); err != nil && !exited { // the status is arbitrary
		t.Fatal(err)
	}
	first, maps, _ := strings.Cut(string(out), "\n")
	p := madeProfile()
	at := hexOf(t, strings.TrimPrefix(first, "0x"))
	for line := range strings.Lines(maps) {
		fields := strings.Fields(line)
		start, end, _ := strings.Cut(fields[0], "-")
		m := &profile.Mapping{ID: 1, Start: hexOf(t, start), Limit: hexOf(t, end),
			Offset: hexOf(t, fields[2]), File: program, BuildID: cBuildID}
		if m.Start <= at && at < m.Limit {
			p.Mapping = append(p.Mapping, m)
		}
	}
	p.Location = []*profile.Location{{ID: 1, Mapping: p.Mapping[0], Address: at}}
	p.Sample = []*profile.Sample{{Location: p.Location,
		Value: []int64{1, 100, 1, 100, 100, 0, 0, 1}}}
	return p
}

func hexOf(t *testing.T, text string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(text, 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// named symbolizes a profile, and writes the stack of its first sample.
func named(p *profile.Profile, debug string, jit *perfMap) (stack string, unusable []error) {
	s := &symbolizer{profile: p, debug: debug}
	unusable = s.run(jit)
	var words []string
	for _, f := range frames(p.Sample[0]) {
		if f.file != "" {
			f.name += " " + filepath.Base(f.where())
		}
		words = append(words, f.name)
	}
	return strings.Join(words, ", "), unusable
}

const inlinedStack = "inner parrot.c:10, parrot::outer parrot.c:16"

// TestSymbolsOfProgram: the real return address of a call in an inlined function, by each format of
// debug information, in the file or apart from it, and by symbol tables alone.
func TestSymbolsOfProgram(t *testing.T) {
	for _, flags := range [][]string{{"-gdwarf-4"}, {"-gdwarf-5"}, {"-g", "-gz=zlib"},
		{"-g", "-no-pie"}, {"-g", "-flto"}, {"-gdwarf-5", "-gdwarf64"}} {
		program := compiled(t, flags...)
		p := profileOfProgram(t, program)
		if got, bad := named(p, "/nowhere", nil); got != inlinedStack || len(bad) > 0 {
			t.Errorf("%q: %s %v", flags, got, bad)
		}
		if m := p.Mapping[0]; !m.HasFunctions || !m.HasFilenames || !m.HasLineNumbers ||
			!m.HasInlineFrames || p.CheckValid() != nil {
			t.Errorf("%q: %+v", flags, m)
		}
		if fn := p.Function[1]; fn.SystemName != "_ZN6parrot5outerEjPPv" || fn.StartLine != 15 {
			t.Errorf("%q: %+v", flags, fn)
		}
	}
}

// TestQualifiedName: a destructor that was only inlined has no name for the linker. Its class names
// it.
func TestQualifiedName(t *testing.T) {
	if _, err := exec.LookPath("g++"); err != nil {
		t.Skip("no g++")
	}
	const around = `namespace parrot {
template <class T> struct cage {
	void **from;
	~cage() {
		T *p = (T *)take(8, from);
		p[0] = 1;
	}
};
}
__attribute__((noinline)) char *outer(unsigned, void **from) {
	static char text[3];
	parrot::cage<char> c{from};
	return text;
}
int main(`
	first, rest, _ := strings.Cut(cProgram, "static inline")
	_, rest, _ = strings.Cut(rest, "int main(")
	program := compiledFrom(t, "parrot.cc", first+around+rest, "-g")
	got, bad := named(profileOfProgram(t, program), "/nowhere", nil)
	if !strings.HasPrefix(got, "parrot::cage<char>::~cage parrot.cc:13, outer ") || len(bad) > 0 {
		t.Error(got, bad)
	}
}

func TestSymbolsWithoutDebugInformation(t *testing.T) {
	program := compiled(t, "-g", "-rdynamic")
	debug := t.TempDir()
	apart := filepath.Join(debug, cBuildID[:2], cBuildID[2:]+".debug")
	if err := os.Mkdir(filepath.Dir(apart), 0o700); err != nil {
		t.Fatal(err)
	}
	command(t, "objcopy", "--only-keep-debug", program, apart)
	for _, c := range []struct{ strip, debug, want string }{
		{"--strip-debug", "/nowhere", "parrot::outer"},
		{"--strip-all", "/nowhere", "parrot::outer"}, // .dynsym
		{"--strip-all", debug, inlinedStack},
	} {
		command(t, "strip", c.strip, program)
		p := profileOfProgram(t, program)
		if got, bad := named(p, c.debug, nil); got != c.want || len(bad) > 0 {
			t.Errorf("%v: %s %v", c, got, bad)
		}
	}
}

// TestSymbolsOfOtherFile: a file that was replaced is not used, and is named once. A function
// without a name is shown by its place in the file.
func TestSymbolsOfOtherFile(t *testing.T) {
	program := compiled(t, "-g")
	p := profileOfProgram(t, program)
	m := p.Mapping[0]
	second := *m
	second.ID, second.Start, second.Limit = 2, m.Limit, m.Limit+4096
	p.Mapping = append(p.Mapping, &second)
	p.Location = append(p.Location, &profile.Location{ID: 2, Mapping: &second,
		Address: second.Start})
	m.BuildID, second.BuildID = "feed", "feed"
	path := saveProfile(t, "p.pb", p)
	status, out, stderr := ctlProfile(path)
	want := fmt.Sprintf("tierallocctl: %s: no names from this file: it was replaced: its build id "+
		"is %s, the profile's feed\n", program, cBuildID)
	place := fmt.Sprintf("parrot+%#x\n", p.Location[0].Address-m.Start+m.Offset)
	if status != 0 || stderr != want || !strings.HasSuffix(out, place) {
		t.Errorf("%d\n%s%s%s", status, stderr, want, out)
	}
	m.BuildID = ""
	if got, _ := named(p, "/nowhere", nil); got != inlinedStack {
		t.Error("a mapping without a build id: " + got)
	}
	for _, file := range []string{"/nowhere/lib.so",
		filepath.Join(filepath.Dir(program), "parrot.c")} {
		p := profileOfProgram(t, program)
		p.Mapping[0].File = file
		if _, bad := named(p, "/nowhere", nil); len(bad) != 1 ||
			!strings.HasPrefix(bad[0].Error(), file+": no names from this file: ") {
			t.Error(bad)
		}
	}
}

// TestSymbolTable: the first and the last byte of each function have its name.
func TestSymbolTable(t *testing.T) {
	program := compiled(t)
	file, err := elf.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	symbols, err := file.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	code, err := openCode(program, cBuildID, "/nowhere")
	if err != nil {
		t.Fatal(err)
	}
	defer code.close()
	tested := 0
	for _, s := range symbols {
		if elf.ST_TYPE(s.Info) != elf.STT_FUNC || s.Section == elf.SHN_UNDEF || s.Size == 0 {
			continue
		}
		tested++
		last := s.Value + s.Size - 1
		found, err := code.lookup([]uint64{s.Value - 1, s.Value, last, last + 1<<40})
		if err != nil || len(found[s.Value]) != 1 || found[s.Value][0].name != s.Name ||
			found[last][0].name != s.Name || found[last+1<<40] != nil {
			t.Errorf("%s: %v %v", s.Name, found, err)
		}
	}
	if tested < 4 {
		t.Error("functions:", tested)
	}
}

// TestSymbolsDamaged: no damage to a program's headers, symbols or debug information stops the
// tool.
func TestSymbolsDamaged(t *testing.T) {
	program := compiled(t, "-g")
	p := profileOfProgram(t, program)
	p.Mapping[0].BuildID = ""
	whole, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	try := func(data []byte) {
		if err := os.WriteFile(program, data, 0o700); err != nil {
			t.Fatal(err)
		}
		p.Location[0].Line, p.Function = nil, nil
		named(p, "/nowhere", nil)
	}
	for i := 0; i < len(whole); i += 13 {
		data := bytes.Clone(whole)
		data[i] ^= 0xff
		try(data)
		if i%10 == 0 {
			try(whole[:i])
		}
	}
}

// TestPerfMap: code that was compiled at run time has the name of the last line with its address.
func TestPerfMap(t *testing.T) {
	const text = "7f0000001000 20 old name\n7f0000001000 40 py::parse:/srv/app.py\n" +
		"not a line\n7f0000001040 10 next\n7f0000001"
	path := saved(t, "perf.map", []byte(text))
	p := madeProfile()
	p.Location = []*profile.Location{{ID: 1, Address: 0x7f000000103f},
		{ID: 2, Address: 0x7f0000002000}}
	p.Sample = []*profile.Sample{{Location: p.Location, Value: make([]int64, len(libraryTypes))}}
	const unnamedStack = "0x7f000000103f, 0x7f0000002000"
	me := uint32(os.Getuid())
	for _, c := range []struct{ name, path, want, err string }{
		{"other user", path, unnamedStack, ": not used: it belongs to "},
		{"old", path, unnamedStack, ": not used: it is older than the profiled time"},
		{"none", "/nowhere/perf.map", unnamedStack, ""},
		{"good", path, "py::parse:/srv/app.py, 0x7f0000002000", ""},
	} {
		jit := &perfMap{path: c.path, owner: me, oldest: time.Unix(1_700_000_000, 0)}
		switch c.name {
		case "other user":
			if me != 0 {
				continue
			}
			if err := os.Chown(path, 1234, 1234); err != nil {
				t.Fatal(err)
			}
		case "old":
			os.Chown(path, int(me), -1)
			jit.oldest = time.Now().Add(time.Hour)
		}
		got, bad := named(p, "/nowhere", jit)
		if got != c.want || (len(bad) > 0) != (c.err != "") ||
			len(bad) > 0 && !strings.Contains(bad[0].Error(), c.err) {
			t.Errorf("%s: %s %v", c.name, got, bad)
		}
	}
	f := &profileFile{profile: p, owner: 7}
	if m := perfMapOf(f); m.path != "/tmp/perf-1234.map" || m.owner != 7 ||
		!m.oldest.Equal(time.Unix(1_700_000_000, 0)) {
		t.Errorf("%+v", m)
	}
	p.Comments[1] = "pid ../../etc/passwd"
	if m := perfMapOf(f); m != nil {
		t.Errorf("%+v", m)
	}
}

func TestDemangled(t *testing.T) {
	for name, want := range map[string]string{
		"main":                           "main",
		"_start":                         "_start",
		"main.(*T).Method":               "main.(*T).Method",
		"_ZNSt6vectorIiSaIiEE7reserveEm": "std::vector<int, std::allocator<int> >::reserve",
		"_ZN4core3ptr13drop_in_place17h0123456789abcdefE": "core::ptr::drop_in_place",
		"_RNvCs1234_7mycrate3foo":                         "mycrate::foo",
		"_Znope":                                          "_Znope",
		"_ZN3foo3barEv.cold":                              "foo::bar",
		"work.cold":                                       "work",
		"work.part.0.constprop.1.cold":                    "work",
		"work.cold.water":                                 "work.cold.water",
		".cold":                                           ".cold",
	} {
		if got := demangled(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
