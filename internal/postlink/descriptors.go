package main

import "fmt"

// The machine code of functions that do nothing.
var (
	returns     = []byte{0xc3}
	returnsZero = []byte{0x31, 0xc0, 0xc3}
)

// atStart are functions of Go that change a limit of the host, or open files, when the runtime
// starts. A host of one thread that closes a descriptor and opens a file gets that descriptor.
var atStart = []struct {
	name  string
	calls string // by which it is recognized
	times int
	code  []byte
}{
	{"syscall.init.0", "syscall.prlimit1", 2, returns},
	{"runtime.getHugePageSize", "runtime.open.abi0", 1, returnsZero}, // unknown
	{"runtime.defaultGOMAXPROCSInit", "internal/runtime/cgroup.OpenCPU", 1, returns},
}

// keepDescriptors makes these functions return at once.
func (m *image) keepDescriptors() error {
	const shortest = 0x90 // bytes of each
	for _, f := range atStart {
		found, err := m.symbols(f.name, f.calls)
		if err != nil {
			return err
		}
		calls := 0
		if err := m.eachCall(func(at, callee uint64) uint64 {
			if at-found[0] < shortest && callee == found[1] {
				calls++
			}
			return callee
		}); err != nil {
			return err
		}
		if calls != f.times {
			return fmt.Errorf("%d calls of %s in %s, not %d", calls, f.calls, f.name, f.times)
		}
		at, err := m.fileOffset(found[0])
		if err != nil {
			return err
		}
		copy(m.data[at:], f.code)
	}
	return nil
}
