package live

import (
	"cmp"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// allLimits is for how many users the files that are read suffice if each has as many as one may.
// A user may own files by many numbers (subuid(5)).
const allLimits = 10

// A usualFile is a regular file with the usual name of a page. Nothing else is known of it.
type usualFile struct {
	pid     int
	owner   uint32
	changed int64 // when it was last written, in nanoseconds
	id      ID
}

// usualFiles lists the files, those of this user first, then the newest first. It opens none.
func (d *Folder) usualFiles() (files []usualFile, err error) {
	names, err := d.file.Readdirnames(-1)
	for _, name := range names {
		pid, bad := strconv.Atoi(strings.TrimPrefix(name, usualPrefix))
		if bad != nil || name != usualPrefix+strconv.Itoa(pid) {
			continue
		}
		var st unix.Stat_t
		bad = unix.Fstatat(int(d.file.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW)
		if bad == nil && st.Mode&unix.S_IFMT == unix.S_IFREG {
			files = append(files, usualFile{pid, st.Uid, st.Mtim.Nano(), ID{st.Dev, st.Ino}})
		}
	}
	slices.SortFunc(files, func(a, b usualFile) int {
		if a.own() != b.own() {
			if a.own() {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(b.changed, a.changed), a.pid-b.pid)
	})
	return files, err
}

func (f usualFile) own() bool { return int(f.owner) == os.Geteuid() }

// within returns the files that are to be opened, at most limit of each other user and allLimits
// times as many in all, and how many are not. If limit is 0, it returns all.
func within(limit int, files []usualFile) (some []usualFile, leftOut int) {
	if limit == 0 {
		return files, 0
	}
	of, all := map[uint32]int{}, 0
	for _, f := range files {
		if !f.own() {
			if of[f.owner] == limit || all == allLimits*limit {
				leftOut++
				continue
			}
			of[f.owner]++
			all++
		}
		some = append(some, f)
	}
	return some, leftOut
}
