// The gate: C calls Go code that never enters the Go runtime.
//
// cgo's stub for an exported function calls crosscall2(fn, args, size, ctxt);
// the linker's --wrap sends that call here. fn is a Go function of Go's own
// calling convention (ABIInternal) that takes the address of the argument
// block in RAX. It expects R14 = g and X15 = 0 and keeps no register.
//
// g is counterfeit: a zero-filled read-only block. Its stackguard0 is 0, so
// each function's stack check passes and morestack is never reached; a write
// to it would fault.

	.section	.text.hot, "ax", @progbits
	.p2align 4
	.globl	__wrap_crosscall2
	.hidden	__wrap_crosscall2
	.type	__wrap_crosscall2, @function
__wrap_crosscall2:
	.cfi_startproc
	pushq	%rbp
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %rbp, 0
	movq	%rsp, %rbp
	.cfi_def_cfa_register %rbp
	pushq	%rbx
	pushq	%r12
	pushq	%r13
	pushq	%r14
	pushq	%r15
	.cfi_offset %rbx, -24
	.cfi_offset %r12, -32
	.cfi_offset %r13, -40
	.cfi_offset %r14, -48
	.cfi_offset %r15, -56
	subq	$24, %rsp	// the callee may spill its argument above its return address
	leaq	ta_gate_g(%rip), %r14
	pxor	%xmm15, %xmm15
	movq	%rsi, %rax
	callq	*%rdi
	addq	$24, %rsp
	popq	%r15
	popq	%r14
	popq	%r13
	popq	%r12
	popq	%rbx
	popq	%rbp
	.cfi_def_cfa %rsp, 8
	retq
	.cfi_endproc
	.size	__wrap_crosscall2, . - __wrap_crosscall2

// A system call as internal/runtime/syscall/linux.Syscall6 makes it: the number and six arguments
// in RAX, RBX, RCX, RDI, RSI, R8 and R9; the two results and errno in RAX, RBX and RCX. That one
// lies far from all other code that a process runs, so internal/postlink redirects the calls of
// syscall.RawSyscall6 to this one.
//
// Without the runtime, mmap, munmap, mremap and madvise first ask ta_memory_call (libc_memory.c). A
// goroutine's stack is too small for that, and its memory is no concern of others.
	.p2align 4
	.type	ta_syscall6, @function
ta_syscall6:
	.cfi_startproc
	cmpl	$28, %eax
	ja	2f
	movl	$(1 << 9 | 1 << 11 | 1 << 25 | 1 << 28), %r10d
	btl	%eax, %r10d
	jc	3f
2:	movq	%rsi, %r10
	movq	%rdi, %rdx
	movq	%rcx, %rsi
	movq	%rbx, %rdi
	syscall
5:	cmpq	$-4095, %rax
	jae	1f
	movq	%rdx, %rbx
	xorl	%ecx, %ecx
	retq
1:	negq	%rax
	movq	%rax, %rcx
	movq	$-1, %rax
	xorl	%ebx, %ebx
	retq
3:	leaq	ta_gate_g(%rip), %r10
	cmpq	%r10, %r14
	jne	2b
	pushq	%rbp
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %rbp, 0
	movq	%rsp, %rbp
	.cfi_def_cfa_register %rbp
	pushq	%rax
	pushq	%rbx
	pushq	%rcx
	pushq	%rdi
	pushq	%rsi
	pushq	%r8
	pushq	%r9
	andq	$-16, %rsp
	movq	%rsi, %r8
	movq	%rcx, %rdx
	movq	%rdi, %rcx
	movq	%rbx, %rsi
	movq	%rax, %rdi
	callq	ta_memory_call
	pxor	%xmm15, %xmm15
	movabsq	$0x8000000000000000, %r10
	cmpq	%r10, %rax
	je	4f
	leaveq
	.cfi_remember_state
	.cfi_def_cfa %rsp, 8
	jmp	5b
4:	.cfi_restore_state
	movq	-8(%rbp), %rax
	movq	-16(%rbp), %rbx
	movq	-24(%rbp), %rcx
	movq	-32(%rbp), %rdi
	movq	-40(%rbp), %rsi
	movq	-48(%rbp), %r8
	movq	-56(%rbp), %r9
	leaveq
	.cfi_def_cfa %rsp, 8
	jmp	2b
	.cfi_endproc
	.size	ta_syscall6, . - ta_syscall6

	.section .rodata
	.p2align 6
	.type	ta_gate_g, @object
ta_gate_g:
	.zero	1024
	.size	ta_gate_g, . - ta_gate_g

/* See boot_dormant.c. */
	.p2align 3
	.globl	ta_deferred
	.hidden	ta_deferred
	.type	ta_deferred, @object
ta_deferred:
	.zero	40
	.size	ta_deferred, . - ta_deferred

	.section .note.GNU-stack, "", @progbits

	// Room for copies of Go functions (internal/postlink).
	.section .text.gocopies, "ax", @progbits
	.fill 0x15400, 1, 0xcc
