package main

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
)

// forRuntime are libc's functions that only the C code of the Go runtime and of net calls, and what
// the runtime calls in its place (boot_dormant.c, boot_reserved.c). In every process the loader
// would search all objects for each of them. crtbeginS.o refers to the last four, which are weak,
// and needs none of them: the library is never unloaded and has no transactions.
var forRuntime = []string{
	"clearenv", "setenv", "unsetenv",
	"setegid", "seteuid", "setgid", "setgroups", "setregid", "setresgid", "setresuid", "setreuid",
	"setuid",
	"freeaddrinfo", "gai_strerror", "getaddrinfo", "getnameinfo", "res_search",
	"abort", "fprintf", "fputc", "fwrite", "strerror", "vfprintf",
	"mmap", "munmap", "nanosleep",
	"pthread_attr_destroy", "pthread_attr_getstack", "pthread_attr_getstacksize",
	"pthread_attr_init", "pthread_attr_setdetachstate",
	"pthread_cond_broadcast", "pthread_cond_wait", "pthread_getattr_np",
	"pthread_key_create", "pthread_mutex_lock", "pthread_mutex_unlock", "pthread_self",
	"pthread_setspecific", "pthread_sigmask",
	"sigaction", "sigaddset", "sigemptyset", "sigfillset", "sigismember",
	"_ITM_deregisterTMCloneTable", "_ITM_registerTMCloneTable", "__cxa_finalize", "__gmon_start__",
}

// named splits relocations that are not relative into those of forRuntime and the others.
func (m *image) named(table []elf.Rela64) (others, named []elf.Rela64, err error) {
	for _, r := range table {
		name, err := m.target(r)
		if err != nil {
			return nil, nil, err
		}
		if elf.R_X86_64(elf.R_TYPE64(r.Info)) == elf.R_X86_64_GLOB_DAT &&
			slices.Contains(forRuntime, name) {
			named = append(named, r)
		} else {
			others = append(others, r)
		}
	}
	return others, named, nil
}

// target returns the name of the symbol that a relocation refers to.
func (m *image) target(r elf.Rela64) (string, error) {
	at, err := m.fileOffset(m.dynamic(elf.DT_SYMTAB) + uint64(elf.R_SYM64(r.Info))*elf.Sym64Size)
	if err != nil {
		return "", err
	}
	at, err = m.fileOffset(m.dynamic(elf.DT_STRTAB) +
		uint64(binary.LittleEndian.Uint32(m.data[at:])))
	if err != nil {
		return "", err
	}
	name, _, ok := strings.Cut(string(m.data[at:min(at+256, uint64(len(m.data)))]), "\x00")
	if !ok {
		return "", fmt.Errorf("a symbol of %s has no end", name)
	}
	return name, nil
}
