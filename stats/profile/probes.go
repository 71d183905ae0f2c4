package profile

import "tieralloc/internal/raw"

// The probes otel_memory:alloc and otel_memory:free are for tracers that attach to a running
// process (docs/profiles.md). Both are passed with the address's part of the samples held, so that
// a tracer sees the alloc and the free of an address in their order.

// Tracers is how many tracers are attached to each probe. The kernel, or a debugger, changes it.
type Tracers struct {
	_           raw.OffHeap
	Alloc, Free uint16
}

// traceAlloc tells tracers of a block that the profile has kept.
func (t *table) traceAlloc(b *Block) {
	if t.tracers != nil && t.tracers.Alloc != 0 {
		probeAlloc(b.Addr, b.Size, uint64(int64(Weight(b.Size, b.Level)*float64(b.Size)+0.5)))
	}
}

// traceFree tells tracers that the sampled block at addr is free.
func (t *table) traceFree(addr uintptr) {
	if t.tracers != nil && t.tracers.Free != 0 {
		probeFree(addr)
	}
}

// internal/postlink redirects the calls of these to the probes themselves
// (interpose/boot_probes_amd64.S), whose notes name the registers of the arguments.

//go:noinline
func probeAlloc(addr uintptr, size, weighted uint64) {}

//go:noinline
func probeFree(addr uintptr) {}
