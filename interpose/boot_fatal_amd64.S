// The end of a failed Go runtime. internal/postlink makes runtime.throw and its like begin with a
// jump to ta_runtime_fatal. The runtime would end the process, but the process belongs to the host,
// which does not need the runtime.
//
// There may be almost no stack left. So the first thread to arrive switches to a stack of this
// file, and never returns. Other threads wait for ever.

	.text
	.p2align 4
	.type	ta_runtime_fatal, @function
ta_runtime_fatal:
	.cfi_startproc
	.cfi_undefined %rip
	movl	$1, %eax
	xchgl	%eax, dead(%rip)
	testl	%eax, %eax
	jne	1f
	leaq	last_stack_end(%rip), %rsp
	xorl	%ebp, %ebp
	callq	ta_runtime_dies
1:	movl	$202, %eax		// futex(&dead, FUTEX_WAIT_PRIVATE, 1, NULL)
	leaq	dead(%rip), %rdi
	movl	$128, %esi
	movl	$1, %edx
	xorl	%r10d, %r10d
	syscall
	jmp	1b
	.cfi_endproc
	.size	ta_runtime_fatal, . - ta_runtime_fatal

	.bss
	.p2align 4
last_stack:
	.zero	16384
last_stack_end:
	.p2align 2
dead:
	.zero	4

	.section .note.GNU-stack, "", @progbits
