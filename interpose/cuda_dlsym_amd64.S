// dlsym, by which most programs reach the CUDA driver.
//
// libc resolves RTLD_NEXT and RTLD_DEFAULT from the return address. So a search for any other name
// leaves by a tail jump, and libc sees the program's own call. A name that does not begin with "cu"
// costs six instructions.

TA_NEXT_DLSYM = 24 // offset in ta_next_table (libc_symbol.h)

	.hidden	ta_next_table
	.hidden	ta_next
	.hidden	ta_cuda_has
	.hidden	ta_cuda_dlsym
	.section	.text.hot, "ax", @progbits
	.p2align 4
	.globl	dlsym
	.type	dlsym, @function
dlsym:
	.cfi_startproc
	movq	ta_next_table+TA_NEXT_DLSYM(%rip), %rax
	testq	%rax, %rax
	jz	.Lfirst
	cmpb	$'c', (%rsi)
	jne	.Lleave
	cmpb	$'u', 1(%rsi)
	je	.Lcuda
.Lleave:
	jmp	*%rax

.Lfirst:
	pushq	%rdi
	.cfi_adjust_cfa_offset 8
	pushq	%rsi
	.cfi_adjust_cfa_offset 8
	subq	$8, %rsp
	.cfi_adjust_cfa_offset 8
	call	ta_next
	addq	$8, %rsp
	.cfi_adjust_cfa_offset -8
	popq	%rsi
	.cfi_adjust_cfa_offset -8
	popq	%rdi
	.cfi_adjust_cfa_offset -8
	jmp	dlsym

.Lcuda:
	pushq	%rdi
	.cfi_adjust_cfa_offset 8
	pushq	%rsi
	.cfi_adjust_cfa_offset 8
	subq	$8, %rsp
	.cfi_adjust_cfa_offset 8
	movq	24(%rsp), %rdx	// the caller
	call	ta_cuda_has
	addq	$8, %rsp
	.cfi_adjust_cfa_offset -8
	popq	%rsi
	.cfi_adjust_cfa_offset -8
	popq	%rdi
	.cfi_adjust_cfa_offset -8
	testl	%eax, %eax
	jnz	ta_cuda_dlsym
	movq	ta_next_table+TA_NEXT_DLSYM(%rip), %rax
	jmp	*%rax
	.cfi_endproc
	.size	dlsym, . - dlsym

	.section .note.GNU-stack, "", @progbits
