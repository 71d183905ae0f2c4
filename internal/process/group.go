package process

import (
	"syscall"
	"unsafe"

	"tieralloc/internal/config"
	"tieralloc/internal/group"
	"tieralloc/internal/raw"
	"tieralloc/tiers"
)

// joinGroup makes this process a member of TA_GROUP. It reports false, after a line on standard
// error for each, where the group cannot be joined, has other caps, or has no room for
// TA_GROUP_MIN. A process that cannot join has its caps for itself alone. filtered becomes 1 when
// the program prepares a filter of system calls.
func joinGroup(filtered *uint32) (ok bool) {
	var want group.Wish
	for i := range want.Caps {
		set := &config.InForce.Tiers[i]
		want.Caps[i] = group.Cap{Soft: capOr(set.Soft), Hard: capOr(set.Hard)}
	}
	want.Floor, want.Program = config.InForce.GroupMin, program.Addr()
	want.Filtered = uintptr(unsafe.Pointer(filtered))
	path := config.InForce.GroupFile.Addr()
	if errno := group.Join(path, &want); errno != 0 {
		return !complainGroup(path, errno)
	}
	tiers.SetGroup()
	ok = true
	for i := range want.Caps {
		soft, hard := group.CapsOf(uintptr(i))
		if soft != want.Caps[i].Soft || hard != want.Caps[i].Hard {
			ok = false
			if soft != want.Caps[i].Soft {
				tellCap(path, config.CapName(uintptr(i), false), soft)
			}
			if hard != want.Caps[i].Hard {
				tellCap(path, config.CapName(uintptr(i), true), hard)
			}
		}
	}
	if !group.ReserveFloor() {
		ok = false
		var l raw.Line
		l.Text("tieralloc: TA_GROUP_MIN: the group ")
		l.CStr(path)
		l.Text(" has not so much left; continuing without")
		l.Emit(2)
	}
	return ok
}

func capOr(set uint64) uint64 {
	if set == 0 {
		return group.Uncapped
	}
	return set
}

// tellCap prints that the group has another cap than this process wants.
func tellCap(path uintptr, variable string, bytes uint64) {
	var l raw.Line
	l.Text("tieralloc: ")
	l.Text(variable)
	l.Text(": the group ")
	l.CStr(path)
	if bytes == group.Uncapped {
		l.Text(" has none; using none")
	} else {
		l.Text(" has ")
		l.Dec(bytes)
		l.Text(" bytes; using these")
	}
	l.Emit(2)
}

// complainGroup prints that the group cannot be joined, like complain.
func complainGroup(path, errno uintptr) bool {
	if raw.WritingRefused(errno) {
		return false
	}
	var l raw.Line
	l.Text("tieralloc: cannot join TA_GROUP ")
	l.CStr(path)
	l.Text(": error ")
	l.Dec(uint64(errno))
	if name := groupError(errno); len(name) != 0 {
		l.Text(" (")
		l.Text(name)
		l.Text(")")
	}
	l.Text("; the caps are for this process alone")
	l.Emit(2)
	return true
}

// groupError is errorName for an errno of group.Join.
func groupError(errno uintptr) string {
	switch syscall.Errno(errno) {
	case syscall.EPERM:
		return "the file belongs to another user, or others may use it"
	case syscall.EINVAL:
		return "the file is not a group's, or another version's"
	case syscall.EMFILE:
		return "the group has 1024 members"
	case syscall.EBUSY:
		return "another process does not finish joining"
	}
	return errorName(errno)
}
