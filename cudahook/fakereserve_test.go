package cudahook

// Reserved addresses of the fake driver, and the pieces of memory that are mapped there.

func (f *fake) reserve(bytes uint64) uint64 {
	at := (f.next + mapUnit - 1) &^ (mapUnit - 1)
	f.next = at + bytes
	f.reserved[at] = bytes
	return at
}

// within returns whether a range lies in one reservation.
func (f *fake) within(at, bytes uint64) bool {
	for start, n := range f.reserved {
		if at >= start && at+bytes <= start+n {
			return true
		}
	}
	return false
}

func (f *fake) mapAt(r *Request, device uint64) uint64 {
	at, bytes := r.OnAddress, r.OnBytes
	if !f.within(at, bytes) || at%mapUnit != 0 || bytes%mapUnit != 0 || bytes == 0 {
		f.t.Fatalf("%d bytes are mapped at %#x, which is not reserved", bytes, at)
	}
	if f.used[device]+bytes > f.memory[device] {
		return ErrorOutOfMemory
	}
	for start, n := range f.pieces {
		if start < at+bytes && at < start+n {
			f.t.Fatalf("%#x is mapped twice", at)
		}
	}
	f.access = r.OnAccess
	for bytes > 0 {
		n := min(bytes, r.OnPiece)
		f.pieces[at] = n
		f.allocs[at] = fakeAlloc{start: at, bytes: n, device: device, piece: true}
		f.used[device] += n
		at += n
		bytes -= n
	}
	return Success
}

// unmapAt does not wait for work, as cuMemUnmap does not.
func (f *fake) unmapAt(r *Request) {
	if err := f.unfinished(r.OnAddress, r.OnBytes, streamKey{}); err != nil {
		f.t.Fatalf("%#x is unmapped: %v", r.OnAddress, err)
	}
	end := r.OnAddress + r.OnBytes
	for at := r.OnAddress; at < end; {
		n, ok := f.pieces[at]
		if !ok || at+n > end {
			f.t.Fatalf("[%#x, %#x) is unmapped: at %#x a piece has %d bytes", r.OnAddress, end, at,
				n)
		}
		f.dropPiece(at)
		at += n
	}
}

func (f *fake) dropPiece(at uint64) {
	f.used[f.allocs[at].device] -= f.pieces[at]
	delete(f.pieces, at)
	delete(f.allocs, at)
}

func (f *fake) unreserve(r *Request) {
	if f.reserved[r.OnAddress] != r.OnBytes {
		f.t.Fatalf("%d bytes at %#x are returned, and are not reserved", r.OnBytes, r.OnAddress)
	}
	for at := range f.pieces {
		if at-r.OnAddress < r.OnUsed {
			f.dropPiece(at)
		} else if at-r.OnAddress < r.OnBytes {
			f.t.Fatalf("the piece at %#x stays mapped", at)
		}
	}
	delete(f.reserved, r.OnAddress)
}

// actHost carries out the actions on the host's memory for a region that sleeps.
func (f *fake) actHost(r *Request, action Action) {
	want := [2]uint64{r.OnAddress, r.OnBytes}
	switch action {
	case ActSave:
		r.Value = r.OnHost
		if r.OnHost == 0 {
			f.handles++
			r.Value = f.handles
		}
		f.saved[r.Value] = want
		if err := f.unfinished(r.OnAddress, r.OnBytes, streamKey{}); err != nil {
			f.t.Fatalf("%#x is saved: %v", r.OnAddress, err)
		}
	case ActRestore:
		if f.saved[r.OnHost] != want {
			f.t.Fatalf("%#x is restored from %#x", want, f.saved[r.OnHost])
		}
	case ActFreeHost:
		if f.saved[r.OnHost][1] != r.OnBytes {
			f.t.Fatalf("%d bytes of the host are freed, not %d", r.OnBytes, f.saved[r.OnHost][1])
		}
		delete(f.saved, r.OnHost)
	}
}
