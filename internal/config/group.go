package config

import (
	"syscall"

	"tieralloc/internal/raw"
)

// groupFiles begins the path of the file of a group that a name stands for. The number of the user
// and the name follow.
const (
	groupFiles   = "/dev/shm/tieralloc-group."
	groupNameMax = 64
)

// asGroup reads the name of a group, or the absolute path of its file.
func (v value) asGroup(dst *Text, given *bool) bool {
	if v.at(0) == '/' {
		return v.at(v.n-1) != '/' && v.asPath(dst, given)
	}
	if !v.isGroupName() {
		return false
	}
	user, _ := raw.Sys(syscall.SYS_GETEUID, 0, 0, 0, 0, 0, 0)
	*given = true
	return dst.Set(raw.Bytes(groupFiles), uintptr(len(groupFiles))) && dst.Dec(uint64(user)) &&
		dst.Byte('.') && dst.Mem(v.addr, v.n)
}

// GroupName returns what TA_GROUP has to be for a group whose file is at path: a name of this
// user's, or the path.
func GroupName(path *Text) (addr, n uintptr) {
	addr, n = path.Addr(), path.Len()
	at := uintptr(len(groupFiles))
	for i := uintptr(0); i < at; i++ {
		if path.At(i) != groupFiles[i] {
			return addr, n
		}
	}
	for isDigit(path.At(at)) {
		at++
	}
	if name := (value{addr: addr + at + 1, n: n - at - 1}); path.At(at) == '.' && at+1 < n &&
		name.isGroupName() {
		return name.addr, name.n
	}
	return addr, n
}

func (v value) isGroupName() bool {
	for i := uintptr(0); i < v.n; i++ {
		c := v.at(i)
		if l := lower(c); !isDigit(c) && (l < 'a' || l > 'z') && c != '.' && c != '-' && c != '_' {
			return false
		}
	}
	return v.n != 0 && v.n <= groupNameMax
}
