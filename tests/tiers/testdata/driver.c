// Does what a script on standard input says, a line at a time, and answers each line
// with one. The blocks of a script have names; a command that makes several calls
// their blocks by one name, and answers with runs: "fast*3 normal*1".
//
//	new NAME COUNT HOW SIZE    HOW: a hint (ta_alloc) or nohint, or malloc, calloc,
//	                           realloc, memalign:ALIGN, or a function of the opened
//	                           object
//	parts NAME                 the MiB of each block in the three tiers, as 32+32+0
//	tiers NAME, free NAME, resize NAME SIZE, move NAME TIER, check NAME
//	apart NAME NAME            whether no 64 KiB slice has blocks of both
//	hint HINT                  ta_set_hint
//	process HINT               ta_set_default_hint
//	name TEXT, prctl TEXT      names this thread
//	rename THREAD TEXT         names another one, which "on" has begun
//	open PATH, close           dlopen and dlclose
//	strangers                  ta_move and ta_tier_of of what is no block
//	json                       the report in one line
//	tick COUNT MS              COUNT calls into the slow path, MS apart
//	trim                       malloc_trim
//	sleep MS
//	rest                       sleeps until nothing is charged to the slow tier and something has
//	                           entered the normal one, or for two minutes
//	resident                   Rss, AnonHugePages and hugetlb of the process, in KiB
//	fork … end                 the lines between are the child's; answers as wait does
//	on THREAD COMMAND, join THREAD
//	light                      only the first 4 KiB of each block are touched from now on
//	exit STATUS
#include "blocks.h"
#include <sys/prctl.h>
#include <sys/wait.h>

enum { WORDS = 8, THREADS = 8 };

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

static ta_stats figures(void)
{
	ta_stats s = {.size = sizeof s};
	CHECK(ta_get_stats(&s) == 0, "errno %d", errno);
	return s;
}

static void do_rest(void)
{
	uint64_t before = figures().tiers[TA_NORMAL].bytes_entered;
	for (int tries = 0; tries < 1200; tries++) {
		ta_stats s = figures();
		if (s.tiers[TA_SLOW].bytes_current == 0 && s.tiers[TA_NORMAL].bytes_entered > before)
			break;
		usleep(100000);
	}
	say("rested");
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

static void do_hint(ta_hint (*set)(ta_hint), const char *word)
{
	int hint = word_of(hints, HINTS, word);
	errno = 0;
	ta_hint before = set(hint >= 0 ? (ta_hint)hint : (ta_hint)9);
	say("%s", (unsigned)before < HINTS ? hints[before] : error_name(errno));
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
		do_hint(ta_set_hint, w[1]);
	else if (strcmp(w[0], "process") == 0)
		do_hint(ta_set_default_hint, w[1]);
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
	else if (strcmp(w[0], "rest") == 0)
		do_rest();
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
		for (char *word = strtok_r(line, " ", &save); word != NULL && n < WORDS;
			 word = strtok_r(NULL, " ", &save))
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
