// Package tiers holds black-box tests of the memory tiers: hints, rules, capacity,
// throttle, migration, huge pages and live statistics of programs that have the
// library preloaded. They run on a machine with one node, where the tiers are
// simulated: everything holds as with real nodes but for where the pages lie.
//
// Most of them are scripts for testdata/driver.c with the expected answers beside
// the commands.
package tiers
