package main

import (
	"debug/elf"
	"os"
	"syscall"
)

// An object is a file that the loader loads.
type object struct {
	id     fileID
	malloc bool // it defines malloc
	ours   bool // it is the library
}

// objects caches the results of lookAt.
var objects = map[fileID]object{}

// lookAt returns the object at path. If there is no file, as for the kernel's own object, the
// object defines nothing.
func lookAt(path string) object {
	info, err := os.Stat(path)
	if err != nil {
		return object{}
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.Mode().IsRegular() {
		return object{}
	}
	id := fileID{stat.Dev, stat.Ino}
	if o, ok := objects[id]; ok {
		return o
	}
	o := object{id: id}
	if file, err := elf.Open(path); err == nil {
		symbols, _ := file.DynamicSymbols() // without any there is an error
		for _, s := range symbols {
			if s.Section != elf.SHN_UNDEF {
				o.malloc = o.malloc || s.Name == "malloc"
				o.ours = o.ours || s.Name == "ta_stats_write"
			}
		}
		file.Close()
	}
	objects[id] = o
	return o
}
