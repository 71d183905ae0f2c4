package heat

import (
	"runtime"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// BenchmarkSample reports the processor time of a sample of a GiB that is all in use, of the
// sampling thread and, where there is one, of DAMON's.
func BenchmarkSample(b *testing.B) {
	const GiB = 1 << 30
	for _, pages := range []struct {
		name   string
		advice int
	}{{"4K", unix.MADV_NOHUGEPAGE}, {"2M", unix.MADV_HUGEPAGE}} {
		all, err := unix.Mmap(-1, 0, GiB+RegionBytes, unix.PROT_READ|unix.PROT_WRITE,
			unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
		if err != nil {
			b.Fatal(err)
		}
		start := (uintptr(unsafe.Pointer(&all[0])) + RegionBytes - 1) &^ (RegionBytes - 1)
		if err := unix.Madvise(all, pages.advice); err != nil {
			b.Skip(err)
		}
		m := &memory{regions: Regions(Range{start, start + GiB})}
		for i := range m.regions {
			m.touch(i, true)
		}
		for _, s := range Sources() {
			b.Run(pages.name+"/"+s.Name(), func(b *testing.B) { m.bench(b, s) })
		}
		unix.Munmap(all)
	}
}

func (m *memory) bench(b *testing.B, s Source) {
	if err := s.Probe(); err != nil {
		b.Skip(err)
	}
	if err := s.Start(m.regions); err != nil {
		b.Fatal(err)
	}
	defer s.Stop()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	counts := make([]Rate, len(m.regions))
	var sum, using time.Duration
	for b.Loop() {
		before := ThreadTime()
		for i := range m.regions {
			m.touch(i, s.WritesOnly())
		}
		using += ThreadTime() - before
		before = ThreadTime()
		if _, err := s.Sample(counts); err != nil {
			b.Fatal(err)
		}
		sum += ThreadTime() - before
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(hugeBytes(b)>>20), "huge-MiB")
	b.ReportMetric(float64(sum.Microseconds())/1e3/float64(b.N), "cpu-ms/GiB")
	b.ReportMetric(float64(using.Microseconds())/1e3/float64(b.N), "use-ms/GiB")
	b.ReportMetric(float64(sum/time.Duration(b.N)*Budget/time.Millisecond)/1e3, "period-s")
}
