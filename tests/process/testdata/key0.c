// Uses a thread-specific key that it never made, as a static variable is 0, and then makes it.
#include "common.h"
#include <pthread.h>

static pthread_key_t key;

static void ends(void *p) { free(p); }

static void *works(void *v)
{
	free(hide(malloc(100)));
	CHECK(pthread_getspecific(key) == NULL);
	CHECK(pthread_setspecific(key, malloc(10)) == 0);
	free(hide(malloc(100)));
	return v;
}

int main(void)
{
	free(hide(malloc(100)));
	CHECK(pthread_setspecific(key, &key) == EINVAL && pthread_key_delete(key) == EINVAL &&
		pthread_getspecific(key) == NULL);
	CHECK(pthread_key_create(&key, ends) == 0 && key == 0);
	for (int i = 0; i < 10; i++) {
		pthread_t t;
		CHECK(pthread_create(&t, NULL, works, NULL) == 0 && pthread_join(t, NULL) == 0);
	}
	return 0;
}
