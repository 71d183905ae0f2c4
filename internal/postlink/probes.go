package main

import "fmt"

// probes lists the Go functions in place of which the probes of tracers are called, and these.
var probes = [][2]string{
	{"tieralloc/stats/profile.probeAlloc", "ta_probe_alloc"},
	{"tieralloc/stats/profile.probeFree", "ta_probe_free"},
}

// connectProbes redirects the calls. Go cannot contain a probe: the note of a probe has its
// address, and no other object can refer to a symbol of Go.
func (m *image) connectProbes() error {
	for _, p := range probes {
		found, err := m.symbols(p[0], p[1])
		if err != nil {
			return err
		}
		calls := 0
		if err := m.eachCall(func(at, callee uint64) uint64 {
			if callee != found[0] {
				return callee
			}
			calls++
			return found[1]
		}); err != nil {
			return err
		}
		if calls == 0 {
			return fmt.Errorf("no call of %s", p[0])
		}
	}
	return nil
}
