package heat

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Damon has the kernel's DAMON look at one page of each region at a time, by its sysfs. It needs
// root and Linux 6.2, and serves one program at a time. A sample waits for the end of an
// aggregation, which says in how many of 20 looks the page had been accessed since the look before.
// The window is the time from look to look. With many regions the budget makes it long: a sample
// may wait many seconds.
type Damon struct {
	started  bool
	regions  []Range
	window   window // only its tallies, and what is made of them
	interval time.Duration
	spent    time.Duration // the kernel thread's processor time at the last sample
	last     time.Time
	begun    time.Time // when the aggregation began, or one before it
}

func (*Damon) Name() string     { return "DAMON" }
func (*Damon) WritesOnly() bool { return false }

// damonRoot is the folder of DAMON's files. Tests have one of their own.
var damonRoot = "/sys/kernel/mm/damon/admin/kdamonds/"

// moduleRoot is the folder of the kernel's modules. Tests have one of their own.
var moduleRoot = "/sys/module/"

// Names of files in damonRoot.
const (
	damonCount    = "nr_kdamonds"
	damonPid      = "0/pid"
	damonState    = "0/state"
	damonContexts = "0/contexts/"
	damonContext  = damonContexts + "0/"
	damonTried    = damonContext + "schemes/0/tried_regions/"
)

const (

	// damonLooks are the looks of an aggregation.
	damonLooks = 20

	// damonLongest is the longest interval that is chosen for what was touched. An aggregation is
	// as long as the longest window then.
	damonLongest = longestWindow / damonLooks

	// damonMost is the number of regions beyond which DAMON joins those that look alike.
	damonMost = 4096
)

// setting is a file of DAMON's and what is written to it.
type setting struct{ name, value string }

func apply(settings ...setting) error {
	for _, s := range settings {
		if err := write(damonRoot+s.name, s.value); err != nil {
			return err
		}
	}
	return nil
}

func (s *Damon) Probe() error {
	if err := s.claim(); err != nil {
		return err
	}
	defer s.release()
	path := damonRoot + damonContext + "avail_operations"
	operations, err := readWord(path)
	if err == nil && !strings.Contains(operations, "fvaddr") {
		err = fmt.Errorf("%s is %q: a kernel with CONFIG_DAMON_VADDR is needed", path, operations)
	}
	return err
}

// claim makes a kdamond, unless another program has one. It leaves none behind if it fails.
func (s *Damon) claim() error {
	if err := kernelHas(); err != nil {
		return err
	}
	path := damonRoot + damonCount
	count, err := readWord(path)
	if err != nil {
		return needing(err, "root", "a kernel with CONFIG_DAMON_SYSFS")
	}
	if count != "0" && !abandoned() {
		return fmt.Errorf("%s is %s: another program has DAMON, of which there is one", path,
			count)
	}
	if err = apply(setting{damonCount, "1"}); err == nil {
		if err = apply(setting{damonContexts + "nr_contexts", "1"}); err != nil {
			s.release()
		}
	}
	return needing(err, "a /sys that root may write to", "Linux 5.18")
}

// kernelHas reports as an error that the kernel itself has DAMON. It would refuse to turn ours on.
// damon_stat is on by default in many kernels since Linux 6.17.
func kernelHas() error {
	for _, module := range []string{"damon_stat", "damon_reclaim", "damon_lru_sort"} {
		path := moduleRoot + module + "/parameters/enabled"
		if on, err := readWord(path); err == nil && on == "Y" {
			return fmt.Errorf("%s is Y: the kernel has DAMON, of which there is one", path)
		}
	}
	return nil
}

// abandoned reports that the only kdamond is off because the process that it looked at has ended.
func abandoned() bool {
	state, err := readWord(damonRoot + damonState)
	if err != nil || state != "off" {
		return false
	}
	target, err := readWord(damonRoot + damonContext + "targets/0/pid_target")
	if err != nil {
		return false
	}
	pid, err := strconv.Atoi(target)
	return err == nil && pid > 0 && errors.Is(unix.Kill(pid, 0), unix.ESRCH)
}

