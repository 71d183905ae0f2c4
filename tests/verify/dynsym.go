package verify

import (
	"debug/elf"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Dynamic is what the dynamic loader sees of a library.
type Dynamic struct {
	Defined    []string            // sorted
	Undefined  []string            // sorted
	Versions   map[string][]string // GLIBC_x.y -> the undefined symbols that need it
	TextRel    bool                // code must be made writable for relocation
	ExecStack  bool                // asks for an executable stack, or does not say
	WriteExec  bool                // a segment both writable and executable
	DefinesVer bool                // defines symbol versions
}

// ReadDynamic reads the dynamic side of the library at path.
func ReadDynamic(path string) (*Dynamic, error) {
	f, err := elf.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	syms, err := f.DynamicSymbols()
	if err != nil {
		return nil, err
	}
	d := &Dynamic{Versions: map[string][]string{}, ExecStack: true}
	for _, s := range syms {
		if s.Section != elf.SHN_UNDEF {
			d.Defined = append(d.Defined, s.Name)
			continue
		}
		d.Undefined = append(d.Undefined, s.Name)
		if s.Version != "" {
			d.Versions[s.Version] = append(d.Versions[s.Version], s.Name)
		}
	}
	slices.Sort(d.Defined)
	slices.Sort(d.Undefined)
	for _, p := range f.Progs {
		switch {
		case p.Type == elf.PT_GNU_STACK:
			d.ExecStack = p.Flags&elf.PF_X != 0
		case p.Type == elf.PT_LOAD && p.Flags&(elf.PF_W|elf.PF_X) == elf.PF_W|elf.PF_X:
			d.WriteExec = true
		}
	}
	rel, _ := f.DynValue(elf.DT_TEXTREL)
	flags, _ := f.DynValue(elf.DT_FLAGS)
	d.TextRel = len(rel) > 0 || slices.ContainsFunc(flags,
		func(v uint64) bool { return elf.DynFlag(v)&elf.DF_TEXTREL != 0 })
	vers, _ := f.DynamicVersions()
	// Index 1 names the file itself; more are versions of symbols.
	d.DefinesVer = slices.ContainsFunc(vers, func(v elf.DynamicVersion) bool { return v.Index > 1 })
	return d, nil
}

// NewestGlibc is the newest glibc version that the library needs, as 2.N, and
// the symbols that need it.
func (d *Dynamic) NewestGlibc() (minor int, symbols []string) {
	for v, syms := range d.Versions {
		s, ok := strings.CutPrefix(v, "GLIBC_2.")
		if !ok {
			continue
		}
		s, _, _ = strings.Cut(s, ".") // GLIBC_2.2.5
		if n, err := strconv.Atoi(s); err == nil && n > minor {
			minor, symbols = n, syms
		}
	}
	return minor, symbols
}

// newestAllowed is N of the newest GLIBC_2.N that the library may need: 2.34,
// which moved pthread and dl into libc, is that of the oldest systems supported.
const newestAllowed = 34

// Check compares with the list of symbols that the library must define, no more
// and no fewer, and with what any preloaded library must be. One line a breach.
func (d *Dynamic) Check(want []string) []string {
	var breaches []string
	add := func(bad bool, format string, args ...any) {
		if bad {
			breaches = append(breaches, fmt.Sprintf(format, args...))
		}
	}
	for _, s := range want {
		add(!slices.Contains(d.Defined, s), "does not define %s", s)
	}
	for _, s := range d.Defined {
		add(!slices.Contains(want, s), "defines %s, which is not on the list", s)
	}
	for _, s := range d.Undefined {
		add(strings.HasPrefix(s, "nvml"), "needs %s: NVML may not be installed", s)
	}
	minor, syms := d.NewestGlibc()
	add(minor > newestAllowed, "needs GLIBC_2.%d for %v", minor, syms)
	add(d.TextRel, "has text relocations")
	add(d.ExecStack, "asks for an executable stack")
	add(d.WriteExec, "has a segment both writable and executable")
	add(d.DefinesVer, "defines symbol versions: programs ask for the unversioned names")
	return breaches
}
