// Package config reads the library's settings from the environment, once, before
// libc is initialised. The words it keeps are copied: programs overwrite environ.
//
// It is freestanding Go (docs/DESIGN.md): no allocation, no panic, no runtime.
//
// A further variable is four additions: a field of Settings with its default in
// setDefaults, a number in the list of variables, a row of the table, and a case of
// set. Rules that hold for all of them:
//
//   - A name that occurs twice: the first counts, as for getenv.
//   - An empty value is the same as an unset variable.
//   - A value that cannot be read is one line on standard error, and the default
//     stays in force.
//   - Names that are not in the table are not ours to judge and are passed over.
package config

import "tieralloc/internal/raw"

// Levels of Settings.Log: a message is written when its level is not above it.
const (
	LogOff uint32 = iota
	LogError
	LogWarn
	LogInfo
	LogDebug
	logLevels
)

// PathMax is the longest file name accepted, in bytes. It leaves room in a Text,
// and in the kernel's PATH_MAX, for the suffix of a temporary name.
const PathMax = 4000

// Units of time in nanoseconds, and the bounds of TA_PURGE_DELAY.
const (
	microsecond = 1_000
	millisecond = 1_000_000
	second      = 1_000_000_000

	DefaultPurgeDelay = 250 * millisecond
	maxPurgeDelay     = 3600 * second
)

// Settings is what the environment asked for. Parse fills all of it. At 8 KiB it
// belongs in static or mapped memory.
type Settings struct {
	Disable    bool   // TA_DISABLE: hand every call to libc
	Interpose  bool   // TA_INTERPOSE: serve malloc and its like
	Strict     bool   // TA_STRICT: a bad value ends the process (the caller does that)
	Log        uint32 // TA_LOG: one of the Log levels
	PurgeDelay uint64 // TA_PURGE_DELAY: nanoseconds
	StatsFile  Text   // TA_STATS_FILE: a template for Expand, empty when unset
	LogFile    Text   // TA_LOG_FILE: a path as it is, empty when unset
}

func (s *Settings) setDefaults() {
	s.Disable = false
	s.Interpose = true
	s.Strict = false
	s.Log = LogOff
	s.PurgeDelay = DefaultPurgeDelay
	s.StatsFile.Reset()
	s.LogFile.Reset()
}

// The variables, in the order of the table.
const (
	varDisable uintptr = iota
	varInterpose
	varStrict
	varStatsFile
	varLog
	varLogFile
	varPurgeDelay
	varCount
)

// variable describes one environment variable to find and complain about it. The
// default named here is what setDefaults sets; a test holds the two together.
type variable struct {
	name     string
	accepts  string // follows "expected "
	fallback string // follows "using "
	writes   bool   // names a file to write: ignored in a set-user-id program
}

// tableSize is a power of two above varCount, so that a masked index is in range.
const (
	tableSize = 8
	tableMask = tableSize - 1
)

var variables = [tableSize]variable{
	varDisable:   {"TA_DISABLE", "0 or 1", "0", false},
	varInterpose: {"TA_INTERPOSE", "0 or 1", "1", false},
	varStrict:    {"TA_STRICT", "0 or 1", "0", false},
	varStatsFile: {"TA_STATS_FILE", "a path of at most 4000 bytes in which % begins" +
		" %p (process id), %e (program name) or %%", "no file", true},
	varLog:     {"TA_LOG", "off, error, warn, info or debug", "off", false},
	varLogFile: {"TA_LOG_FILE", "a path of at most 4000 bytes", "standard error", true},
	varPurgeDelay: {"TA_PURGE_DELAY", "a time such as 250ms (units ns, us, ms, s), 0 to 1h",
		"250ms", false},
}

// The table has a free row, or this constant is negative and does not compile.
const _ uintptr = tableSize - varCount

// Parse fills s from the environment at envp, a vector of C strings that ends in a
// zero word; envp may be 0. secure is the auxiliary vector's AT_SECURE. It returns
// how many values were bad, having written one line on standard error for each.
func Parse(s *Settings, envp uintptr, secure bool) (bad uintptr) {
	return parse(s, envp, secure, 2)
}

// parse is Parse with the descriptor for its complaints.
func parse(s *Settings, envp uintptr, secure bool, fd uintptr) (bad uintptr) {
	s.setDefaults()
	if envp == 0 {
		return 0
	}
	seen := uintptr(0) // a bit for each variable met
	for entry := raw.Load(envp); entry != 0; entry = raw.Load(envp) {
		envp += 8
		i, val := find(entry)
		bit := uintptr(1) << (i & 63)
		if i >= varCount || seen&bit != 0 {
			continue
		}
		seen |= bit
		v := &variables[i&tableMask]
		if val.n == 0 || secure && v.writes {
			continue
		}
		if !s.set(i, val) {
			complain(v, val, fd)
			bad++
		}
	}
	return bad
}

// find looks an entry NAME=value up in the table. It returns varCount for a name
// that is not there.
func find(entry uintptr) (i uintptr, val value) {
	if raw.LoadByte(entry) != 'T' || raw.LoadByte(entry+1) != 'A' || raw.LoadByte(entry+2) != '_' {
		return varCount, value{}
	}
	for i = 0; i < varCount; i++ {
		if at := afterName(entry, variables[i&tableMask].name); at != 0 {
			return i, cString(at)
		}
	}
	return varCount, value{}
}

// afterName is the address of the value when the entry is name=value, else 0.
func afterName(entry uintptr, name string) uintptr {
	for i := 0; i < len(name); i++ {
		// The entry's final zero differs from every byte of a name: no read passes it.
		if raw.LoadByte(entry+uintptr(i)) != name[i] {
			return 0
		}
	}
	entry += uintptr(len(name))
	if raw.LoadByte(entry) != '=' {
		return 0
	}
	return entry + 1
}

// set reads the value of variable i. It reports false, and leaves s as it was,
// when the value is bad.
func (s *Settings) set(i uintptr, v value) bool {
	switch i {
	case varDisable:
		return v.asSwitch(&s.Disable)
	case varInterpose:
		return v.asSwitch(&s.Interpose)
	case varStrict:
		return v.asSwitch(&s.Strict)
	case varStatsFile:
		return v.isTemplate() && v.asPath(&s.StatsFile)
	case varLog:
		return v.asLevel(&s.Log)
	case varLogFile:
		return v.asPath(&s.LogFile)
	case varPurgeDelay:
		return v.asTime(&s.PurgeDelay, maxPurgeDelay)
	}
	return false
}

// shownMax is how much of a bad value its line shows, so that the rest of the
// message fits a raw.Line whatever the value is.
const shownMax = 160

// complain writes the one line for a bad value. It is kept out of line so that
// the buffer is on the stack only while it runs.
//
//go:noinline
func complain(v *variable, val value, fd uintptr) {
	var l raw.Line
	l.Text("tieralloc: ")
	l.Text(v.name)
	l.Text("=\"")
	for i := uintptr(0); i < val.n && i < shownMax; i++ {
		c := val.at(i)
		if c < ' ' || c > '~' {
			l.Text("?")
			continue
		}
		l.Mem(val.addr+i, 1)
	}
	if val.n > shownMax {
		l.Text("...")
	}
	l.Text("\": expected ")
	l.Text(v.accepts)
	l.Text("; using ")
	l.Text(v.fallback)
	l.Emit(fd)
}
