// Does what a script on standard input says, a line at a time, and answers each line
// with one. The blocks of a script have names; a command that makes several calls
// their blocks by one name, and answers with runs: "fast*3 normal*1".
//
//	new NAME COUNT HOW SIZE    HOW: a hint (ta_alloc) or nohint, or malloc, calloc,
//	                           realloc, memalign:ALIGN, or a function of the opened
//	                           object
//	tiers NAME, free NAME, resize NAME SIZE, move NAME TIER, check NAME
//	apart NAME NAME            whether no 64 KiB slice has blocks of both
//	hint HINT                  ta_set_hint
//	name TEXT, prctl TEXT      names this thread
//	rename THREAD TEXT         names another one, which "on" has begun
//	open PATH, close           dlopen and dlclose
//	strangers                  ta_move and ta_tier_of of what is no block
//	json                       the report in one line
//	tick COUNT MS              COUNT calls into the slow path, MS apart
//	trim                       malloc_trim
//	sleep MS
//	resident                   Rss, AnonHugePages and hugetlb of the process, in KiB
//	fork … end                 the lines between are the child's; answers as wait does
//	on THREAD COMMAND, join THREAD
//	light                      only the first 4 KiB of each block are touched from now on
//	exit STATUS
#include "common.h"
#include <dlfcn.h>
#include <malloc.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum { NAMES = 16, BLOCKS = 65536, WORDS = 8, THREADS = 8 };

struct block {
	char name[NAMES];
	void *p;
	size_t size;
	uint64_t seed;
};

static struct block blocks[BLOCKS];
static unsigned block_count;
static uint64_t next_seed = 1;
static size_t watched = SIZE_MAX; // bytes of each block that have contents

static const char *const tiers[] = {"fast", "normal", "slow"};
static const char *const hints[] = {"hot", "warm", "cold", "pin_fast", "prefer_fast"};

static void *object;

// The answer to one line.
struct answer {
	char text[400 << 10];
	size_t n;
	char run[64];
	unsigned count;
};

static struct answer answer;

static void say(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	int n = vsnprintf(answer.text + answer.n, sizeof answer.text - answer.n, format, args);
	va_end(args);
	if (n > 0 && answer.n + n < sizeof answer.text)
		answer.n += n;
}

static void end_run(void)
{
	if (answer.count > 0)
		say("%s%s*%u", answer.n > 0 ? " " : "", answer.run, answer.count);
	answer.count = 0;
}

static void run(const char *what)
{
	if (answer.count > 0 && strcmp(what, answer.run) != 0)
		end_run();
	snprintf(answer.run, sizeof answer.run, "%s", what);
	answer.count++;
}

static const char *error_name(int error)
{
	switch (error) {
	case ENOMEM: return "ENOMEM";
	case EINVAL: return "EINVAL";
	case EPERM: return "EPERM";
	case EBUSY: return "EBUSY";
	}
	return "another error";
}

static const char *tier_name(const void *p)
{
	errno = 0;
	int tier = ta_tier_of(p);
	return tier >= 0 && tier <= TA_SLOW ? tiers[tier] : error_name(errno);
}

static int word_of(const char *const *list, unsigned n, const char *text)
{
	for (unsigned i = 0; i < n; i++)
		if (strcmp(list[i], text) == 0)
			return (int)i;
	return -1;
}

static size_t size_of(const char *text)
{
	char *end;
	size_t n = strtoull(text, &end, 10);
	return *end == 'K' ? n * KIB : *end == 'M' ? n * MIB : n;
}

static void *allocate(const char *how, size_t n)
{
	int hint = word_of(hints, 5, how);
	if (hint >= 0)
		return ta_alloc(n, (ta_hint)hint);
	if (strcmp(how, "nohint") == 0)
		return ta_alloc(n, (ta_hint)(TA_PREFER_FAST + 1));
	if (strcmp(how, "malloc") == 0)
		return malloc(n);
	if (strcmp(how, "realloc") == 0)
		return realloc(NULL, n);
	if (strncmp(how, "memalign:", 9) == 0)
		return memalign(size_of(how + 9), n);
	if (strcmp(how, "calloc") == 0) {
		unsigned char *p = calloc(1, n);
		for (size_t i = 0; p != NULL && i < n; i++)
			CHECK(p[i] == 0, "byte %zu of a calloc of %zu", i, n);
		return p;
	}
	CHECK(object != NULL, "%s", how);
	void *(*f)(size_t) = (void *(*)(size_t))dlsym(object, how);
	CHECK(f != NULL, "%s", how);
	return f(n);
}

