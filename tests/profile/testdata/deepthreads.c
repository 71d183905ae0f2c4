// deepthreads has the kernel refuse process_vm_readv, and allocates in threads, the innermost of 40
// functions whose frames have 4000 bytes each.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

__attribute__((noinline)) static int deeper(int n)
{
	volatile char frame[4000];
	frame[0] = 1;
	if (n > 0)
		return deeper(n - 1) + frame[0];
	for (int i = 0; i < 200; i++) {
		char *volatile p = malloc(1000);
		*p = 1;
		free(p);
	}
	return 0;
}

static void *work(void *unused)
{
	(void)unused;
	deeper(40);
	return NULL;
}

int main(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = {sizeof code / sizeof *code, code};
	// not by libc, for then the library would end the profile
	long e;
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	__asm__ volatile("syscall"
					 : "=a"(e)
					 : "a"(SYS_seccomp), "D"(SECCOMP_SET_MODE_FILTER), "S"(0), "d"(&filter)
					 : "rcx", "r11", "memory");
	if (e != 0) {
		fprintf(stderr, "seccomp: %ld\n", e);
		return 1;
	}
	for (int i = 0; i < 4; i++) {
		pthread_t t;
		pthread_create(&t, NULL, work, NULL);
		pthread_join(t, NULL);
	}
	return 0;
}
