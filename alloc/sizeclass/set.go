package sizeclass

import "math/bits"

// Set is a set of classes, with a bit for each. The zero value is empty.
type Set [Count / 64]uint64

// All is the set of all classes.
func All() Set { return Set{^uint64(0), ^uint64(0)} }

// Has reports whether class c is in the set.
func (s *Set) Has(c uintptr) bool { return s[word(c)]>>(c&63)&1 != 0 }

// Add puts class c into the set.
func (s *Set) Add(c uintptr) { s[word(c)] |= 1 << (c & 63) }

// Remove takes class c out of it.
func (s *Set) Remove(c uintptr) { s[word(c)] &^= 1 << (c & 63) }

// Next is the first class of the set from c on, or Count.
func (s *Set) Next(c uintptr) uintptr {
	for ; c < Count; c = (c | 63) + 1 {
		if rest := s[word(c)] >> (c & 63); rest != 0 {
			return c + uintptr(bits.TrailingZeros64(rest))
		}
	}
	return Count
}

func word(c uintptr) uintptr { return c >> 6 & (Count/64 - 1) }
