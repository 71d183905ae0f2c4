// What the Go compiler does not write, but assembly, a new toolchain or a bug
// could put on the data plane. Linked alone into a library that looks like a
// Go one: runtime.text and runtime.etext bound "Go's" code. See asm_test.go.

#define FUNC(name)	.type name, @function; name:
#define END(name)	.size name, . - name
#define EXPORT(x)	FUNC(_cgoexp_0_ta_go_##x)
#define DONE(x)		END(_cgoexp_0_ta_go_##x)

	.text
FUNC(c_function)
	ret
END(c_function)

	.type	"runtime.text", @function
"runtime.text":

FUNC("runtime.newobject")
	ret
END("runtime.newobject")
FUNC("runtime.deferreturn")
	ret
END("runtime.deferreturn")
FUNC("main.callee")
	nop
	ret
END("main.callee")
FUNC("main.pushes")
	push	%rbx
	pop	%rbx
	ret
END("main.pushes")

// Allowed: every way of moving RSP by a known amount, a tail jump, a table.
EXPORT(ok)
	push	%rbp
	add	$-0x80, %rsp
	lea	-0x40(%rsp), %rsp
	pushf
	popf
	call	"main.pushes"
	cmp	0x10(%r14), %rsp
	popcnt	%rax, %rax
	lea	0x40(%rsp), %rsp
	sub	$-0x80, %rsp
	pop	%rbp
	lea	"_cgoexp_0_ta_go_ok.jump3"(%rip), %rax
	jmp	*(%rax,%rcx,8)
.Lok1:	ret
.Lok2:	jmp	"main.callee"
DONE(ok)

EXPORT(call_reg)
	call	*%rax
	ret
DONE(call_reg)
EXPORT(call_mem)
	call	*8(%rax)
	ret
DONE(call_mem)
EXPORT(jump_reg)
	jmp	*%rax
DONE(jump_reg)
EXPORT(jump_mem)
	jmp	*8(%rax)
DONE(jump_mem)
EXPORT(jump_slot)
	jmp	*slot(%rip)
DONE(jump_slot)
EXPORT(table_outside)
	lea	"_cgoexp_0_ta_go_table_outside.jump1"(%rip), %rax
	jmp	*(%rax,%rcx,8)
DONE(table_outside)
EXPORT(table_foreign)
	lea	"_cgoexp_0_ta_go_ok.jump3"(%rip), %rax
	jmp	*(%rax,%rcx,8)
DONE(table_foreign)
EXPORT(table_changed)
	lea	"_cgoexp_0_ta_go_ok.jump3"(%rip), %rax
	mov	(%rdx), %rax
	jmp	*(%rax,%rcx,8)
DONE(table_changed)

EXPORT(plt)
	call	getpid@PLT
	ret
DONE(plt)
EXPORT(c)
	call	c_function
	ret
DONE(c)
EXPORT(c_jump)
	jmp	c_function
DONE(c_jump)
EXPORT(middle)
	call	"main.callee"+1
	ret
DONE(middle)
EXPORT(branch)
	test	%rax, %rax
	je	"runtime.newobject"
	ret
DONE(branch)
EXPORT(dead_code)
	ret
	call	"runtime.deferreturn"
	ret
DONE(dead_code)

EXPORT(fs)
	mov	%fs:0, %rax
	ret
DONE(fs)
EXPORT(gs)
	lock incq %gs:8(%rax)
	ret
DONE(gs)
EXPORT(fsbase)
	rdfsbase %rax
	ret
DONE(fsbase)
EXPORT(g_field)
	mov	0x30(%r14), %rax
	ret
DONE(g_field)
EXPORT(g_copy)
	mov	%r14, %rax
	ret
DONE(g_copy)
EXPORT(syscall)
	syscall
	ret
DONE(syscall)

EXPORT(rsp_mov)
	mov	%rax, %rsp
	ret
DONE(rsp_mov)
EXPORT(rsp_and)
	and	$-16, %rsp
	ret
DONE(rsp_and)
EXPORT(rsp_sub_reg)
	sub	%rax, %rsp
	ret
DONE(rsp_sub_reg)
EXPORT(rsp_pop)
	pop	%rsp
	ret
DONE(rsp_pop)
EXPORT(rsp_xchg)
	xchg	%rsp, %rax
	ret
DONE(rsp_xchg)
EXPORT(rsp_leave)
	leave
	ret
DONE(rsp_leave)
EXPORT(unbalanced)
	push	%rax
	ret
DONE(unbalanced)
EXPORT(push_loop)
1:	push	%rax
	jmp	1b
DONE(push_loop)
EXPORT(deep_lea)
	lea	-0x1000(%rsp), %rsp
	lea	0x1000(%rsp), %rsp
	ret
DONE(deep_lea)
EXPORT(deep_call)
	sub	$0xff0, %rsp
	call	"main.pushes"
	add	$0xff0, %rsp
	ret
DONE(deep_call)
// Exactly the limit: 0xfe8, the two calls and a push of 8 each.
EXPORT(ok_limit)
	sub	$0xfe8, %rsp
	call	"main.pushes"
	add	$0xfe8, %rsp
	ret
DONE(ok_limit)
EXPORT(past_end)
	nop
DONE(past_end)

	.type	"runtime.etext", @function
"runtime.etext":

	.section .data.rel.ro, "aw"
	.type	"_cgoexp_0_ta_go_ok.jump3", @object
"_cgoexp_0_ta_go_ok.jump3":
	.quad	.Lok1, .Lok2
	.size	"_cgoexp_0_ta_go_ok.jump3", 16
	.type	"_cgoexp_0_ta_go_table_outside.jump1", @object
"_cgoexp_0_ta_go_table_outside.jump1":
	.quad	_cgoexp_0_ta_go_table_outside, "main.callee"
	.size	"_cgoexp_0_ta_go_table_outside.jump1", 16
slot:	.quad	"main.callee"

// What the dynamic loader must not see: an export that is on no list, a symbol
// of NVML, a relocation in code, a segment both writable and executable.
	.section .wx, "awx", @progbits
	.globl	stray
FUNC(stray)
	jmp	nvmlInit_v2@PLT
END(stray)
	.section .text2, "ax", @progbits
	.quad	stray
	.section .note.GNU-stack, "", @progbits
