package sizeclass

import "testing"

// TestSet: a set has what was added and not removed, and Next goes through it in order.
func TestSet(t *testing.T) {
	var s Set
	in := [Count]bool{}
	for c := uintptr(0); c < Count; c += 5 {
		s.Add(c)
		in[c] = true
	}
	for c := uintptr(0); c < Count; c += 15 {
		s.Remove(c)
		in[c] = false
	}
	next := uintptr(Count)
	for c := uintptr(Count); c > 0; c-- {
		if in[c-1] {
			next = c - 1
		}
		if s.Has(c-1) != in[c-1] || s.Next(c-1) != next {
			t.Errorf("class %d: %v, next %d; want %v, %d", c-1, s.Has(c-1), s.Next(c-1), in[c-1],
				next)
		}
	}
	if s.Next(Count) != Count {
		t.Error("there is a class behind the last")
	}
	s = All()
	for c := uintptr(0); c < Count; c++ {
		if !s.Has(c) || s.Next(c) != c {
			t.Errorf("class %d is missing from all", c)
		}
	}
}
