// A library to be opened with RTLD_DEEPBIND: its constructor frees what libc allocated for it.
#include "common.h"

const char *who(void) { return "plugin"; }
const char *asked(void) { return who(); }

__attribute__((constructor)) static void begin(void)
{
	char *s = NULL;
	CHECK(asprintf(&s, "%s %d", "built", 1) > 0);
	free(s);
	free(realloc(strdup("longer"), 1000));
}

char *joined(const char *part)
{
	char *s = NULL;
	CHECK(asprintf(&s, "%s%s%s", part, part, part) > 0);
	return s;
}

void drop(void *p) { free(p); }

void *grown(void *p, size_t n) { return realloc(p, n + 1); }

int alone(void)
{
	void *p = NULL;
	CHECK(posix_memalign(&p, 64, 100) == 0);
	free(p);
	free(realloc(strdup("a"), 100000));
	return 1;
}
