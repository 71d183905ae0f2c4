// Package tiers is the policy: which tier a request's memory is charged to, what a tier may hold,
// what it costs to use it, and which hint a request gets by the rules. It knows numbers only;
// package alloc handles memory.
//
// It is freestanding Go (docs/runtime.md), and has no locks: everything that changes after Setup is
// a counter that is changed atomically.
//
// # Memory
//
// Tiers that lie on the same nodes are one memory, and one account. Below, the caps and what is
// compared with them are the account's, "the next" is the next tier with an account that has not
// refused the request, and
//
//	current of an account = the sum of its tiers' current
//
// # Capacity
//
// current[t] is what tier t is charged with now: the bytes of the spans that lie in it, in use or
// cached. A charge comes before the memory, a release after it, so
//
//	resident[t] <= current[t] <= current of its account <= hard[t]     at every moment
//
// [Reserve] decides where n bytes for a hint go, and charges them, by one compare-and-swap. It
// begins with the hint's home ([Home]) and looks at one tier after the other towards the slow one.
// With c = current[t] + n, and a cap that is not set above all c:
//
//	c <= soft[t]                          take t
//	soft[t] < c <= hard[t], the request
//	  stays (below)                       take t                     soft_exceeded[t]
//	  goes on                             trim t, then the next      rerouted[t]
//	hard[t] < c                           trim t, then               capacity_violations[t]
//	  route_slow                          the next                   routed_slow[t]
//	  fail, or PIN_FAST                   refuse                     refused[home]
//
//	             PIN_FAST  HOT     PREFER_FAST  WARM     COLD
//	home         fast      fast    fast         normal   slow
//	reroute      stays     stays   goes on      goes on  goes on
//	warn         stays     stays   stays        stays    stays
//	demote       stays     stays   stays        stays    stays
//
// Trim means that the caller is asked to give cached memory of t back and to call again before t is
// passed over. It is not asked where n alone is above the cap.
//
// A large block may be laid over two tiers ([ReserveSplit]), but for PIN_FAST. The first tier on
// its way that does not take it takes as many of its first bytes as c <= soft[t] lets in (c <=
// hard[t], where the request stays and there is no demotion), whole steps of 2 MiB and one at
// least; the tiers after it are asked for the rest, as above. Where none takes it the first part is
// released, and all is tried once more up to the hard caps. What follows decides if that does not
// fit either. A block that grows ([ReserveGrowth]) asks for the growth from the tier that it is in;
// where it is over two tiers already, of its second for as much as hard[t] lets in.
//
// When no tier is left and a soft cap was in the way of any, the first tier from home on with c <=
// hard[t] takes the request (soft_exceeded): a soft cap never makes an allocation fail, not even
// under fail because the tier that it would go to is full. Otherwise the request is refused.
//
// A block over two tiers was sent on by the first, whose cap was in the way, and taken by the
// second; the first counts rerouted or routed_slow, as it would without a part of it.
//
// The counters are of requests, and each request is counted when it is decided, not when the caller
// is told to trim. A tier that was passed over counts rerouted or routed_slow only if a slower tier
// took the request; refused counts for the home.
//
//	capacity_violations[t] = requests that t's hard cap would not let in after the
//	    trimming, wherever they went then, and refusals of Admit
//	a request over soft[t] counts soft_exceeded[t] or rerouted[t], never both
//
// # Cost
//
// A throttled tier has a bucket (package throttle). In sleep mode [Wait] sleeps. In account mode it
// only counts, and the process runs ahead of where it would be. So there the buckets' clock is
//
//	clock = monotonic time + all waits counted so far
//
// which is when the request would have come had the ones before it been waited for, by one thread.
// Without the second term a wait would be counted again for each request after it, and the sum
// would grow with the square of their number.
package tiers
