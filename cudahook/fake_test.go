package cudahook

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"tieralloc/internal/config"
	"tieralloc/internal/raw"
)

// fake is a driver that carries out actions on the host. Streams are queues: work that was
// given to one is unfinished until the test, or a wait, completes it. clocks say what is
// ordered before what: a stream's clock has, for each stream, how much of it is done before
// what this one is given next.
type fake struct {
	t       testing.TB
	rng     *rand.Rand
	memory  map[uint64]uint64 // by device
	used    map[uint64]uint64
	device  map[uint64]uint64 // of a context
	primary map[uint64]uint64
	peers   map[[2]uint64]bool // user, owner
	streams map[streamKey]*fakeStream
	events  map[uint64]*fakeEvent
	allocs  map[uint64]fakeAlloc
	gaps    []fakeAlloc // freed ranges, which may be handed out again
	next    uint64
	handles uint64
	now     uint64

	fail      map[Action]uint64 // action: the result of the next one
	failRate  float64
	noContext bool   // no events for whole contexts
	unmanaged uint64 // what requests for managed memory end with, unless 0

	unreserved uint64            // what requests for addresses end with, unless 0
	reserved   map[uint64]uint64 // start and bytes
	pieces     map[uint64]uint64 // start and bytes
	saved      map[uint64][2]uint64
	access     uint64 // other devices with access to what was mapped last
	calls      map[Action]int
}

type streamKey struct{ context, stream uint64 }

type clock map[streamKey]int

type fakeStream struct {
	key   streamKey
	done  int // items that are complete
	items []fakeItem
	clock clock
}

type fakeItem struct {
	need       clock // what has to be done before it
	start, end uint64
	block      uint64 // number of the block
}

type fakeEvent struct {
	context  uint64
	recorded bool
	snap     clock
}

type fakeAlloc struct {
	start, bytes, device uint64
	managed, prefers     bool // managed; and prefers the device
	piece                bool // mapped at a reserved address
}

func newFake(t testing.TB, seed uint64) *fake {
	return &fake{t: t, rng: rand.New(rand.NewPCG(seed, 1)), memory: map[uint64]uint64{},
		used:   map[uint64]uint64{},
		device: map[uint64]uint64{}, primary: map[uint64]uint64{}, peers: map[[2]uint64]bool{},
		streams: map[streamKey]*fakeStream{}, events: map[uint64]*fakeEvent{},
		allocs: map[uint64]fakeAlloc{}, reserved: map[uint64]uint64{}, pieces: map[uint64]uint64{},
		saved: map[uint64][2]uint64{},
		next:  1 << 33, handles: 100, now: 1e9, fail: map[Action]uint64{}, calls: map[Action]int{}}
}

// addContext makes a context on a device.
func (f *fake) addContext(context, device, memory uint64) {
	f.device[context] = device
	f.memory[device] = memory
	if f.primary[device] == 0 {
		f.primary[device] = context
	}
}

func (f *fake) stream(context, stream uint64) *fakeStream {
	k := streamKey{context, ordered(stream)}
	s := f.streams[k]
	if s == nil {
		s = &fakeStream{key: k, clock: clock{}}
		f.streams[k] = s
	}
	return s
}

// inOrder is the streams in an order that is the same in each run.
func (f *fake) inOrder() []*fakeStream {
	return slices.SortedFunc(maps.Values(f.streams), func(a, b *fakeStream) int {
		return cmp.Or(cmp.Compare(a.key.context, b.key.context),
			cmp.Compare(a.key.stream, b.key.stream))
	})
}

func (c clock) merge(o clock) {
	for k, v := range o {
		c[k] = max(c[k], v)
	}
}

// launch gives a stream work on a range.
func (f *fake) launch(context, stream, start, bytes, number uint64) {
	s := f.stream(context, stream)
	s.items = append(s.items, fakeItem{clock{}, start, start + bytes, number})
	s.clock[s.key] = len(s.items)
}

