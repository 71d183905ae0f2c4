// Allocates and frees, and writes what it did to the file argv[1]. Before each of argv[2] rounds it
// waits for a byte of standard input, and after it writes one.
#include <stdio.h>
#include <stdlib.h>
#include <fcntl.h>
#include <unistd.h>

enum { SLOTS = 500, STEPS = 6000 };

static struct {
	void *was, *is;
	size_t size;
} did[2 * STEPS];
static int steps;

static void note(void *was, void *is, size_t size)
{
	did[steps].was = was;
	did[steps].is = is;
	did[steps++].size = size;
}

static size_t size_of(unsigned random)
{
	if (random % 61 == 0)
		return 3000000 + random % 100000; // a mapping of its own
	return random % 7 == 0 ? 20000 + random % 50000 : random % 1500 + 1;
}

static void work(void)
{
	static void *slot[SLOTS];
	static unsigned random = 1;
	for (steps = 0; steps < STEPS;) {
		random = random * 1103515245 + 12345;
		void **s = &slot[random / 65536 % SLOTS];
		size_t n = size_of(random >> 4);
		void *was = *s;
		if (was == NULL || random % 9 == 0) { // "was" is the argument of realloc, if any
			*s = realloc(was, n);
			note(was, *s, n);
		} else if (random % 5 == 0) {
			free(was);
			note(was, NULL, 0);
			*s = aligned_alloc(64, n);
			note(NULL, *s, n);
		} else {
			free(was);
			note(was, NULL, 0);
			*s = NULL;
		}
	}
}

int main(int argc, char **argv)
{
	int out = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC, 0600);
	for (int rounds = atoi(argv[2]); rounds > 0; rounds--) {
		char c = 0;
		if (read(0, &c, 1) < 0)
			return 1;
		work();
		for (int i = 0; i < steps; i++) {
			char line[80]; // dprintf of older libc allocates
			int n = snprintf(line, sizeof line, "%lu %lu %zu\n", (unsigned long)did[i].was,
				(unsigned long)did[i].is, did[i].size);
			if (write(out, line, n) != n)
				return 1;
		}
		if (write(1, &c, 1) < 0)
			return 1;
	}
	return 0;
}
