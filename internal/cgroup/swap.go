package cgroup

// SwapAllowed reports whether this process's group and those above it may have swap. One thread at
// a time may call it.
func SwapAllowed() bool {
	v := find()
	if v == 0 {
		return true
	}
	end := group.Len()
	for ; end > 1; end-- { // the root's path is a slash
		if (end == group.Len() || group.At(end) == '/') && !v.allowsSwap(end) {
			return false
		}
	}
	return v.allowsSwap(0)
}

// allowsSwap is SwapAllowed for the group whose path is the first n bytes of group. The limit of
// version 1 is of memory and swap together.
func (v version) allowsSwap(n uintptr) bool {
	if v == 2 {
		return v.number(n, "/memory.swap.max") != 0
	}
	both := v.number(n, "/memory.memsw.limit_in_bytes")
	return both >= noLimit || both > v.number(n, v.max())
}