static size_t at_most(size_t n, size_t most) { return n < most ? n : most; }

static void fill(struct block *b) { pattern_fill(b->p, at_most(b->size, watched), b->seed); }

// Verifies the first n bytes.
static void verify(struct block *b, size_t n)
{
	n = at_most(n, watched);
	size_t at = pattern_wrong(b->p, at_most(b->size, watched), n, b->seed);
	CHECK(at == n, "%s: byte %zu of %zu has changed", b->name, at, b->size);
}

static void do_new(char **w)
{
	unsigned count = (unsigned)strtoul(w[2], NULL, 10);
	size_t n = size_of(w[4]);
	for (unsigned i = 0; i < count; i++) {
		errno = 0;
		void *p = allocate(w[3], n);
		if (p == NULL) {
			run(error_name(errno));
			continue;
		}
		CHECK(block_count < BLOCKS, "too many blocks");
		struct block *b = &blocks[block_count++];
		snprintf(b->name, sizeof b->name, "%s", w[1]);
		b->p = p;
		b->size = n;
		b->seed = next_seed++ << 40;
		fill(b);
		run(tier_name(p));
	}
}

static void do_free(char **w)
{
	unsigned kept = 0;
	for (unsigned i = 0; i < block_count; i++) {
		struct block *b = &blocks[i];
		if (strcmp(b->name, w[1]) != 0) {
			blocks[kept++] = *b;
			continue;
		}
		verify(b, b->size);
		errno = 77;
		free(b->p);
		CHECK(errno == 77, "free changes errno");
		run("freed");
	}
	block_count = kept;
}

static void do_resize(struct block *b, size_t n)
{
	verify(b, b->size);
	errno = 0;
	void *p = realloc(b->p, n);
	if (p == NULL) {
		run(error_name(errno));
		return;
	}
	b->p = p;
	verify(b, at_most(n, b->size));
	b->size = n;
	fill(b);
	run(tier_name(p));
}

static void do_move(struct block *b, const char *tier)
{
	int dst = word_of(tiers, 3, tier);
	errno = 0;
	void *p = ta_move(b->p, dst >= 0 ? (ta_tier)dst : (ta_tier)9);
	if (p == NULL) {
		const char *why = error_name(errno);
		verify(b, b->size);
		run(why);
		return;
	}
	char text[64];
	snprintf(text, sizeof text, "%s@%s", tier_name(p), p == b->p ? "same" : "new");
	b->p = p;
	verify(b, b->size);
	run(text);
}

static void each(char **w)
{
	for (unsigned i = 0; i < block_count; i++) {
		struct block *b = &blocks[i];
		if (strcmp(b->name, w[1]) != 0)
			continue;
		if (strcmp(w[0], "tiers") == 0)
			run(tier_name(b->p));
		else if (strcmp(w[0], "check") == 0)
			verify(b, b->size), run("whole");
		else if (strcmp(w[0], "resize") == 0)
			do_resize(b, size_of(w[2]));
		else if (strcmp(w[0], "move") == 0)
			do_move(b, w[2]);
	}
}

static void do_apart(char **w)
{
	for (unsigned i = 0; i < block_count; i++)
		for (unsigned k = 0; k < block_count; k++) {
			struct block *a = &blocks[i], *b = &blocks[k];
			if (strcmp(a->name, w[1]) != 0 || strcmp(b->name, w[2]) != 0)
				continue;
			uintptr_t a1 = (uintptr_t)a->p / SLICE, a2 = ((uintptr_t)a->p + a->size - 1) / SLICE;
			uintptr_t b1 = (uintptr_t)b->p / SLICE, b2 = ((uintptr_t)b->p + b->size - 1) / SLICE;
			if (a1 <= b2 && b1 <= a2) {
				say("%p and %p share a slice", a->p, b->p);
				return;
			}
		}
	say("apart");
}

