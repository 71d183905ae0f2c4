// Package region lists the heap for the control plane as regions, whose use the kernel can tell
// apart, and which move between tiers as one. It is ordinary Go. It reaches the heap by functions
// that the caller passes, because only the library itself has the gate that they go through.
package region
