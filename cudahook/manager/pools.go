package manager

import "unsafe"

// least is the part of the total that manual instances must leave if there are automatic ones.
// slack is the rounding error that a sum of proportions may have.
const (
	least = 0.05
	slack = 1e-9
)

func bitsOf(f float64) uint64 { return *(*uint64)(unsafe.Pointer(&f)) }

func realOf(bits uint64) float64 { return *(*float64)(unsafe.Pointer(&bits)) }

// millionths returns a proportion in the unit of reports.
func millionths(p float64) uint64 { return uint64(p*1e6 + 0.5) }

// given returns the sum of the manual proportions and the number of automatic instances, leaving
// out one instance.
func (m *manager) given(but *instance) (sum float64, automatic uint64) {
	for i := m.first; i != nil; i = i.next {
		if i == but {
			continue
		}
		if i.manual != 0 {
			sum += i.proportion
		} else {
			automatic++
		}
	}
	return sum, automatic
}

// admit sets the proportion of an instance. A negative one makes it automatic. If it returns an
// errno, nothing has changed.
func (m *manager) admit(i *instance, bits uint64) uint64 {
	p := realOf(bits)
	if p < 0 {
		return m.join(i)
	}
	if !(p <= 1) {
		return invalid
	}
	sum, automatic := m.given(i)
	sum += p
	answer := uint64(0)
	switch {
	case sum > 1+slack:
		return overFull
	case sum > 1-least && automatic != 0:
		return noSpace
	case sum > 1-least:
		answer = Warned
	}
	i.manual, i.proportion, i.cap = 1, p, m.part(p)
	return answer
}

// join makes an instance automatic. The caller then calls rebalance, which sets its proportion.
func (m *manager) join(i *instance) uint64 {
	sum, _ := m.given(i)
	if 1-sum <= least {
		return noSpace
	}
	i.manual = 0
	return 0
}

func (m *manager) setManual(i *instance, bits uint64) uint64 {
	if realOf(bits) < 0 {
		return invalid
	}
	answer := m.admit(i, bits)
	if answer <= Warned {
		m.rebalance()
	}
	return answer
}

func (m *manager) setAuto(i *instance) uint64 {
	answer := m.join(i)
	if answer == 0 {
		m.rebalance()
	}
	return answer
}

// rebalance gives each automatic instance an equal part of what manual ones leave.
func (m *manager) rebalance() {
	sum, automatic := m.given(nil)
	if automatic == 0 {
		return
	}
	each := max(1-sum, 0) / float64(automatic)
	for i := m.first; i != nil; i = i.next {
		if i.manual == 0 {
			i.proportion, i.cap = each, m.part(each)
		}
	}
}

// part returns the bytes of a proportion.
func (m *manager) part(p float64) uint64 { return uint64(p * float64(m.total)) }

func (m *manager) pools(c *Call) uint64 {
	automatic := 0.0
	for i := m.first; i != nil; i = i.next {
		if i.manual == 0 {
			automatic += i.proportion
		}
	}
	manual, _ := m.given(nil)
	c.Manual, c.Automatic = bitsOf(manual), bitsOf(automatic)
	return 0
}
