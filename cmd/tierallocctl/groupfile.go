package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"tieralloc/internal/group"
)

// groupFolder is where groups are that TA_GROUP names.
const (
	groupFolder = "/dev/shm"
	groupPrefix = "tieralloc-group."
)

// processGroup is what the file of a group shows.
type processGroup struct {
	Path     string         `json:"path"`
	Name     string         `json:"name"` // as in TA_GROUP
	Owner    int            `json:"owner"`
	Accounts []groupAccount `json:"accounts"` // those with a cap or a member's bytes
	Members  []groupMember  `json:"members"`
}

// groupAccount is a tier or a device.
type groupAccount struct {
	Name    string `json:"name"`
	Used    uint64 `json:"bytes_used"`    // by all members
	Granted uint64 `json:"bytes_granted"` // to all members; what they may use without asking
	SoftCap uint64 `json:"capacity_soft"` // 0: none
	HardCap uint64 `json:"capacity_hard"` // 0: none
	// Since the group's file was made, also by members that have ended.
	Refused  uint64 `json:"requests_refused"`
	Waits    uint64 `json:"waits"`       // for TA_GROUP_MIN
	Taken    uint64 `json:"bytes_taken"` // from what others were granted
	position uintptr
}

// groupMember is a process of a group. One that has ended is a member until another needs its
// bytes.
type groupMember struct {
	Pid     int           `json:"pid"` // in its own namespace
	Program string        `json:"program"`
	Ended   bool          `json:"ended"`
	Waits   uint64        `json:"waits"`       // for its TA_GROUP_MIN
	Taken   uint64        `json:"bytes_taken"` // from what others were granted, in all
	Refused uint64        `json:"requests_refused"`
	Shares  []memberShare `json:"shares"` // by account
}

type memberShare struct {
	Used    uint64 `json:"bytes_used"`
	Granted uint64 `json:"bytes_granted"`
	Kept    uint64 `json:"bytes_kept"` // for the member alone (TA_GROUP_MIN)
}

var errNoGroup = errors.New("not the file of a group")

// readGroup reads the file of a group. It follows no link at path and takes no other kind of file.
// It does not map the file, which its owner may shorten at any time.
func readGroup(path string) (*processGroup, error) {
	const flags = unix.O_RDONLY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC
	fd, err := unix.Open(path, flags, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG || uintptr(st.Size) != group.Size {
		return nil, fmt.Errorf("%s: %w", path, errNoGroup)
	}
	if user := os.Geteuid(); user != 0 && uint32(user) != st.Uid {
		return nil, fmt.Errorf("%s belongs to another user", path)
	}
	// Memory of its own: a Page is not for the garbage collector.
	mem, err := unix.Mmap(-1, 0, int(group.Size), unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil, err
	}
	defer unix.Munmap(mem)
	if _, err := io.ReadFull(f, mem); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	p := (*group.Page)(unsafe.Pointer(unsafe.SliceData(mem)))
	if p.Magic != group.Magic || p.Version != group.Version {
		return nil, fmt.Errorf("%s: %w, or one of another version", path, errNoGroup)
	}
	g := &processGroup{Path: path, Name: groupName(path, int(st.Uid)), Owner: int(st.Uid)}
	g.fill(p, fd)
	return g, nil
}

// groupName returns what TA_GROUP has to be for the file of a user at path.
func groupName(path string, owner int) string {
	if name, ok := strings.CutPrefix(path, fmt.Sprintf("%s/%s%d.", groupFolder, groupPrefix,
		owner)); ok {
		return name
	}
	return path
}

// fill takes the accounts and the members from the page.
func (g *processGroup) fill(p *group.Page, fd int) {
	slots := min(p.High, group.Members)
	for i := range uintptr(group.Accounts) {
		a := groupAccount{Name: accountName(p, i), position: i}
		a.SoftCap, a.HardCap = capOrNone(p.Caps[i].Soft), capOrNone(p.Caps[i].Hard)
		a.Refused, a.Waits, a.Taken = p.Totals[i].Refused, p.Totals[i].Waits, p.Totals[i].Taken
		for m := range slots {
			s := &p.Slots[m].Shares[i]
			a.Used += s.Used()
			a.Granted += s.Granted()
		}
		if a.SoftCap|a.HardCap|a.Used|a.Granted != 0 {
			g.Accounts = append(g.Accounts, a)
		}
	}
	for slot := range slots {
		s := &p.Slots[slot]
		if s.Pid == 0 {
			continue
		}
		name, _, _ := bytes.Cut(s.Program[:], []byte{0})
		m := groupMember{Pid: int(s.Pid), Program: string(name), Ended: !slotLocked(fd, slot),
			Waits: s.Waits, Taken: s.Taken, Refused: s.Refused}
		for _, a := range g.Accounts {
			share := &s.Shares[a.position]
			m.Shares = append(m.Shares, memberShare{share.Used(), share.Granted(), share.Floor()})
		}
		g.Members = append(g.Members, m)
	}
}

// capOrNone turns a cap of the page into one of a report.
func capOrNone(bytes uint64) uint64 {
	if bytes == group.Uncapped {
		return 0
	}
	return bytes
}

// accountName names an account: a tier, or a device by its UUID.
func accountName(p *group.Page, i uintptr) string {
	tiers := []string{"FAST", "NORMAL", "SLOW", "-"}
	if i < uintptr(len(tiers)) {
		return tiers[i]
	}
	return "GPU-" + uuidText([2]uint64{p.Devices[i].Low, p.Devices[i].High})
}

// slotLocked reports whether a living process has the slot: it holds the lock of its byte.
func slotLocked(fd int, slot uint64) bool {
	l := unix.Flock_t{Type: unix.F_WRLCK, Start: int64(slot), Len: 1}
	err := unix.FcntlFlock(uintptr(fd), unix.F_OFD_GETLK, &l)
	return err != nil || l.Type != unix.F_UNLCK
}

// groupPath returns the path of the group that the user calls so.
func groupPath(name string) string {
	if strings.Contains(name, "/") {
		return name
	}
	return filepath.Join(groupFolder, groupPrefix+strconv.Itoa(os.Geteuid())+"."+name)
}

// allGroups reads the groups with names: root's own and all users', or this user's. bad is what
// cannot be read.
func allGroups() (groups []*processGroup, bad error) {
	pattern := groupPrefix + strconv.Itoa(os.Geteuid()) + ".*"
	if os.Geteuid() == 0 {
		pattern = groupPrefix + "*"
	}
	paths, _ := filepath.Glob(filepath.Join(groupFolder, pattern))
	slices.Sort(paths)
	var problems []error
	for _, path := range paths {
		switch g, err := readGroup(path); {
		case err == nil:
			groups = append(groups, g)
		case !errors.Is(err, os.ErrNotExist): // else it has gone meanwhile
			problems = append(problems, err)
		}
	}
	return groups, errors.Join(problems...)
}

// living returns the number of members that have not ended.
func (g *processGroup) living() (n int) {
	for _, m := range g.Members {
		if !m.Ended {
			n++
		}
	}
	return n
}
