package profile

import (
	"unsafe"

	"tieralloc/internal/config"
)

// Fields of a profile (github.com/google/pprof/proto/profile.proto).
const (
	fieldSampleType  = 1
	fieldSample      = 2
	fieldMapping     = 3
	fieldLocation    = 4
	fieldFunction    = 5
	fieldString      = 6
	fieldTime        = 9
	fieldDuration    = 10
	fieldPeriodType  = 11
	fieldPeriod      = 12
	fieldComment     = 13
	fieldDefaultType = 14
)

// The first strings of each profile. A string's number is its place.
const (
	stringEmpty = iota
	stringAllocObjects
	stringAllocSpace
	stringInuseObjects
	stringInuseSpace
	stringPeakSpace
	stringRecentSpace
	stringLifetime
	stringInuseSamples
	stringHeatSpace // only where heat was measured
	stringTouches
	stringCount
	stringBytes
	stringNanoseconds
	stringSpace
	stringTier
	stringHint
	stringThread
	stringSizeMedian
	stringSizeMin
	stringSizeMax
	stringLifetimeMedian
	stringHeat
	firstStrings
)

// kindWords is where words has the kinds of device memory.
const kindWords = 28

// words is padded to a power of two.
var words = [32]string{
	stringAllocObjects: "alloc_objects",
	stringAllocSpace:   "alloc_space",
	stringInuseObjects: "inuse_objects",
	stringInuseSpace:   "inuse_space",
	stringPeakSpace:    "peak_space",
	stringRecentSpace:  "recent_space",
	stringLifetime:     "lifetime",
	stringInuseSamples: "inuse_samples",
	stringHeatSpace:    "heat_space",
	stringTouches:      "touches",
	stringCount:        "count",
	stringBytes:        "bytes",
	stringNanoseconds:  "nanoseconds",
	stringSpace:        "space",
	stringTier:         "tier",
	stringHint:         "hint",
	stringThread:       "thread",

	stringSizeMedian:     "size_median",
	stringSizeMin:        "size_min",
	stringSizeMax:        "size_max",
	stringLifetimeMedian: "lifetime_median",
	stringHeat:           "heat_log2",

	kindWords + Device:  "device",
	kindWords + Managed: "managed",
	kindWords + Spilled: "spilled",
}

// About is what a profile says of its process.
type About struct {
	Program, ProgramLen uintptr // its path
	Pid                 uint64
	Unix, Now           uint64 // the time, in nanoseconds since 1970 and monotonic
}

// Write writes the table as a pprof profile, without symbols, to room bytes at dst, and returns how
// many it needs. Precondition: the table is held, and Settle was called.
func Write(dst, room uintptr, a *About) uintptr {
	e := encoder{dst: dst, room: room}
	for i := range firstStrings {
		e.addString(words[i&(len(words)-1)])
	}
	e.types()
	e.number(fieldPeriod, Rate)
	e.number(fieldTime, a.Unix)
	e.number(fieldDuration, a.Now-min(a.Now, t.start))
	e.comments(a)
	if t.program != 0 {
		e.mapping(t.program) // readers take the first for the program
	}
	for i := uintptr(1); i <= t.objectN; i++ {
		if i != t.program {
			e.mapping(i)
		}
	}
	for i := uintptr(0); i < t.locationN; i++ {
		l := &t.locations[i&(locationCount-1)]
		at := e.open(fieldLocation)
		e.number(1, uint64(i+1))
		e.number(2, uint64(l.object))
		e.number(3, uint64(l.pc))
		e.close(at)
	}
	e.python()
	e.samples()
	return e.n
}

// types writes what the values of a sample are: Settle's and Write's order.
func (e *encoder) types() {
	last := uint64(stringInuseSamples)
	if t.heatTime > 0 {
		last = stringTouches
	}
	for i := uint64(stringAllocObjects); i <= last; i++ {
		unit := uint64(stringBytes)
		switch i {
		case stringAllocObjects, stringInuseObjects, stringInuseSamples, stringTouches:
			unit = stringCount
		case stringLifetime:
			unit = stringNanoseconds
		}
		e.valueType(fieldSampleType, i, unit)
	}
	if t.deviceSites != 0 {
		e.deviceTypes()
	}
	e.number(fieldDefaultType, stringInuseSpace)
	e.valueType(fieldPeriodType, stringSpace, stringBytes)
}

func (e *encoder) valueType(field, kind, unit uint64) {
	at := e.open(field)
	e.number(1, kind)
	e.number(2, unit)
	e.close(at)
}

// comments writes a line for each of the process's properties.
func (e *encoder) comments(a *About) {
	at := e.beginString()
	e.text("program ")
	e.bytes(a.Program, a.ProgramLen)
	e.comment(at)
	e.count("pid ", a.Pid)
	e.count("samples ", Stacks)
	e.count("bytes between samples at most ", t.farthest)
	e.count("stacks not unwound to their end ", Broken)
	e.count("stacks shortened ", Shortened)
	e.count("dropped ", t.dropped)
}

