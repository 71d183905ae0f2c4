/* Runs a program for which the kernel answers EPERM to mbind and get_mempolicy, as the
 * filter of a container does; after -kill it ends a program that calls mbind; after -flag it
 * answers EINVAL to mbind with MPOL_F_NUMA_BALANCING, as kernels before 6.12 do. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int kill = argc > 1 && !strcmp(argv[1], "-kill"), flag = argc > 1 && !strcmp(argv[1], "-flag");
	argv += kill + flag;
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mbind, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kill ? SYS_mbind : SYS_get_mempolicy, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, kill ? SECCOMP_RET_KILL_PROCESS : SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_filter flag_code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mbind, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 1 << 13, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = {sizeof code / sizeof *code, code};
	if (flag)
		filter = (struct sock_fprog){sizeof flag_code / sizeof *flag_code, flag_code};
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter)) {
		perror("seccomp");
		return 1;
	}
	execv(argv[1], argv + 1);
	perror(argv[1]);
	return 1;
}