// complete finishes the first n items of a stream, and what they wait for.
func (f *fake) complete(s *fakeStream, n int) {
	for s.done < n {
		need := s.items[s.done].need
		s.done++
		for k, v := range need {
			if o := f.streams[k]; o != nil {
				f.complete(o, v)
			}
		}
	}
}

func (f *fake) finishContext(context uint64) {
	for k, s := range f.streams {
		if k.context == context {
			f.complete(s, len(s.items))
		}
	}
}

func (f *fake) idle(c clock) bool {
	for k, v := range c {
		if s := f.streams[k]; s != nil && s.done < v {
			return false
		}
	}
	return true
}

// unfinished returns what is still at work in a range and not ordered before what the
// stream is given next; stream 0,0 has nothing ordered before it.
func (f *fake) unfinished(start, bytes uint64, user streamKey) error {
	var before clock
	if s := f.streams[user]; s != nil {
		before = s.clock
	}
	for k, s := range f.streams {
		for i := s.done; i < len(s.items); i++ {
			it := &s.items[i]
			if it.start < start+bytes && start < it.end && before[k] <= i {
				return fmt.Errorf("item %d of stream %v works in [%#x, %#x)", i, k, it.start,
					it.end)
			}
		}
	}
	return nil
}

func (f *fake) alloc(device, bytes uint64, managed bool) (uint64, bool) {
	if !managed && f.used[device]+bytes > f.memory[device] {
		return 0, false
	}
	at := uint64(0)
	asked := bytes
	bytes = rounded(bytes)
	for i, g := range f.gaps {
		if g.bytes >= bytes && f.rng.IntN(2) == 0 {
			at = g.start
			if g.bytes > bytes {
				f.gaps[i] = fakeAlloc{start: g.start + bytes, bytes: g.bytes - bytes}
			} else {
				f.gaps = append(f.gaps[:i], f.gaps[i+1:]...)
			}
			break
		}
	}
	if at == 0 {
		at = f.next
		f.next += bytes + uint64(f.rng.IntN(3))*512
	}
	if !managed {
		f.used[device] += asked
	}
	f.allocs[at] = fakeAlloc{start: at, bytes: asked, device: device, managed: managed}
	return at, true
}

func (f *fake) release(address uint64) bool {
	a, ok := f.allocs[address]
	if !ok || a.piece {
		return false
	}
	delete(f.allocs, address)
	if !a.managed {
		f.used[a.device] -= a.bytes
	}
	f.gaps = append(f.gaps, fakeAlloc{start: a.start, bytes: rounded(a.bytes)})
	return true
}

// covering is the allocation that a range lies in.
func (f *fake) covering(start, bytes uint64) (fakeAlloc, bool) {
	for _, a := range f.allocs {
		end := a.start + (a.bytes+511)&^511
		for next := f.allocs[end]; a.piece && next.piece; next = f.allocs[end] {
			end += next.bytes
		}
		if a.start <= start && start+bytes <= end {
			return a, true
		}
	}
	return fakeAlloc{}, false
}

