package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"tieralloc/stats/live"
)

// A perfMap is a file in which a program lists the code that it compiles at run time: lines of a
// start, a length and a name.
type perfMap struct {
	path   string
	owner  uint32    // user
	oldest time.Time // when it may have been written last
}

// perfMapOf returns the perf map of the process of a profile, or nil if the profile does not name
// one.
func perfMapOf(f *profileFile) *perfMap {
	pid, err := strconv.ParseUint(comment(f.profile, "pid"), 10, 31)
	if err != nil {
		return nil
	}
	p := f.profile
	return &perfMap{path: fmt.Sprintf("/tmp/perf-%d.map", pid), owner: f.owner,
		oldest: time.Unix(0, p.TimeNanos).Add(-time.Duration(p.DurationNanos))}
}

// lookup returns the names at addresses, which are sorted. Without a file there are none. A file of
// another user is an error, as names would be that user's choice. So is one that was last written
// before the profile began: it is of an earlier process with the number.
func (m *perfMap) lookup(addresses []uint64) (map[uint64]string, error) {
	file, err := live.OpenRegular(unix.AT_FDCWD, m.path, m.path, unix.O_NOFOLLOW)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	switch owner := ownerOf(file); {
	case owner != m.owner && owner != 0:
		return nil, fmt.Errorf("%s: not used: it belongs to %s, the profile to %s", m.path,
			userName(int(owner)), userName(int(m.owner)))
	case info.ModTime().Before(m.oldest):
		return nil, fmt.Errorf("%s: not used: it is older than the profiled time", m.path)
	}
	return perfNames(file, addresses)
}

// perfNames reads a perf map. Code may be replaced, so the last line for an address counts.
func perfNames(r io.Reader, addresses []uint64) (map[uint64]string, error) {
	names := map[uint64]string{}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		first, rest, _ := strings.Cut(lines.Text(), " ")
		second, name, _ := strings.Cut(rest, " ")
		start, err := strconv.ParseUint(strings.TrimPrefix(first, "0x"), 16, 64)
		if err != nil {
			continue // a line that is being written
		}
		length, err := strconv.ParseUint(strings.TrimPrefix(second, "0x"), 16, 64)
		if err != nil || name == "" {
			continue
		}
		for _, at := range within(addresses, start, start+length) {
			names[at] = name
		}
	}
	return names, lines.Err()
}
