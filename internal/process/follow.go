package process

import (
	"tieralloc/alloc"
	"tieralloc/internal/config"
	"tieralloc/internal/raw"
	"tieralloc/tiers"
)

// beginFollowing has the control plane move memory by its use (package alloc/background), or prints
// one line that says why nothing will move.
func beginFollowing() {
	why := ""
	switch {
	case tierMap.Simulated:
		why = "the tiers are simulated, there is one kind of memory only"
	case !config.InForce.Follows():
		why = "with TA_NUMA_BALANCING=1 the kernel moves this memory"
	case !tiers.Followable():
		why = "no tier has both a cap (TA_NORMAL_SOFT, TA_NORMAL_HARD and so on) and slower memory"
	default:
		alloc.Watching, alloc.Following = true, true
		config.InForce.Background = true
		raw.KeepStderr()
		return
	}
	var l raw.Line
	l.Text("tieralloc: TA_ON_SOFTCAP=follow: nothing will move: ")
	l.Text(why)
	l.Emit(2)
}
