// syscall, some of whose calls libc_filter.c must notice.
//
// All other calls leave by a tail jump. Neither the registers nor the stack are written to: the
// seventh argument is there, or else variables of the caller, which other threads may change. A
// child of clone, on a new stack and without thread-local storage, makes its calls here, too.

SYS_PRCTL = 157
SYS_UNSHARE = 272
SYS_SETNS = 308
SYS_SECCOMP = 317

	.hidden	ta_notice
	.hidden	ta_next_syscall
	.hidden	ta_filter_resolve
	.text
	.p2align 4
	.globl	syscall
	.type	syscall, @function
syscall:
	.cfi_startproc
	cmpq	$SYS_PRCTL, %rdi
	je	.Lnotice
	cmpq	$SYS_UNSHARE, %rdi
	je	.Lnotice
	cmpq	$SYS_SETNS, %rdi
	je	.Lnotice
	cmpq	$SYS_SECCOMP, %rdi
	je	.Lnotice
	movq	ta_next_syscall(%rip), %rax
	testq	%rax, %rax
	jz	.Lnotice
	jmp	*%rax

.Lnotice:
	pushq	%rdi
	.cfi_adjust_cfa_offset 8
	pushq	%rsi
	.cfi_adjust_cfa_offset 8
	pushq	%rdx
	.cfi_adjust_cfa_offset 8
	pushq	%rcx
	.cfi_adjust_cfa_offset 8
	pushq	%r8
	.cfi_adjust_cfa_offset 8
	pushq	%r9
	.cfi_adjust_cfa_offset 8
	subq	$8, %rsp
	.cfi_adjust_cfa_offset 8
	call	ta_notice
	call	ta_filter_resolve
	addq	$8, %rsp
	.cfi_adjust_cfa_offset -8
	popq	%r9
	.cfi_adjust_cfa_offset -8
	popq	%r8
	.cfi_adjust_cfa_offset -8
	popq	%rcx
	.cfi_adjust_cfa_offset -8
	popq	%rdx
	.cfi_adjust_cfa_offset -8
	popq	%rsi
	.cfi_adjust_cfa_offset -8
	popq	%rdi
	.cfi_adjust_cfa_offset -8
	movq	ta_next_syscall(%rip), %rax
	jmp	*%rax
	.cfi_endproc
	.size	syscall, . - syscall

	.section .note.GNU-stack, "", @progbits
