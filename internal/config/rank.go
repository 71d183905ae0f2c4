package config

import (
	"syscall"
	"unsafe"

	"tieralloc/internal/raw"
)

// The variables in which launchers of parallel jobs pass a process its number in the job. A
// launcher that may run inside another's job comes first, because its children have the variables
// of both.
const rankVars = 5

func rankVar(i uintptr) string {
	switch i {
	case 0:
		return "RANK" // torchrun
	case 1:
		return "OMPI_COMM_WORLD_RANK" // Open MPI
	case 2:
		return "PMIX_RANK" // launchers with PMIx
	case 3:
		return "PMI_RANK" // MPICH, Intel MPI
	}
	return "SLURM_PROCID" // srun; a batch script has it, too
}

// rankOf returns Settings.Rank for the environment at envp.
func rankOf(envp uintptr) uint64 {
	for i := uintptr(0); i < rankVars; i++ {
		if n, ok := lookUp(envp, rankVar(i)).asRank(); ok {
			return n + 1
		}
	}
	return 0
}

// lookUp returns the value of any variable, empty if it is unset.
func lookUp(envp uintptr, name string) value {
	for ; raw.Load(envp) != 0; envp += 8 {
		if at := afterPrefix(raw.Load(envp), name); at != 0 && raw.LoadByte(at) == '=' {
			return cString(at + 1)
		}
	}
	return value{}
}

// afterPrefix returns the address after the text in the C string at addr, or 0 if the string does
// not begin with it.
func afterPrefix(addr uintptr, text string) uintptr {
	for i := 0; i < len(text); i++ {
		if raw.LoadByte(addr+uintptr(i)) != text[i] {
			return 0
		}
	}
	return addr + uintptr(len(text))
}

// asRank reads a number of at most nine digits.
func (v value) asRank() (n uint64, ok bool) {
	if v.n == 0 || v.n > 9 {
		return 0, false
	}
	for i := uintptr(0); i < v.n; i++ {
		if !isDigit(v.at(i)) {
			return 0, false
		}
		n = n*10 + uint64(v.at(i)-'0')
	}
	return n, true
}

// appendRank appends a rank in the form of Settings.Rank.
func appendRank(dst *Text, rank uint64) bool {
	if rank == 0 {
		const none = "none"
		return dst.Mem(raw.Bytes(none), uintptr(len(none)))
	}
	return dst.Dec(rank - 1)
}

// appendHost appends the host's name, with its slashes replaced.
func appendHost(dst *Text) bool {
	var u syscall.Utsname
	if _, errno := raw.Sys(syscall.SYS_UNAME, uintptr(unsafe.Pointer(&u)), 0, 0, 0, 0,
		0); errno != 0 {
		return false
	}
	return appendName(dst, cString(uintptr(unsafe.Pointer(&u.Nodename))))
}