// release takes the kdamond away. If that fails, nothing else can be done: the next process that
// wants it finds it abandoned.
func (s *Damon) release() {
	_ = apply(setting{damonState, "off"})
	_ = apply(setting{damonCount, "0"})
}

func (s *Damon) Start(regions []Range) error {
	if s.started {
		return s.replace(regions)
	}
	if err := s.claim(); err != nil {
		return err
	}
	s.started = true
	s.regions = append(s.regions[:0], regions...)
	s.interval = max(firstWindow, time.Duration(s.kept())*Budget*time.Microsecond)
	s.spent, s.last, s.begun = 0, time.Now(), time.Now()
	settings := []setting{
		{damonContext + "operations", "fvaddr"},
		{damonContext + "targets/nr_targets", "1"},
		{damonContext + "targets/0/pid_target", strconv.Itoa(unix.Getpid())},
	}
	settings = append(settings, s.targets()...)
	settings = append(settings, s.intervals()...)
	settings = append(settings, accessed()...)
	return apply(append(settings, setting{damonState, "on"})...)
}

// replace has DAMON look at other regions. Where the kernel does not take them while DAMON runs, it
// begins anew.
func (s *Damon) replace(regions []Range) error {
	if slices.Equal(s.regions, regions) {
		return nil
	}
	s.regions, s.begun = append(s.regions[:0], regions...), time.Now()
	if err := apply(append(s.targets(), s.intervals()...)...); err != nil {
		return err
	}
	if apply(setting{damonState, "commit"}) == nil {
		return nil
	}
	s.spent = 0 // the kernel thread is another one
	return apply(setting{damonState, "off"}, setting{damonState, "on"})
}

// targets are the settings of where DAMON looks.
func (s *Damon) targets() []setting {
	const target = damonContext + "targets/0/regions/"
	settings := []setting{{target + "nr_regions", strconv.Itoa(len(s.regions))}}
	for i, r := range s.regions {
		settings = append(settings,
			setting{target + strconv.Itoa(i) + "/start", decimal(uint64(r.Start))},
			setting{target + strconv.Itoa(i) + "/end", decimal(uint64(r.End))})
	}
	return settings
}

func decimal(n uint64) string { return strconv.FormatUint(n, 10) }

// kept is how many regions DAMON keeps. It refuses fewer than three.
func (s *Damon) kept() int { return max(3, min(len(s.regions), damonMost)) }

// intervals are the settings of how often DAMON looks, and how finely.
func (s *Damon) intervals() []setting {
	const attrs = damonContext + "monitoring_attrs/"
	us := uint64(s.interval / time.Microsecond)
	return []setting{
		{attrs + "intervals/sample_us", decimal(us)},
		{attrs + "intervals/aggr_us", decimal(us * damonLooks)},
		{attrs + "nr_regions/max", strconv.Itoa(max(s.kept(), len(s.regions)))},
		{attrs + "nr_regions/min", strconv.Itoa(s.kept())},
	}
}

// accessed is a scheme that does nothing with the regions that were accessed, which is how DAMON
// shows them.
func accessed() []setting {
	const scheme, most32 = damonContext + "schemes/0/", 1<<32 - 1
	const pattern = scheme + "access_pattern/"
	return []setting{
		{damonContext + "schemes/nr_schemes", "1"},
		{scheme + "action", "stat"},
		{pattern + "sz/max", decimal(1<<64 - 1)},
		{pattern + "nr_accesses/min", "1"},
		{pattern + "nr_accesses/max", decimal(most32)},
		{pattern + "age/max", decimal(most32)},
	}
}

