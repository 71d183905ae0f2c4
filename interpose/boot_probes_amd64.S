// The probes otel_memory:alloc and otel_memory:free, in version 3 of SystemTap's format. Go calls
// them with arguments in the registers of its own calling convention (stats/profile/probes.go).
//
// A note tells a tracer where the probe's nop is, where its semaphore is, its names, and the size
// and register of each argument. A semaphore counts the tracers that are attached. The kernel finds
// it by its place in the file, so it lies in the part of the data that the file has.
//
// The addresses in a note are those that the linker gave. A tracer compares the note's address of
// .stapsdt.base with the section's, in case another tool has moved the library. perf compares it
// with the section's place in the file, so the section is in the segment of the code (order.ld).

	.macro	probe name, semaphore, arguments
	.text
	.p2align 4
	.type	ta_probe_\name, @function
ta_probe_\name:
	.cfi_startproc
	nop
	retq
	.cfi_endproc
	.size	ta_probe_\name, . - ta_probe_\name

	.section .note.stapsdt, "", @note
	.p2align 2
	.4byte	.Lplaces_\name - .Lowner_\name, .Lend_\name - .Lplaces_\name, 3
.Lowner_\name:
	.asciz	"stapsdt"
.Lplaces_\name:
	.8byte	ta_probe_\name, _.stapsdt.base, \semaphore
	.asciz	"otel_memory"
	.asciz	"\name"
	.asciz	"\arguments"
.Lend_\name:
	.p2align 2
	.endm

	probe	alloc, ta_tracers, "8@%rax 8@%rbx 8@%rcx"
	probe	free, ta_tracers + 2, "8@%rax"

	.section .stapsdt.base, "aG", @progbits, .stapsdt.base, comdat
	.weak	_.stapsdt.base
	.hidden	_.stapsdt.base
_.stapsdt.base:
	.space	1
	.size	_.stapsdt.base, 1

	.section .probes, "aw", @progbits
	.p2align 1
	.globl	ta_tracers
	.hidden	ta_tracers
	.type	ta_tracers, @object
ta_tracers:
	.2byte	0, 0
	.size	ta_tracers, 4

	.section .note.GNU-stack, "", @progbits
