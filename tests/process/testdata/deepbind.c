// Opens libraries with RTLD_DEEPBIND. LIBS has their paths: the plugin, one with a malloc of its
// own.
#include "common.h"
#include <dlfcn.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

const char *who(void) { return "program"; } // the plugin has one, too

static int refuses; // nothing may become writable

static char paths[2][4096];

static void *open_at(int i, int flags)
{
	void *lib = dlopen(paths[i], flags);
	CHECK(lib != NULL, "%s", dlerror());
	return lib;
}

// Each exchanges blocks with the program and with libc. Every step-th of the sizes up to a limit is
// enough for one thread; several must be long enough about it to meet.
static void use_each(void *lib, int step)
{
	char *(*joined)(const char *) = (char *(*)(const char *))dlsym(lib, "joined");
	void (*drop)(void *) = (void (*)(void *))dlsym(lib, "drop");
	void *(*grown)(void *, size_t) = (void *(*)(void *, size_t))dlsym(lib, "grown");
	const char *(*name)(void) = (const char *(*)(void))dlsym(lib, "asked");
	CHECK(joined && drop && grown && name);
	for (int i = 0; i < 1000; i += step) {
		char *s = joined("x");
		CHECK(strcmp(s, "xxx") == 0);
		free(s);
		drop(strdup("abc"));
		drop(hide(malloc(i * 100)));
		drop(grown(hide(malloc(10)), i * 300));
		free(grown(strdup("abc"), 70000));
	}
	// its own symbols still come first
	CHECK(refuses || strcmp(name(), "plugin") == 0, "%s", name());
}

static void use(void *lib) { use_each(lib, 20); }

static void now(void) { use(open_at(0, RTLD_NOW | RTLD_DEEPBIND)); }
static void lazy(void) { use(open_at(0, RTLD_LAZY | RTLD_DEEPBIND)); }
static void again(void)
{
	for (int i = 0; i < 3; i++) {
		void *lib = open_at(0, RTLD_NOW | RTLD_DEEPBIND | RTLD_GLOBAL);
		use(lib);
		CHECK(dlclose(lib) == 0);
	}
}

static void by_dlmopen(void)
{
	void *lib = dlmopen(LM_ID_BASE, paths[0], RTLD_NOW | RTLD_DEEPBIND);
	CHECK(lib != NULL, "%s", dlerror());
	use(lib);
}

// Another namespace has a libc of its own, and its blocks stay there.
static void namespace(void)
{
	void *lib = dlmopen(LM_ID_NEWLM, paths[0], RTLD_NOW | RTLD_DEEPBIND);
	CHECK(lib != NULL, "%s", dlerror());
	int (*alone)(void) = (int (*)(void))dlsym(lib, "alone");
	CHECK(alone && alone() == 1);
	now();
}

// A library that brings a malloc keeps it.
static void own(void)
{
	void *lib = open_at(1, RTLD_NOW | RTLD_DEEPBIND);
	int (*served)(void) = (int (*)(void))dlsym(lib, "served");
	CHECK(served && served() == 1);
	now();
	CHECK(served() == 1);
}

// Who has asked libc for its functions by name before may go on with them.
static void by_name(void)
{
	void *libc = dlopen("libc.so.6", RTLD_LAZY);
	void *(*take)(size_t) = (void *(*)(size_t))dlsym(libc, "malloc");
	void *small = take(100), *large = take(1 << 20);
	now();
	void (*give)(void *) = (void (*)(void *))dlsym(libc, "free");
	give(small);
	give(large);
	free(take(100));
	free(((void *(*)(size_t))dlsym(libc, "malloc"))(100));
	Dl_info found;
	CHECK(dladdr((void *)take, &found) != 0);
}

static void *opens(void *v)
{
	use_each(open_at(0, RTLD_NOW | RTLD_DEEPBIND), 1);
	return v;
}

static void threads(void)
{
	pthread_t t[8];
	for (int i = 0; i < 8; i++)
		CHECK(pthread_create(&t[i], NULL, opens, NULL) == 0);
	for (int i = 0; i < 8; i++)
		pthread_join(t[i], NULL);
}

// Where libc's symbols cannot be written to, the blocks still go together.
static void refused(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_WRITE, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = {sizeof code / sizeof *code, code};
	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0);
	refuses = 1;
	now();
}

static const struct test tests[] = {{"now", now}, {"lazy", lazy}, {"again", again},
	{"dlmopen", by_dlmopen}, {"namespace", namespace}, {"own", own}, {"by name", by_name},
	{"threads", threads}, {"refused", refused}};

int main(int argc, char **argv)
{
	CHECK(sscanf(getenv("LIBS"), "%4095[^:]:%4095s", paths[0], paths[1]) == 2);
	RUN(tests);
}
