package config

import (
	"syscall"

	"tieralloc/internal/raw"
)

// merged is the environment followed by the lines of the file, while it is read.
var merged Merged

// exe is the path of the running file, while it is compared.
var exe Text

// Configure fills InForce from the environment and the file for the whole system. file is a
// descriptor, which Configure closes, or a negative number; envp may be 0. program is AT_EXECFN,
// secure AT_SECURE. It returns the environment that includes the file's settings, which is valid
// until Forget, and the number of bad settings.
func Configure(file, envp, program uintptr, secure bool) (all, bad uintptr) {
	if int(file) >= 0 {
		if merged = ReadFile(file, envp, secure); merged.Envp != 0 {
			envp = merged.Envp
		}
	}
	if Only(envp) && !named(envp, program, secure) {
		// the settings, right or wrong, are for other programs
		InForce.setDefaults()
		InForce.Disable = true
		return envp, 0
	}
	return envp, Parse(&InForce, envp)
}

// Forget frees the memory that Configure took.
func Forget() { merged.Drop() }

// named reports whether TA_ONLY names the program: by the file that was started, which may be a
// script or a link, or by the file that runs. In a program with more rights than its caller only
// the file that runs counts, because the caller chooses the name of the link.
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
