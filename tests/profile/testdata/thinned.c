// Allocates far more than a thread can note at the full rate, and keeps some of it. Prints the
// sites, the bytes that each has allocated and those that are in use.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { TURNS = 1500000, LARGE = 100000, SMALL = 2000, KEPT = 500, EACH = 2000 };

static volatile char *held;

__attribute__((noinline)) static void site_large(void)
{
	for (int i = 0; i < TURNS; i++) {
		held = malloc(LARGE);
		*held = 1;
		free((void *)held);
	}
}

__attribute__((noinline)) static void site_small(void)
{
	for (int i = 0; i < TURNS; i++) {
		held = malloc(SMALL);
		*held = 1;
		free((void *)held);
	}
}

__attribute__((noinline)) static void site_kept(void)
{
	for (int i = 0; i < KEPT * EACH; i++) {
		held = malloc(LARGE);
		if (i % EACH != 0)
			free((void *)held);
	}
}

int main(void)
{
	site_large();
	site_small();
	site_kept();
	printf("site_large %jd 0\n", (intmax_t)TURNS * LARGE);
	printf("site_small %jd 0\n", (intmax_t)TURNS * SMALL);
	printf("site_kept %jd %jd\n", (intmax_t)KEPT * EACH * LARGE, (intmax_t)KEPT * LARGE);
	return 0;
}