// act carries out one action for a request.
func (f *fake) act(r *Request, action Action) {
	f.calls[action]++
	r.Result = Success
	if code, ok := f.fail[action]; ok {
		delete(f.fail, action)
		r.Result = code
		return
	}
	if f.failRate > 0 && action != ActContext && action != ActPrimary && action != ActUnreserve &&
		f.rng.Float64() < f.failRate {
		r.Result = 719 // CUDA_ERROR_LAUNCH_FAILED
		if action == ActSynchronize {
			f.finishContext(r.OnContext) // nothing of it goes on
		}
		return
	}
	device, known := f.device[r.Context]
	if !known && action != ActPrimary && action != ActUnreserve {
		f.t.Fatalf("action %d in context %#x, which is none", action, r.Context)
	}
	switch action {
	case ActPrimary:
		r.Value = f.primary[r.Device]
		if r.Value == 0 {
			r.Result = 101
		}
	case ActContext:
		r.Value, r.Extra = device, f.memory[device]
	case ActMap:
		var ok bool
		if r.Value, ok = f.alloc(device, r.OnBytes, false); !ok {
			r.Result = ErrorOutOfMemory
		}
	case ActMapManaged:
		if r.Result = f.unmanaged; r.Result != Success {
			return
		}
		r.Value, _ = f.alloc(device, r.OnBytes, true)
		a := f.allocs[r.Value]
		a.prefers = r.PreferDevice == 1
		f.allocs[r.Value] = a
	case ActDriver:
		f.ownCall(r, device)
	case ActReserve:
		if f.unreserved != Success {
			r.Result = f.unreserved
			return
		}
		r.Value = f.reserve(r.OnBytes)
	case ActUnreserve:
		f.unreserve(r)
	case ActMapAt:
		r.Result = f.mapAt(r, device)
	case ActUnmapAt:
		f.unmapAt(r)
	case ActAccess:
	case ActSave, ActRestore, ActFreeHost:
		f.actHost(r, action)
	case ActUnmap:
		for c := range f.device { // as the driver does
			f.finishContext(c)
		}
		if !f.release(r.OnAddress) {
			f.t.Fatalf("%#x is unmapped, and is not mapped", r.OnAddress)
		}
	case ActZero:
		if _, ok := f.covering(r.OnAddress, r.OnBytes); !ok {
			f.t.Fatalf("%d bytes at %#x are cleared and not mapped", r.OnBytes, r.OnAddress)
		}
	case ActSynchronize:
		if _, ok := f.device[r.OnContext]; !ok {
			f.t.Fatalf("context %#x is waited for and is none", r.OnContext)
		}
		if capturing() {
			r.Result = 900
			return
		}
		f.finishContext(r.OnContext)
	case ActYield:
	case ActInfo:
		r.Value, r.Extra = f.memory[device]-f.used[device], f.memory[device]
	default:
		f.actEvent(r, action)
	}
}

// ownCall is the program's own call to the driver.
func (f *fake) ownCall(r *Request, device uint64) {
	if r.Op == OpFree || r.Op == OpStreamFree {
		for c := range f.device {
			f.finishContext(c)
		}
		if !f.release(r.Address) {
			r.Result = ErrorInvalidValue
		}
		return
	}
	var ok bool
	if r.Value, ok = f.alloc(device, r.Bytes, false); !ok {
		r.Result = ErrorOutOfMemory
	}
}

// newRequest is a request in mapped memory, as C's is outside the Go heap.
func newRequest(token uint64) *Request {
	r := (*Request)(raw.Ptr(raw.Map(raw.RoundUp(unsafe.Sizeof(Request{}), raw.Page))))
	r.Token = token
	return r
}

// run carries a request out to its end, and returns the last action.
func (f *fake) run(r *Request) Action {
	f.now += 1000
	r.Now = f.now
	for range 1 << 20 {
		switch action := Step(r); action {
		case ActDone, ActPass:
			return action
		case ActForget:
			SampleBegin(r, true)
		case ActSample:
			if SampleBegin(r, true) != nil {
				SampleEnd(r, true, 0)
			}
			return ActDone
		default:
			f.act(r, action)
		}
	}
	f.t.Fatal("a request does not end")
	return 0
}

// fresh makes the package as new, with these settings.
func fresh(t testing.TB, set func(*config.CUDA)) {
	t.Helper()
	c := config.CUDA{Enable: true, SegmentSize: 20 << 20, CacheLimit: config.NoLimit,
		Expandable: true}
	if set != nil {
		set(&c)
	}
	for i := range heaps {
		if h := &heaps[i]; h.context != 0 {
			h.lock.Reset()
			endContext(8, h.context)
		}
		for b := heaps[i].arena.spare; b != 0; {
			next := raw.Load(b)
			raw.Unmap(b, chunkBytes)
			b = next
		}
		heaps[i] = heap{}
	}
	devices = [deviceMax]device{}
	leaving.n = 0
	peers = [peerMax]peer{}
	captures, off, crowded, paired, freesUnknown = 0, 0, 0, 0, 0
	if history.base != 0 {
		raw.Unmap(history.base, historyMax*eventBytes)
	}
	history.base, history.next, recording = 0, 0, 0
	tableLock.Reset()
	setup(&c, config.HintWarm, false)
}
