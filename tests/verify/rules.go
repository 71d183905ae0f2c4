package verify

import (
	"regexp"
	"strings"
)

// StackLimit is the most stack that a data-plane call may need, in bytes: half
// of a signal stack of SIGSTKSZ (8 KiB), a quarter of the smallest thread stack.
const StackLimit = 4096

// rawSyscall is the one function that holds a system call instruction.
const rawSyscall = "internal/runtime/syscall/linux.Syscall6"

// ownSyscall stands in for it in the library, and for syscall.RawSyscall6, which calls it
// (internal/postlink). It is a dozen instructions of interpose/boot_gate_amd64.S that use no stack.
const ownSyscall = "ta_syscall6"

// ownCode are the functions that internal/postlink makes Go call and that are not Go: this one, and
// the probes, each a nop and a return (interpose/boot_probes_amd64.S).
var ownCode = []string{ownSyscall, "ta_probe_alloc", "ta_probe_free"}

// Rules says which functions the data plane may reach.
type Rules struct {
	// Own reports whether a package's functions are the data plane's own. They
	// are walked.
	Own func(pkg string) bool

	// Indirect lists the functions that may call or jump through a register or
	// memory, each with the reason why the target is known to be safe.
	Indirect map[string]string
}

// runtimeLeaves are the functions of the runtime that compiled code calls for
// copying, clearing and comparing. They take no stack beyond the return
// address, know no g, and touch nothing but their operands. Their AVX and ERMS
// paths depend on flags of internal/cpu that stay zero while the runtime is
// dormant; either way is safe. They are walked all the same, so that a new
// toolchain in which one of them calls something else is noticed.
var runtimeLeaves = map[string]bool{
	"runtime.memmove":              true,
	"runtime.memclrNoHeapPointers": true,
	"runtime.memequal":             true,
	"memeqbody":                    true, // the body of memequal, in assembly
	rawSyscall:                     true,
}

// stdFuncs are the functions of the standard library that are called and not
// inlined, beside those of math/bits. The others of package syscall tell the
// scheduler.
var stdFuncs = map[string]bool{
	"syscall.RawSyscall":  true,
	"syscall.RawSyscall6": true,
}

// verdict is what becomes of a reached function: walked, ignored, or rejected
// for the reason given.
type verdict struct {
	walk   bool
	reason string
}

// judge decides by name.
func (r *Rules) judge(name string) verdict {
	switch {
	case name == "runtime.morestack_noctxt", name == "runtime.morestack_noctxt.abi0":
		// Every Go function has this call behind its stack check. The check
		// compares RSP with g.stackguard0, which is 0 in the counterfeit g, so
		// it never branches there.
		return verdict{}
	case runtimeLeaves[name], stdFuncs[name]:
		return verdict{walk: true}
	case strings.HasSuffix(name, ".abi0"):
		return verdict{reason: "assembly of the stack-based ABI0, reached through a wrapper that " +
			"reloads g from TLS"}
	case strings.HasPrefix(name, "_cgoexp_"), strings.HasPrefix(name, "type:.eq."):
		return verdict{walk: true}
	}
	pkg := packageOf(name)
	switch {
	case pkg == "math/bits", pkg != "" && r.Own(pkg):
		return verdict{walk: true}
	case pkg == "runtime", strings.HasPrefix(pkg, "runtime/"),
		strings.HasPrefix(pkg, "internal/runtime/"), pkg == "":
		return verdict{reason: runtimeReason(name)}
	}
	return verdict{reason: "package " + pkg + " is not part of the data plane"}
}

// packageOf is the import path in a symbol's name: what comes before the first
// dot behind the last slash, type arguments left aside.
func packageOf(name string) string {
	head, _, _ := strings.Cut(name, "[")
	head, _, _ = strings.Cut(head, "(")
	slash := strings.LastIndex(head, "/") + 1
	dot := strings.Index(head[slash:], ".")
	if dot < 0 {
		return ""
	}
	return head[:slash+dot]
}

// reasons explains the functions of the runtime that are met most often, so
// that the report says what to change in the source.
var reasons = []struct {
	name   *regexp.Regexp
	reason string
}{
	{regexp.MustCompile(`^runtime\.(newobject|mallocgc.*|newarray|growslice.*|makeslice.*|makechan.*|rawstring.*)$`),
		"allocates on Go's heap"},
	{regexp.MustCompile(`gcWriteBarrier|wbZero|wbMove|typedmem|bulkBarrier`),
		"write barrier: store integers, or pointers to OffHeap types"},
	{regexp.MustCompile(`^runtime\.(goP|p)anic(Bounds|Index|Slice)`),
		"bounds check: mask the index"},
	{regexp.MustCompile(`^runtime\.(panicdivide|panicshift|panicoverflow)`),
		"guard the divisor, shift by unsigned amounts"},
	{regexp.MustCompile(`^runtime\.(gopanic|.*[pP]anic.*)`),
		"panic edge"},
	{regexp.MustCompile(`^runtime\.defer|^runtime\.goready|^runtime\.newproc`),
		"needs a goroutine"},
	{regexp.MustCompile(`^runtime\.cgoCheckResult$`),
		"cgo checks the export's result: its type must be one that cgo knows to hold no pointer " +
			"(uint, uint64; not uintptr)"},
	{regexp.MustCompile(`^runtime\.morestack(\.abi0)?$`),
		"a closure: its prologue keeps the context register"},
}

func runtimeReason(name string) string {
	for _, r := range reasons {
		if r.name.MatchString(name) {
			return r.reason
		}
	}
	return "a function of the Go runtime, outside the allow-list"
}
