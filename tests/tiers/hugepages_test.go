package tiers_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// hugeScript uses memory in every way, in the fast tier: it answers the same whatever
// the pages are.
const hugeScript = `
	new a 2 hot 10M => fast*2
	new b 60 hot 10000 => fast*60
	new c 3 hot 300K => fast*3
	new d 2 calloc 9M => normal*2
	new e 2000 malloc 50 => normal*2000
	resize a 14M => fast*2
	resize b 400K => fast*60
	resize c 5M => fast*3
	resize c 100 => fast*3
	move a slow => slow@same*2
	move a fast => fast@same*2
	free b => freed*60
	new f 20 pin_fast 3M => fast*20
	json
	fork
	check a => whole*2
	resize a 20M => fast*2
	free c
	new g 3 hot 6M => fast*3
	json
	end
	check a => whole*2
	check d => whole*2
	free a
	free c
	free d
	free e
	free f
	trim
	json
`

// TestHugePagesWithout: where the kernel has no huge pages to give, programs run on
// ordinary ones, and that is counted.
func TestHugePagesWithout(t *testing.T) {
	pool := poolSize(t, 2048)
	for _, c := range []struct {
		value string
		words [3]string
		falls [3]bool // with an empty pool
	}{
		{"", [3]string{"auto", "auto", "auto"}, [3]bool{}},
		{"off", [3]string{"off", "off", "off"}, [3]bool{}},
		{"thp", [3]string{"thp", "thp", "thp"}, [3]bool{}},
		{"2M", [3]string{"2M", "2M", "2M"}, [3]bool{true, true, false}},
		{"1G", [3]string{"1G", "1G", "1G"}, [3]bool{true, true, false}},
		{"fast:2M,slow:thp", [3]string{"2M", "auto", "thp"}, [3]bool{true, false, false}},
		{"slow:1G,normal:off,fast:thp", [3]string{"thp", "off", "1G"}, [3]bool{}},
	} {
		p := play(t, []string{"TA_HUGEPAGES=" + c.value}, hugeScript)
		for i, x := range p.exit.tiers() {
			if x.HugePages != c.words[i] || pool == 0 && (x.Fallbacks != 0) != c.falls[i] {
				t.Errorf("%s: %s has hugepages %s, %d fallbacks", c.value, tierNames[i],
					x.HugePages, x.Fallbacks)
			}
		}
		last := &p.json[len(p.json)-1]
		if last.Tiers.Fast.Current > 0 || last.Tiers.Slow.Current > 0 ||
			last.Tiers.Normal.Current > 3*mib {
			t.Errorf("%s: when all is freed the tiers are charged with %d, %d and %d bytes",
				c.value,
				last.Tiers.Fast.Current, last.Tiers.Normal.Current, last.Tiers.Slow.Current)
		}
	}
}

// resident is the i-th answer to the driver's command: KiB in transparent huge pages,
// and in those of the kernel's pool.
func (p *played) resident(t *testing.T, i int) (thp, pool int64) {
	t.Helper()
	n := numbers(t, p.to["resident"][i])
	return n[1], n[2]
}

// TestTransparentHugePages: thp makes a tier's memory come in huge pages, and off
// forbids them.
func TestTransparentHugePages(t *testing.T) {
	system, err := os.ReadFile("/sys/kernel/mm/transparent_hugepage/enabled")
	if err != nil || strings.Contains(string(system), "[never]") {
		t.Skipf("the kernel makes no transparent huge pages: %q %v", system, err)
	}
	const script = "new a 4 hot 16M\nnew b 4 cold 16M\nresident"
	for value, mostly := range map[string]int64{"thp": 128 << 10, "fast:thp,slow:off": 64 << 10,
		"off": 0} {
		p := play(t, []string{"TA_HUGEPAGES=" + value}, script)
		thp, _ := p.resident(t, 0)
		if thp > mostly+mostly/16 || thp < mostly/2 { // the kernel may be short of them
			t.Errorf("%s: %d KiB are in huge pages, %d wanted", value, thp, mostly)
		}
	}
}

