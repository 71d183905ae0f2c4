package pystack

import "tieralloc/internal/raw"

// PairMax is how many pairs a table of them has room for, a power of two.
const PairMax = 1 << 16

// pairs gives each pair of numbers that it meets the next number, from 1 on.
//
//	at[row] of a pair's hash, or of a row behind it, is the pair's number
type pairs struct {
	raw.OffHeap
	n    uint32
	at   [2 * PairMax]uint32 // by hash: the number of a pair, or 0
	pair [PairMax]pair       // number n is at n-1
}

type pair struct{ a, b uint32 }

// number returns the number of a pair, or 0 if there is no room for it.
func (p *pairs) number(a, b uint32) uint32 {
	row := uint32(mix(uint64(a)<<32 | uint64(b)))
	for range p.at {
		row++
		n := p.at[row&(2*PairMax-1)]
		if n == 0 {
			break
		}
		if p.get(n) == (pair{a, b}) {
			return n
		}
	}
	if p.n >= PairMax {
		return 0
	}
	p.pair[p.n&(PairMax-1)] = pair{a, b}
	p.n++
	p.at[row&(2*PairMax-1)] = p.n
	return p.n
}

// get returns the pair of a number.
func (p *pairs) get(n uint32) pair { return p.pair[(n-1)&(PairMax-1)] }

func (p *pairs) clear() {
	p.n = 0
	for i := range p.at {
		p.at[i] = 0
	}
}
