package process

import (
	"tieralloc/alloc"
	"tieralloc/internal/config"
	"tieralloc/internal/raw"
	"tieralloc/numa/plan"
)

// beginPaging has the control plane page out the coldest memory (package alloc/background), or
// prints one line that says why swap is not used. It reports whether memory may move between tiers
// instead.
func beginPaging() bool {
	why := plan.SwapUnused(&config.InForce, &tierMap)
	if len(why) == 0 {
		alloc.Watching, alloc.Paging = true, true
		alloc.SetApart(tierMap.Nodes)
		config.InForce.Background = true
		raw.KeepStderr()
		return false
	}
	var l raw.Line
	l.Text("tieralloc: TA_SLOW_BACKEND=swap: swap is not used: ")
	l.Text(why)
	l.Emit(2)
	return !tierMap.Simulated
}
