package config

import (
	"syscall"

	"tieralloc/internal/raw"
)

// merged is the environment with the lines of the file behind it, while it is read.
var merged Merged

// exe is the path of the file that runs, while it is compared.
var exe Text

// Configure fills InForce for a process in whose environment, or in the file for the whole system,
// there may be settings. file is a descriptor, which it closes, or a negative number; envp may be
// 0. program is AT_EXECFN, secure AT_SECURE. It returns the environment to read on in, which is
// valid until Forget, and how many settings are bad.
func Configure(file, envp, program uintptr, secure bool) (all, bad uintptr) {
	if int(file) >= 0 {
		if merged = ReadFile(file, envp, secure); merged.Envp != 0 {
			envp = merged.Envp
		}
	}
	if Only(envp) && !named(envp, program, secure) {
		// the settings, right or wrong, are for others
		InForce.setDefaults()
		InForce.Disable = true
		return envp, 0
	}
	return envp, Parse(&InForce, envp)
}

// Forget gives the memory back that Configure took.
func Forget() { merged.Drop() }

// named reports whether TA_ONLY names the program: by the file that was to be run, which may be a
// script or a link, or by the one that runs. Who starts a program that has more rights than he has
// chooses the name of the link, and it does not count.
func named(envp, program uintptr, secure bool) bool {
	if !secure && OnlyNames(envp, program) {
		return true
	}
	n, errno := raw.Sys(syscall.SYS_READLINKAT, raw.AtFdCwd, raw.Bytes("/proc/self/exe\x00"),
		exe.Addr(), PathMax, 0, 0)
	if errno != 0 {
		return false
	}
	raw.StoreByte(exe.Addr()+n, 0)
	return OnlyNames(envp, exe.Addr())
}