// What is no block is refused and not touched.
static void do_strangers(void)
{
	static char data[256];
	char stack[256];
	char *libc = strdup("text"), *page = malloc(300 * KIB), *huge = malloc(5 * MIB);
	char *many = malloc(100), *freed = malloc(100);
	free(freed);
	void *list[] = {NULL, data, stack, (void *)16, (void *)~0ul, (void *)(1ul << 47), (void *)&do_strangers, &errno,
		page + 16, page + 64 * KIB, huge + 16, huge + MIB, many + 8, freed, libc == NULL ? NULL : libc + 1};
	for (unsigned i = 0; i < sizeof list / sizeof *list; i++) {
		errno = 0;
		CHECK(ta_tier_of(list[i]) == -1 && errno == EINVAL, "tier of %u, errno %d", i, errno);
		errno = 0;
		CHECK(ta_move(list[i], TA_SLOW) == NULL && errno == EINVAL, "move of %u, errno %d", i, errno);
	}
	errno = 0;
	CHECK(ta_move(many, (ta_tier)3) == NULL && errno == EINVAL, "no such tier");
	errno = 0;
	CHECK(ta_move(many, (ta_tier)-1) == NULL && errno == EINVAL, "no such tier");
	ta_free(NULL);
	free(many);
	free(page);
	free(huge);
	free(libc);
	say("refused");
}

static void do_json(void)
{
	size_t room = sizeof answer.text - answer.n;
	size_t n = ta_stats_json(answer.text + answer.n, room);
	CHECK(n > 0 && n < room, "the report has %zu bytes", n);
	for (size_t i = 0; i < n; i++)
		if (answer.text[i] == '\n')
			answer.text[i] = ' ';
	answer.n += n;
}

static void do_tick(char **w)
{
	unsigned long count = strtoul(w[1], NULL, 10), ms = strtoul(w[2], NULL, 10);
	for (unsigned long i = 0; i < count; i++) {
		if (ms > 0)
			usleep((useconds_t)(ms * 1000));
		ta_free(ta_alloc(5 * MIB, TA_COLD));
	}
	say("ticked");
}

// Reads a file without allocating.
static void slurp(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY);
	CHECK(fd >= 0, "%s", path);
	size_t n = 0;
	for (ssize_t k; n + 1 < size && (k = read(fd, text + n, size - 1 - n)) > 0;)
		n += (size_t)k;
	close(fd);
	text[n] = 0;
}

static void do_resident(void)
{
	static const char *const keys[] = {"Rss:", "AnonHugePages:", "Private_Hugetlb:"};
	static char text[8192];
	slurp("/proc/self/smaps_rollup", text, sizeof text);
	for (int i = 0; i < 3; i++) {
		char *at = strstr(text, keys[i]);
		say("%s%lu", i > 0 ? " " : "", at != NULL ? strtoul(at + strlen(keys[i]), NULL, 10) : 0);
	}
}

struct worker {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	char **todo;
	int begun, done;
};

static struct worker workers[THREADS];

static void obey(char **w);

static void *work(void *arg)
{
	struct worker *k = arg;
	pthread_mutex_lock(&k->lock);
	for (;;) {
		while (k->todo == NULL)
			pthread_cond_wait(&k->changed, &k->lock);
		if (strcmp(k->todo[0], "join") == 0)
			break;
		obey(k->todo);
		k->todo = NULL;
		k->done = 1;
		pthread_cond_signal(&k->changed);
	}
	pthread_mutex_unlock(&k->lock);
	return NULL;
}

static struct worker *worker_of(const char *text)
{
	unsigned i = (unsigned)strtoul(text, NULL, 10);
	CHECK(i < THREADS, "thread %s", text);
	return &workers[i];
}

static void do_on(char **w)
{
	struct worker *k = worker_of(w[1]);
	if (!k->begun) {
		pthread_mutex_init(&k->lock, NULL);
		pthread_cond_init(&k->changed, NULL);
		CHECK(pthread_create(&k->thread, NULL, work, k) == 0, "pthread_create");
		k->begun = 1;
	}
	pthread_mutex_lock(&k->lock);
	k->todo = w + 2;
	k->done = 0;
	pthread_cond_signal(&k->changed);
	while (!k->done)
		pthread_cond_wait(&k->changed, &k->lock);
	pthread_mutex_unlock(&k->lock);
}

