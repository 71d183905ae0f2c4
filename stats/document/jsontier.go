package document

import (
	"tieralloc/internal/config"
	"tieralloc/stats"
)

func (w *writer) tiers(r *stats.Report) {
	w.key("tiers")
	w.open('{')
	for i := uint(0); i < stats.TierCount; i++ {
		w.key(config.TierWord(uint32(i)))
		w.open('{')
		w.tier(r, i)
		w.close('}')
	}
	w.close('}')
}

// following writes the key "following", unless the process never began to follow.
func (w *writer) following(r *stats.Report) {
	if r.Follows == 0 {
		return
	}
	w.key("following")
	w.open('{')
	w.follow(&r.Following)
	w.close('}')
}

func (w *writer) tierNodes(t *stats.Tier) {
	w.key("nodes")
	w.open('[')
	for i := uint64(0); i < stats.NodeMax; i++ {
		if t.TierNodes>>(i&63)&1 != 0 {
			w.item()
			w.dec(i)
		}
	}
	w.close(']')
}

func (w *writer) bytesPerNode(r *stats.Report, t *stats.Tier) {
	w.key("bytes_per_node")
	w.open('{')
	for i := uint64(0); i < r.NodeCount && i < stats.NodeMax; i++ {
		w.item()
		w.put('"')
		w.dec(r.Nodes[i&(stats.NodeMax-1)])
		w.text("\": ")
		w.dec(t.BytesPerNode[i&(stats.NodeMax-1)])
	}
	w.close('}')
}

// sameMemory lists the tiers that are on the same nodes: their caps hold for all of them together.
func (w *writer) sameMemory(r *stats.Report, tier uint) {
	w.key("same_memory")
	w.open('[')
	for i := uint(0); i < stats.TierCount; i++ {
		if nodes := r.Tiers[tier&3].TierNodes; i != tier && nodes != 0 &&
			r.Tiers[i&3].TierNodes == nodes {
			w.item()
			w.put('"')
			w.text(config.TierWord(uint32(i)))
			w.put('"')
		}
	}
	w.close(']')
}