func (e *encoder) count(name string, n uint64) {
	at := e.beginString()
	e.text(name)
	e.decimal(n)
	e.comment(at)
}

func (e *encoder) comment(at uintptr) {
	e.number(fieldComment, e.endString(at))
}

// mapping writes object i, from 1 on.
func (e *encoder) mapping(i uintptr) {
	o := &t.objects[(i-1)&(objectCount-1)]
	name := e.addBytes(o.Name, o.NameLen)
	id := e.addHex(uintptr(unsafe.Pointer(&o.ID)), o.IDLen)
	at := e.open(fieldMapping)
	e.number(1, uint64(i))
	e.number(2, uint64(o.Low))
	e.number(3, uint64(o.High))
	e.number(4, uint64(o.Offset))
	e.number(5, name)
	e.number(6, id)
	e.close(at)
}

// samples writes the sites: a sample for each, and one for each class of heat of its blocks.
func (e *encoder) samples() {
	name, thread := uint64(0), [2]uint64{}
	for i := uintptr(0); i < t.siteN; i++ {
		s := &t.sites[i&(siteCount-1)]
		d := &t.spreads[i&(siteCount-1)]
		if name == 0 || s.Thread != thread {
			thread = s.Thread
			n := uintptr(0)
			for n < 16 && thread[n/8&1]>>(n%8*8)&0xff != 0 {
				n++
			}
			name = e.addBytes(uintptr(unsafe.Pointer(&s.Thread)), n)
		}
		if s.Kind != Host {
			e.deviceSample(s, d, name)
			continue
		}
		hint, tier := e.addString(config.HintWord(s.Hint)), e.addString(config.TierWord(s.Tier))
		at := e.open(fieldSample)
		e.stack(s)
		e.values(d.size.sum, s.Bytes, d.live(), s.liveBytes(), s.Peak, s.Recent,
			s.Lifetime, s.sampled, 0, 0)
		e.labels(tier, hint, name)
		e.spread(d)
		e.close(at)
		for c := uintptr(0); c < heatClasses && t.heatTime > 0; c++ {
			u := &t.uses[i&(siteCount-1)][c&(heatClasses-1)]
			if u.bytes == 0 {
				continue
			}
			at = e.open(fieldSample)
			e.stack(s)
			e.values(0, 0, 0, 0, 0, 0, 0, 0, float64(u.bytes)/t.heatTime,
				float64(u.touches)/t.heatTime)
			e.labels(tier, hint, name)
			e.measure(stringHeat, uint64(c)-heatBias, stringCount)
			e.close(at)
		}
	}
}

// spread writes the labels of sizes and lifetimes.
func (e *encoder) spread(d *spread) {
	e.measure(stringSizeMedian, d.size.median(), stringBytes)
	e.measure(stringSizeMin, d.size.low(), stringBytes)
	e.measure(stringSizeMax, d.size.high, stringBytes)
	if d.lifetime.sum != 0 {
		e.measure(stringLifetimeMedian, d.lifetime.median()<<lifetimeShift, stringNanoseconds)
	}
}

// values writes the values of a sample of the host, in the order of their types.
func (e *encoder) values(allocs, bytes, live, liveBytes, peak, recent, lifetime float64,
	sampled uint32, heatSpace, touches float64) {
	at := e.open(fieldValues)
	e.varint(whole(allocs))
	e.varint(whole(bytes))
	e.varint(whole(live))
	e.varint(whole(liveBytes))
	e.varint(whole(peak))
	e.varint(whole(recent))
	e.varint(whole(lifetime))
	e.varint(uint64(sampled))
	if t.heatTime > 0 {
		e.varint(whole(heatSpace))
		e.varint(whole(touches))
	}
	if t.deviceSites != 0 {
		e.zeros(baseTypes)
	}
	e.close(at)
}

// labels writes the labels that all samples have.
func (e *encoder) labels(tier, hint, thread uint64) {
	e.label(stringTier, tier)
	e.label(stringHint, hint)
	e.label(stringThread, thread)
}

func (e *encoder) stack(s *Site) {
	at := e.open(1)
	for k := uint32(0); k < s.Depth; k++ {
		switch l := t.frames[(s.Stack+k)&(stackWords-1)]; {
		case l&pythonFrame != 0:
			e.varint(uint64(l&^pythonFrame) + pythonID)
		case l != 0:
			e.varint(uint64(l))
		}
	}
	e.close(at)
}

func (e *encoder) label(key, value uint64) {
	at := e.open(3)
	e.number(1, key)
	e.number(2, value)
	e.close(at)
}

// measure writes a label that is a number.
func (e *encoder) measure(key, value, unit uint64) {
	at := e.open(3)
	e.number(1, key)
	e.number(3, value)
	e.number(4, unit)
	e.close(at)
}

// whole rounds an estimate, which is not below 0 but for the errors of its sum.
func whole(v float64) uint64 {
	if v < 0 {
		return 0
	}
	return uint64(int64(v + 0.5))
}