static void do_join(char **w)
{
	static char *quit[] = {"join", NULL};
	struct worker *k = worker_of(w[1]);
	pthread_mutex_lock(&k->lock);
	k->todo = quit;
	pthread_cond_signal(&k->changed);
	pthread_mutex_unlock(&k->lock);
	CHECK(pthread_join(k->thread, NULL) == 0, "pthread_join");
	memset(k, 0, sizeof *k);
	say("joined");
}

static void do_open(char **w)
{
	object = dlopen(w[1], RTLD_NOW | RTLD_LOCAL);
	CHECK(object != NULL, "%s", dlerror());
	say("opened");
}

static void do_hint(char **w)
{
	int hint = word_of(hints, 5, w[1]);
	errno = 0;
	ta_hint before = ta_set_hint(hint >= 0 ? (ta_hint)hint : (ta_hint)9);
	say("%s", (unsigned)before < 5 ? hints[before] : error_name(errno));
}

static void obey(char **w)
{
	if (strcmp(w[0], "new") == 0)
		do_new(w);
	else if (strcmp(w[0], "free") == 0)
		do_free(w);
	else if (strcmp(w[0], "apart") == 0)
		do_apart(w);
	else if (strcmp(w[0], "hint") == 0)
		do_hint(w);
	else if (strcmp(w[0], "name") == 0)
		say("%d", pthread_setname_np(pthread_self(), w[1]));
	else if (strcmp(w[0], "prctl") == 0)
		say("%d", prctl(PR_SET_NAME, w[1]));
	else if (strcmp(w[0], "rename") == 0)
		say("%d", pthread_setname_np(worker_of(w[1])->thread, w[2]));
	else if (strcmp(w[0], "open") == 0)
		do_open(w);
	else if (strcmp(w[0], "close") == 0)
		say("%d", dlclose(object));
	else if (strcmp(w[0], "json") == 0)
		do_json();
	else if (strcmp(w[0], "strangers") == 0)
		do_strangers();
	else if (strcmp(w[0], "tick") == 0)
		do_tick(w);
	else if (strcmp(w[0], "resident") == 0)
		do_resident();
	else if (strcmp(w[0], "on") == 0)
		do_on(w);
	else if (strcmp(w[0], "join") == 0)
		do_join(w);
	else if (strcmp(w[0], "trim") == 0)
		say("%d", malloc_trim(0));
	else if (strcmp(w[0], "sleep") == 0)
		say("%d", usleep((useconds_t)(atoi(w[1]) * 1000)));
	else if (strcmp(w[0], "light") == 0)
		watched = 4096, say("light");
	else if (strcmp(w[0], "exit") == 0)
		exit(atoi(w[1]));
	else
		each(w);
	end_run();
}

static void put(const char *text, size_t n)
{
	while (n > 0) {
		ssize_t k = write(1, text, n);
		CHECK(k > 0, "write");
		text += k;
		n -= (size_t)k;
	}
}

int main(void)
{
	static char script[256 << 10];
	slurp("/dev/stdin", script, sizeof script);
	int parent = 0; // in it, and passing over the child's lines
	for (char *line = script, *end; *line != 0; line = end) {
		end = line + strcspn(line, "\n");
		if (*end != 0)
			*end++ = 0;
		char *w[WORDS + 1] = {0}, *save;
		int n = 0;
		for (char *word = strtok_r(line, " ", &save); word != NULL && n < WORDS; word = strtok_r(NULL, " ", &save))
			w[n++] = word;
		if (n == 0)
			continue;
		answer.n = 0;
		if (strcmp(w[0], "end") == 0) {
			if (!parent)
				exit(0); // the child
			parent = 0;
			continue;
		}
		if (parent)
			continue;
		if (strcmp(w[0], "fork") == 0) {
			pid_t child = fork();
			CHECK(child >= 0, "fork");
			if (child == 0) {
				put("child\n", 6);
				continue;
			}
			int status;
			CHECK(waitpid(child, &status, 0) == child, "waitpid");
			say("status %d", status);
			parent = 1;
		} else {
			obey(w);
		}
		say("\n");
		put(answer.text, answer.n);
	}
	return 0;
}
