//go:build lockrank

package lockrank

// On is true in the debug build, in which each lock checks the order.
const On = true
