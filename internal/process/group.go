package process

import (
	"syscall"
	"unsafe"

	"tieralloc/internal/config"
	"tieralloc/internal/group"
	"tieralloc/internal/raw"
	"tieralloc/tiers"
)

// joinGroup makes this process a member of TA_GROUP, and the group's caps those in force. It
// reports false, after a line on standard error for each, where the group cannot be joined, has
// other caps, or has no room for TA_GROUP_MIN. A process that cannot join has its caps for itself
// alone. filtered becomes 1 when the program prepares a filter of system calls.
func joinGroup(filtered *uint32) (ok bool) {
	c := &config.InForce
	want := group.Wish{CUDA: group.DeviceCaps{Soft: c.CUDA.Soft, Hard: c.CUDA.Hard,
		Part: c.CUDA.Proportion}, Floor: c.GroupMin, Program: program.Addr(),
		Filtered: uintptr(unsafe.Pointer(filtered))}
	for i := range want.Caps {
		want.Caps[i] = group.Cap{Soft: capOr(c.Tiers[i].Soft), Hard: capOr(c.Tiers[i].Hard)}
	}
	path := c.GroupFile.Addr()
	if errno := group.Join(path, &want); errno != 0 {
		return !complainGroup(path, errno)
	}
	ok = agree(path, &want)
	if !group.HasFloor() {
		ok = false
		var l raw.Line
		l.Text("tieralloc: TA_GROUP_MIN: the caps of the group ")
		l.CStr(path)
		l.Text(" are too small for so much for each process; continuing without")
		l.Emit(2)
	}
	return ok
}

// forkGroup makes a forked child a member of its parent's group. One that cannot join has the caps
// for itself alone.
func forkGroup() {
	if errno := group.ForkChild(); errno != 0 {
		tiers.LeaveGroup()
		complainGroup(config.InForce.GroupFile.Addr(), errno)
	}
}

// agree puts the group's caps in force. It reports false if they are not those that this process
// wants.
func agree(path uintptr, want *group.Wish) bool {
	got, same := group.Agreed(), true
	for i := range got.Caps {
		t, g, w := &config.InForce.Tiers[i], &got.Caps[i], &want.Caps[i]
		same = agreeOn(path, config.CapName(uintptr(i), false), &t.Soft, g.Soft, w.Soft) && same
		same = agreeOn(path, config.CapName(uintptr(i), true), &t.Hard, g.Hard, w.Hard) && same
	}
	c := &config.InForce.CUDA
	same = agreeOn(path, "TA_CUDA_SOFT", &c.Soft, capOr(got.CUDA.Soft), capOr(c.Soft)) && same
	same = agreeOn(path, "TA_CUDA_HARD", &c.Hard, capOr(got.CUDA.Hard), capOr(c.Hard)) && same
	if got.CUDA.Part != c.Proportion {
		same = false
		c.Proportion = got.CUDA.Part
		var l raw.Line
		l.Text("tieralloc: TA_CUDA_PROPORTION: the group ")
		l.CStr(path)
		l.Text(" has another one; using that")
		l.Emit(2)
	}
	return same
}

// agreeOn sets a setting to the cap of the group, and prints a line if that is not what this
// process wants.
func agreeOn(path uintptr, variable string, setting *uint64, got, want uint64) bool {
	if got == want {
		return true
	}
	*setting = got
	if got == group.Uncapped {
		*setting = 0
	}
	var l raw.Line
	l.Text("tieralloc: ")
	l.Text(variable)
	l.Text(": the group ")
	l.CStr(path)
	if got == group.Uncapped {
		l.Text(" has none; using none")
	} else {
		l.Text(" has ")
		l.Dec(got)
		l.Text(" bytes; using these")
	}
	l.Emit(2)
	return false
}

// capOr returns a setting as a cap of a group.
func capOr(set uint64) uint64 {
	if set == 0 {
		return group.Uncapped
	}
	return set
}

// complainGroup prints that the group cannot be joined, like complain.
func complainGroup(path, errno uintptr) bool {
	if raw.WritingRefused(errno) {
		return false
	}
	var l raw.Line
	l.Text("tieralloc: cannot join TA_GROUP ")
	l.CStr(path)
	addError(&l, errno, groupError(errno))
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
	case syscall.EUSERS:
		return "the group has 1024 members"
	case syscall.EMFILE:
		return "too many open files"
	case syscall.EBUSY:
		return "another process does not finish joining"
	}
	return errorName(errno)
}