// hugeDear reports whether a huge page takes the kernel over four times as long as ordinary pages of
// its size, after it had to give a lot of huge pages: a virtual machine whose free memory is with
// its host fetches it for them, and has it for the programs that follow at once.
func hugeDear(t *testing.T) bool {
	t.Helper()
	const huge, sample, n = 2 << 20, 64 << 10, 160 << 20
	m, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(m)
	at := -uintptr(unsafe.Pointer(&m[0])) % huge
	populate := func(part []byte, advice int) time.Duration {
		if err := unix.Madvise(part, advice); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if err := unix.Madvise(part, unix.MADV_POPULATE_WRITE); err != nil {
			t.Skip("the kernel populates no memory: ", err)
		}
		return time.Since(start)
	}
	populate(m[at:n-huge], unix.MADV_HUGEPAGE)
	unix.Madvise(m[at:n-huge], unix.MADV_DONTNEED)
	page := populate(m[at:at+huge], unix.MADV_HUGEPAGE)
	ordinary := populate(m[n-sample:], unix.MADV_NOHUGEPAGE) * huge / sample
	t.Logf("a huge page takes %v, ordinary ones %v", page, ordinary)
	return page > 4*ordinary
}

// TestHugePagesByMeasure: a heap that has grown has huge pages for what it takes from then on, under
// no hard cap and where they are not dear, and what is freed goes back to the kernel all the same.
func TestHugePagesByMeasure(t *testing.T) {
	system, err := os.ReadFile("/sys/kernel/mm/transparent_hugepage/enabled")
	if err != nil || !strings.Contains(string(system), "[madvise]") {
		t.Skipf("the kernel makes no transparent huge pages by madvise: %q %v", system, err)
	}
	const script = "new a %d malloc %s\nresident\nfree a\ntrim\nresident\njson"
	for _, c := range []struct {
		value, blocks string
		n             int
		env           []string
		mostly        int64 // KiB
	}{
		{"auto", "10000", 2000, nil, 0},
		{"auto", "10000", 10000, nil, 60 << 10},
		{"", "10000", 10000, nil, 60 << 10},
		{"", "100000", 1000, nil, 60 << 10},
		{"off", "10000", 10000, nil, 0},
		{"auto", "10000", 10000, []string{"TA_NORMAL_HARD=1G"}, 0},
	} {
		const tries = 10 // other programs may take what the host has just given
		for try := range tries {
			dear := c.mostly != 0 && hugeDear(t)
			p := play(t, withEnv(c.env, "TA_HUGEPAGES="+c.value),
				fmt.Sprintf(script, c.n, c.blocks))
			before, _ := p.resident(t, 0)
			after, _ := p.resident(t, 1)
			r := &p.json[0]
			what := fmt.Sprintf("%q, %d blocks of %s bytes: %d KiB in huge pages, then %d; %+v",
				c.value, c.n, c.blocks, before, after, r.Heap)
			if after > 4<<10 || r.Heap.Committed > 4*mib || r.Heap.Advised < before<<10 ||
				c.mostly == 0 && r.Heap.Advised != 0 {
				t.Fatal(what)
			}
			if before >= c.mostly/2 || dear { // the kernel may be short of them
				break
			}
			if try == tries-1 {
				t.Error(what)
			}
		}
	}
}

// TestTransparentMoved: what ta_move takes out of the middle of a huge page goes back to the
// kernel in the end, and so does the rest.
func TestTransparentMoved(t *testing.T) {
	p := play(t, []string{"TA_HUGEPAGES=thp"}, `
		new a 40 hot 500K => fast*40
		new b 3 hot 500K => fast*3
		move b slow
		tiers b => slow*3
		move a normal
		free a
		free b
		trim
		json
	`)
	if r := &p.json[0]; r.Tiers.Fast.Current != 0 || r.Tiers.Slow.Current != 0 {
		t.Errorf("when all is freed fast is charged with %d bytes, slow with %d",
			r.Tiers.Fast.Current, r.Tiers.Slow.Current)
	}
}

const nrHugepages = "/sys/kernel/mm/hugepages/hugepages-%dkB/%s"

