/* A program that frees hot memory of the fast node between two samples.
 *
 *   room TRIES
 *
 * uses blocks of 1 MiB alike, some of them on node 0, the others beyond its cap. Each time after a
 * sample, and what it moved, it frees some of the first, until memory goes up into their room
 * before the next sample, or so many times. It prints how many bytes went up. */
#include "guest.h"
#include <dlfcn.h>

#define BLOCKS 96
#define EACH   3

static char *blocks[BLOCKS];

/* What the library's report says of following. */
struct seen {
	long samples, time, up;
};

static long number(const char *text, const char *key)
{
	const char *at = text ? strstr(text, key) : NULL;
	return at ? atol(at + strlen(key)) : -1;
}

/* Uses all blocks, then asks. */
static struct seen look(void)
{
	static char text[1 << 18];
	size_t (*json)(char *, size_t) = (size_t(*)(char *, size_t))dlsym(
		RTLD_DEFAULT, "ta_stats_json");
	MUST(json);
	for (long i = 0; i < BLOCKS; i++)
		for (long page = 0; blocks[i] && page < MIB / PAGE; page++)
			((volatile char *)blocks[i])[page * PAGE + 8]++;
	MUST(json(text, sizeof text) < sizeof text);
	const char *following = strstr(text, "\"following\"");
	MUST(following);
	const char *room = strstr(following, "\"up_room\"");
	return (struct seen){number(following, "\"samples\":"), number(following, "\"thread_ns\":"),
		number(room, "\"bytes\":")};
}

int main(int argc, char **argv)
{
	MUST(argc == 2);
	for (long i = 0; i < BLOCKS; i++) {
		MUST(blocks[i] = malloc(MIB));
		fill(blocks[i], MIB, i);
	}
	struct seen now = look(), then;
	while (now.samples < 12)
		now = look();
	long tries = atol(argv[1]), next = 0, moved = 0;
	for (; moved == 0 && tries > 0 && next + EACH <= BLOCKS;) {
		/* The library counts its time once it has made a sample's moves. */
		for (then = now; now.samples == then.samples; now = look())
			then = now;
		long sample = now.samples;
		while (now.time == then.time)
			now = look();
		if (now.samples != sample)
			continue;
		tries--;
		for (long i = 0; i < EACH; i++, next++) {
			free(blocks[next]);
			blocks[next] = NULL;
		}
		for (then = now; now.samples == then.samples && moved == 0; now = look())
			moved = now.up - then.up;
		printf("sample %ld: %ld up\n", then.samples, moved);
	}
	printf("moved %ld\n", moved);
	return 0;
}
