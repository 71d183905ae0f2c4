package verify

import "strings"

// Module is the project's import path.
const Module = "tieralloc"

// rooms gives each data-plane room, by its folder, its place in the order that
// docs/architecture.md tells. A room may import rooms of a lower number only, so two of
// the same number (alloc and cudahook) never import each other.
var rooms = map[string]int{
	"internal/lockrank": -1, // raw's locks compare themselves with it

	"internal/raw":     0,
	"internal/version": 0,
	"internal/config":  1,
	"internal/sysfs":   1,
	"internal/cgroup":  2,
	"internal/group":   2,
	"numa":             2,
	"numa/plan":        3,
	"numa/probe":       3,
	"stats":            2,
	"stats/document":   4,
	"stats/profile":    3,
	"internal/pystack": 1,
	"internal/unwind":  1,
	"throttle":         2,
	"tiers":            3,
	"alloc/sizeclass":  0,
	"alloc":            4,
	"cudahook":         4,
	"cudahook/manager": 5, // it counts as the device heap rounds
	// what the process was told and reports: it ties the rooms together
	"internal/process": 6,
}

// doors are the two packages that may import "C": package main with the
// exports, and the folder of C and assembly.
var doors = map[string]bool{"": true, "interpose": true}

// free reports whether a folder is no part of the library.
func free(dir string) bool {
	return dir == "internal/testlib" || strings.HasPrefix(dir, "tests/") ||
		strings.HasPrefix(dir, "cmd/")
}

// RoomPackages lists the import paths of the data-plane rooms.
func RoomPackages() []string {
	var list []string
	for dir := range rooms {
		list = append(list, Module+"/"+dir)
	}
	return list
}

// ProjectRules are the rules that the built library is held to. Package names
// in symbols are import paths, but package main is "main".
func ProjectRules() *Rules {
	return &Rules{
		Own: func(pkg string) bool {
			dir, ok := strings.CutPrefix(pkg, Module+"/")
			_, room := rooms[dir]
			return pkg == "main" || ok && (room || doors[dir])
		},
		// No Go function of the data plane calls through a pointer. Whoever adds
		// one writes its name and the reason here.
		Indirect: map[string]string{},
	}
}
