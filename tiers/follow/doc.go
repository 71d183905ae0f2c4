// Package follow decides which regions of memory move between tiers, so that the most used memory
// lies in the fastest tier that the caps let it into.
//
// Once a period, after a sample of its heat, the caller lists its regions and calls [Planner.Plan].
// It carries out the moves in their order. A move may fail: the caller reports memory that cannot
// move to [Planner.Refused], and the next plan starts from where the regions are then. Waits are
// counted in periods. They suit an estimate of heat with a half-life of some four samples.
//
// A period may be minutes. Some times a second the caller asks [Planner.Fill] what goes up into
// room that has come since the last plan.
//
// It is ordinary Go for the control plane. It makes no system calls, starts no goroutines and reads
// no clock.
//
// # Which regions move
//
// Each pair of neighbouring tiers, the fastest first, is an upper and a lower one.
//
//	upper is over its soft cap      the coldest go down until it is within    CapExceeded
//	upper has room                  the hottest of lower go up                Room
//	lower has hotter regions        they go up, and before each of them       Hotter
//	                                the coldest that make room for it         Colder
//
// Upper has room up to its smaller cap less a margin: 1/64 of the cap or a mean region, which is
// left to new allocations. An exchange leaves no tier fuller than that, or than it was.
//
// A hint ranks before heat. The lower rank goes down first, RankHot goes up whatever its heat, no
// region takes the place of a higher rank, and RankCold goes up into free room only. A region whose
// heat is not known goes down after the known ones of its rank, and takes part in no exchange.
//
// # When a move is worth it
//
// Heat is touches per page and second. An exchange must save more time than it costs:
//
//	saved = (touches of what goes up - touches of what goes down) * residence * 1 us
//	cost  = pages of both * 2 us
//
// residence is how long the region will be of use there. It is taken to be as long as its last stay
// in the upper tier, else as long as it has been seen in the lower one: 15 s to 10 minutes. The
// region must also be hotter than each that it replaces by a ratio and by more than chance.
//
// # Why memory does not move back and forth
//
// A region is hot when it stays hot. It goes up when it has been hotter than the coldest of upper
// for some periods (patience) in which its heat did not fall, or when its least heat of a long time
// is enough. A scan makes each region hot once: its heat falls from then on, and it stays where it
// is.
//
// Patience grows when much of what went up lately turned cold soon. It halves when that has not
// happened for a long time.
//
// A region that moved rests: it does not turn back for some periods, and for twice as many each
// time that it came back down. Only a cap makes it turn earlier, when nothing else is left of its
// rank. A region that was refused waits too, twice as long each time.
//
// Between two plans each region moves once at most, and up. If a soft cap then takes memory back
// from the tier that was filled, the tier rests from that in the same way.
package follow
