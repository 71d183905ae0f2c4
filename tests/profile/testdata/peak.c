// peak allocates blocks of 64 KiB from three functions in three phases, and has none in use at its
// end. Each phase frees what the one before has left, but for a few. The second phase, in which a
// second thread allocates and the first one frees, has most in use.
#include <pthread.h>
#include <stdlib.h>

enum { SIZE = 64 << 10, EARLY = 300, STAYS = 50, MIDDLE = 400, LATE = 200 };

static char *early[EARLY], *middle[MIDDLE], *late[LATE];

#define SITE(name) \
	__attribute__((noinline)) static char *name##_site(void) \
	{ \
		char *p = malloc(SIZE); \
		*p = 1; \
		return p; \
	}
// clang-format off
SITE(early)
SITE(middle)
SITE(late)
// clang-format on

static void *other(void *none)
{
	for (int i = 0; i < MIDDLE; i++)
		middle[i] = middle_site();
	return none;
}

int main(void)
{
	pthread_t t;
	for (int i = 0; i < EARLY; i++)
		early[i] = early_site();
	for (int i = STAYS; i < EARLY; i++)
		free(early[i]);
	if (pthread_create(&t, NULL, other, NULL) != 0 || pthread_join(t, NULL) != 0)
		return 1;
	for (int i = 0; i < MIDDLE; i++)
		free(middle[i]);
	for (int i = 0; i < LATE; i++)
		late[i] = late_site();
	for (int i = 0; i < LATE; i++)
		free(late[i]);
	for (int i = 0; i < STAYS; i++)
		free(early[i]);
	return 0;
}