// poolFigure reads a figure of the kernel's pool of pages of some KiB; 0 where there is
// none.
func poolFigure(t *testing.T, kib int, name string) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf(nrHugepages, kib, name))
	if err != nil {
		return 0
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func poolSize(t *testing.T, kib int) int { return poolFigure(t, kib, "nr_hugepages") }

// fillPool gives the kernel's pool so many free pages of 2 MiB for the time of the test.
func fillPool(t *testing.T, pages int) {
	t.Helper()
	before := poolSize(t, 2048)
	set := func(n int) error {
		return os.WriteFile(fmt.Sprintf(nrHugepages, 2048, "nr_hugepages"), []byte(strconv.Itoa(n)),
			0o644)
	}
	if before != 0 {
		t.Skip("the pool of huge pages is in use")
	}
	if err := set(pages); err != nil {
		t.Skipf("the pool of huge pages cannot be set: %v", err)
	}
	t.Cleanup(func() { set(before) })
	if n := poolSize(t, 2048); n != pages {
		t.Skipf("the kernel finds %d huge pages", n)
	}
}

// freePool waits for ended processes to give their pages back.
func freePool(t *testing.T, want int) {
	t.Helper()
	for range 3000 {
		if poolFigure(t, 2048, "free_hugepages") == want &&
			poolFigure(t, 2048, "resv_hugepages") == 0 {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Errorf("%d huge pages are free, %d reserved; %d should be",
		poolFigure(t, 2048, "free_hugepages"), poolFigure(t, 2048, "resv_hugepages"), want)
}

// TestHugetlb: pages of the kernel's pool are used, ordinary ones when they run out,
// and all are given back.
func TestHugetlb(t *testing.T) {
	const pages = 40 // 80 MiB
	fillPool(t, pages)
	p := play(t, []string{"TA_HUGEPAGES=fast:2M"}, `
		new a 2 hot 20M => fast*2
		new b 100 hot 1000 => fast*100
		resident
		new c 2 hot 30M => fast*2
		resident
		json
		check a => whole*2
		free c
		new d 2 hot 25M => fast*2
		resize d 35M => fast*2
		resize a 22M => fast*2
		move d slow => slow@same*2
		free d
		free a
		free b
		trim
		resident
		json
	`)
	_, pool := p.resident(t, 0)
	if pool < 42<<10 || pool > 80<<10 {
		t.Errorf("%d KiB of 40 MiB and a little are in huge pages", pool)
	}
	_, pool = p.resident(t, 1)
	if pool > 80<<10 || pool < 70<<10 || p.json[0].Tiers.Fast.Fallbacks == 0 {
		t.Errorf("%d KiB of 100 MiB are in huge pages, %d fallbacks", pool,
			p.json[0].Tiers.Fast.Fallbacks)
	}
	_, pool = p.resident(t, 2)
	if pool != 0 || p.json[1].Tiers.Fast.Current != 0 {
		t.Errorf("when all is freed %d KiB are in huge pages, fast is charged with %d bytes", pool,
			p.json[1].Tiers.Fast.Current)
	}
	freePool(t, pages)
}

// TestHugetlbFork: a forked child writes to what it has inherited. The kernel copies
// for it, from the pool: it must have as many pages once more, or the child is killed.
func TestHugetlbFork(t *testing.T) {
	const pages = 300
	fillPool(t, pages)
	p := play(t, []string{"TA_HUGEPAGES=2M"}, hugeScript)
	if f := &p.json[0].Tiers.Fast; f.Fallbacks != 0 {
		t.Errorf("fast: %+v", f)
	}
	freePool(t, pages)
}

// TestHugetlbCapped: a hard cap holds for huge pages, too, and nobody is killed.
func TestHugetlbCapped(t *testing.T) {
	fillPool(t, 64)
	p := play(t, []string{"TA_HUGEPAGES=fast:2M,normal:2M", "TA_FAST_HARD=40M", "TA_NORMAL_HARD=41M", "TA_ON_HARDCAP=fail"}, `
		new a 20 hot 3M
		new b 20 malloc 3M
		resident
		json
		free a
		new c 1 hot 39M => fast*1
		check b
		free c
		new d 20 hot 3M
		json
	`)
	if _, pool := p.resident(t, 0); pool > 82<<10 || pool < 40<<10 {
		t.Errorf("%d KiB are in huge pages", pool)
	}
	freePool(t, 64)
}
