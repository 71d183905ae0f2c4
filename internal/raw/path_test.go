package raw

import (
	"testing"
	"unsafe"
)

func TestBaseName(t *testing.T) {
	for path, want := range map[string]string{
		"": "", "a": "a", "/": "", "/a": "a", "a/": "", "/usr/bin/env": "env", "./a//bc": "bc",
	} {
		text := append([]byte(path), 0)
		name, n := BaseName(uintptr(unsafe.Pointer(&text[0])))
		got := text[name-uintptr(unsafe.Pointer(&text[0])):][:n]
		if string(got) != want {
			t.Errorf("%q: %q, not %q", path, got, want)
		}
	}
}
