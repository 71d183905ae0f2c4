package main

import (
	"bufio"
	"bytes"
	"debug/elf"
	"errors"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// unreachable says why a preloaded library would not get into the program at path, or
// "" when no reason is seen.
func unreachable(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	if info.Mode()&(os.ModeSetuid|os.ModeSetgid) != 0 {
		return "it is set-user-ID or set-group-ID: the loader ignores LD_PRELOAD"
	}
	if _, err := unix.Getxattr(path, "security.capability", nil); err == nil {
		return "it has file capabilities: the loader ignores LD_PRELOAD"
	}
	file, err := elf.Open(path)
	var format *elf.FormatError
	if errors.As(err, &format) {
		if real := interpreter(path); real != "" && real != path {
			return unreachable(real)
		}
		return ""
	}
	if err != nil {
		return ""
	}
	defer file.Close()
	if file.Class != elf.ELFCLASS64 {
		return "it is a 32-bit program"
	}
	for _, p := range file.Progs {
		if p.Type == elf.PT_INTERP {
			return ""
		}
	}
	return "it is statically linked: no library can be preloaded into it"
}

// interpreter is the program that the first line of a script names.
func interpreter(path string) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	line, _ := bufio.NewReader(io.LimitReader(file, 256)).ReadBytes('\n')
	words, script := bytes.CutPrefix(line, []byte("#!"))
	fields := strings.Fields(string(words))
	if !script || len(fields) == 0 {
		return ""
	}
	return fields[0]
}
