package main

import (
	"runtime"
	"strings"
	"unsafe"
)

// environ is an environment of NAME=value entries. If a name occurs twice the first entry counts,
// as for getenv.
type environ []string

// get returns the value of name, and whether it has one. An empty value counts as none, as for the
// library.
func (e environ) get(name string) (value string, ok bool) {
	for _, entry := range e {
		if v, found := strings.CutPrefix(entry, name+"="); found {
			return v, v != ""
		}
	}
	return "", false
}

// with returns the environment with name set to value, or without name if value is empty.
func (e environ) with(name, value string) environ {
	out := make(environ, 0, len(e)+1)
	for _, entry := range e {
		if !strings.HasPrefix(entry, name+"=") {
			out = append(out, entry)
		}
	}
	if value != "" {
		out = append(out, name+"="+value)
	}
	return out
}

// names lists the names that begin with prefix and have a value, each once.
func (e environ) names(prefix string) []string {
	var list []string
	seen := map[string]bool{}
	for _, entry := range e {
		name, value, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, prefix) || seen[name] {
			continue
		}
		seen[name] = true
		if value != "" {
			list = append(list, name)
		}
	}
	return list
}

// vector calls use with the address of the environment in the kernel's layout: addresses of C
// strings, then a zero word. It is valid during the call.
func (e environ) vector(use func(envp uintptr)) {
	var pin runtime.Pinner
	defer pin.Unpin()
	words := make([]uintptr, 0, len(e)+1)
	for _, entry := range e {
		words = append(words, cString(&pin, entry))
	}
	words = append(words, 0)
	pin.Pin(&words[0])
	use(uintptr(unsafe.Pointer(&words[0])))
}

// cString returns the address of s as a C string, valid while it is pinned.
func cString(pin *runtime.Pinner, s string) uintptr {
	text := append([]byte(s), 0)
	pin.Pin(&text[0])
	return uintptr(unsafe.Pointer(&text[0]))
}