func (s *Damon) Sample(rates []Rate) (resolution uintptr, err error) {
	clear(rates)
	tallies := s.window.empty(len(rates))
	for i, r := range s.regions {
		tallies[i].pages = float64((r.End - r.Start) / pageBytes)
	}
	if err := rest(s.untilEnd(time.Now())); err != nil {
		return 0, err
	}
	if err := apply(setting{damonState, "update_schemes_tried_regions"}); err != nil {
		return 0, err
	}
	s.begun = time.Now()
	for i := 0; ; i++ {
		r, looks, err := triedRegion(i)
		if errors.Is(err, unix.ENOENT) {
			break
		}
		if err != nil {
			return 0, err
		}
		if sharing(s.regions, r) > 0 {
			resolution = max(resolution, r.End-r.Start)
		}
		s.add(rates, tallies, r, looks)
	}
	tenth, all := s.window.hottest(s.regions)
	return resolution, s.adapt(s.window.used.of(tenth, all, s.interval))
}

// untilEnd is how long the aggregation lasts, but for the last two looks. The kernel has a sample
// wait for its end, and not even SIGKILL ends that wait: so most of it is spent asleep.
func (s *Damon) untilEnd(now time.Time) time.Duration {
	aggregation := damonLooks * s.interval
	return max(0, aggregation-now.Sub(s.begun)%aggregation-2*s.interval)
}

// triedRegion reads one of DAMON's regions, and in how many looks it had been accessed.
func triedRegion(i int) (r Range, looks uint64, err error) {
	path := damonRoot + damonTried + strconv.Itoa(i)
	var n [3]uint64
	for i, name := range []string{"/start", "/end", "/nr_accesses"} {
		word, err := readWord(path + name)
		if err != nil {
			return r, 0, err
		}
		if n[i], err = strconv.ParseUint(word, 10, 64); err != nil {
			return r, 0, fmt.Errorf("%s%s: %w", path, name, err)
		}
	}
	return Range{uintptr(n[0]), uintptr(n[1])}, n[2], nil
}

// add adds what the looks at a region of DAMON's found.
func (s *Damon) add(rates []Rate, tallies []tally, r Range, looks uint64) {
	for i := from(s.regions, r.Start); i < len(s.regions) && s.regions[i].Start < r.End; i++ {
		pages := float64(overlap(s.regions[i], r) / pageBytes)
		found := min(float64(looks), damonLooks)
		r := rate(found, damonLooks, pages, s.interval)
		rates[i].PerSecond += r.PerSecond
		rates[i].Looks, rates[i].Look = r.Looks, r.Look
		tallies[i].touched += found / damonLooks * pages
	}
}

// adapt sets DAMON's intervals to suit the share of memory that was touched, within the budget of
// the kernel thread.
func (s *Damon) adapt(touched float64) error {
	spent, err := kdamondTime()
	if err != nil {
		return err
	}
	now := time.Now()
	next := nextInterval(s.interval, touched, spent-s.spent, now.Sub(s.last))
	s.spent, s.last = spent, now
	if next == s.interval {
		return nil
	}
	s.interval, s.begun = next, now
	return apply(append(s.intervals(), setting{damonState, "commit"})...)
}

// nextInterval is nextWindow for DAMON, whose kernel thread spent so much processor time.
func nextInterval(interval time.Duration, touched float64, spent, elapsed time.Duration,
) time.Duration {
	if over := overBudget(spent, elapsed); over > 1 {
		return interval * time.Duration(over)
	}
	next := nextWindow(interval, touched)
	if next < interval && overBudget(2*spent, elapsed) > 1 || next > max(interval, damonLongest) {
		return interval
	}
	return next
}

// overBudget is how many times the budget was spent, rounded up.
func overBudget(spent, elapsed time.Duration) int {
	if elapsed <= 0 {
		return 0
	}
	return int((spent*Budget + elapsed - 1) / elapsed)
}

// kdamondTime is the processor time of the kernel thread.
func kdamondTime() (time.Duration, error) {
	pid, err := readWord(damonRoot + damonPid)
	if err != nil {
		return 0, err
	}
	path := "/proc/" + pid + "/schedstat"
	word, err := readWord(path)
	if err != nil {
		return 0, err
	}
	ns, _, _ := strings.Cut(word, " ")
	n, err := strconv.ParseInt(ns, 10, 64)
	return time.Duration(n), named(path, err)
}

func (s *Damon) Stop() {
	if s.started {
		s.release()
		s.started = false
	}
}
