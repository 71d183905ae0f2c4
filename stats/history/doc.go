// Package history makes the rows of a live page's history (stats.LiveHistory) from the regions of
// the heap. It is ordinary Go without state.
package history
