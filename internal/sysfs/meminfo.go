package sysfs

// Memory finds a line such as "Node 0 MemTotal: 1024 kB" in the node's meminfo and returns its
// number in bytes, or 0 if there is none.
func Memory(node uintptr, name string) (bytes uint64) {
	const lines = 64 // more than any kernel writes
	var p Path
	p.Node(node, "/meminfo")
	var f File
	if !f.Open(&p) {
		return 0
	}
	for i := 0; i < lines && f.peek() != 0 && bytes == 0; i++ {
		bytes = f.memory(name)
		f.line()
	}
	f.Close()
	return bytes
}

// Meminfo replaces /proc/meminfo if it is set. Only tests set it.
var Meminfo string

// SwapTotal is the size of all swap of the system in bytes.
func SwapTotal() (bytes uint64) {
	const (
		lines = 256     // more than any kernel writes
		most  = 1 << 50 // KiB
	)
	var p Path
	if Meminfo == "" {
		p.Text("/proc/meminfo")
	} else {
		p.Text(Meminfo)
	}
	var f File
	if !f.Open(&p) {
		return 0
	}
	for i := 0; i < lines && f.peek() != 0; i++ {
		if f.word("SwapTotal:") {
			f.Blanks()
			bytes, _ = f.Number(most)
			break
		}
		f.line()
	}
	f.Close()
	return bytes << 10
}

// memory reads a line if it has the name.
func (f *File) memory(name string) uint64 {
	const most = 1 << 50 // KiB
	if !f.word("Node ") {
		return 0
	}
	f.Number(most)
	f.Blanks()
	if !f.word(name) {
		return 0
	}
	f.Blanks()
	v, _ := f.Number(most)
	if !f.word(" kB") {
		return 0
	}
	return v << 10
}

// word skips s. If s does not come next it stops at the first byte that differs and reports false.
func (f *File) word(s string) bool {
	for i := 0; i < len(s); i++ {
		if f.peek() != s[i] {
			return false
		}
		f.skip()
	}
	return true
}

// line skips the rest of a line.
func (f *File) line() {
	for f.peek() != 0 {
		c := f.peek()
		f.skip()
		if c == '\n' {
			return
		}
	}
}
