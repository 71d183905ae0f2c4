// dlopen and dlmopen. libc takes the caller, whose search path counts, from the return address,
// so both leave by a tail jump. RTLD_DEEPBIND is looked at first (libc_deepbind.c).

	.hidden	ta_next_table
	.hidden	ta_deepbind
	.hidden	ta_next
	.section	.text.hot, "ax", @progbits

RTLD_DEEPBIND = 8

// flags and its low byte are the registers of the argument; at is the function's offset in
// ta_next_table.
	.macro	define_open name, flags, flags8, at
	.p2align 4
	.globl	\name
	.type	\name, @function
\name:
	.cfi_startproc
	movq	ta_next_table+\at(%rip), %rax
	testq	%rax, %rax
	jz	1f
	testb	$RTLD_DEEPBIND, \flags8
	jnz	2f
	jmp	*%rax
1:	call_keeping_args	ta_next
	jmp	\name
2:	call_keeping_args	ta_deepbind
	testl	%eax, %eax
	movq	ta_next_table+\at(%rip), %rax
	jnz	3f
	andl	$~RTLD_DEEPBIND, \flags
3:	jmp	*%rax
	.cfi_endproc
	.size	\name, . - \name
	.endm

// Calls a function without arguments and keeps the caller's.
	.macro	call_keeping_args function
	pushq	%rdi
	.cfi_adjust_cfa_offset 8
	pushq	%rsi
	.cfi_adjust_cfa_offset 8
	pushq	%rdx
	.cfi_adjust_cfa_offset 8
	call	\function
	popq	%rdx
	.cfi_adjust_cfa_offset -8
	popq	%rsi
	.cfi_adjust_cfa_offset -8
	popq	%rdi
	.cfi_adjust_cfa_offset -8
	.endm

	define_open	dlopen, %esi, %sil, 0
	define_open	dlmopen, %edx, %dl, 8

	.section	.note.GNU-stack, "", @progbits
