// What the test programs of memory managers share.
#ifndef MM_COMMON_H
#define MM_COMMON_H
#include "common.h"
#include "tieralloc.h"

#define API(F) \
	F(ta_mm *, ta_mm_create, int, size_t, const char *) \
	F(int, ta_mm_destroy, ta_mm *) \
	F(int, ta_mm_set_mode, ta_mm *, int) \
	F(int, ta_mm_register, ta_mm *, uint64_t, const char *, const char *, double, ta_mm_evict, \
		void *) \
	F(int, ta_mm_unregister, ta_mm *, uint64_t) \
	F(int, ta_mm_set_manual, ta_mm *, uint64_t, double) \
	F(int, ta_mm_set_auto, ta_mm *, uint64_t) \
	F(int, ta_mm_set_group, ta_mm *, uint64_t, const char *) \
	F(int, ta_mm_pools, ta_mm *, double *, double *) \
	F(int, ta_mm_get, ta_mm *, uint64_t, ta_mm_info *) \
	F(int, ta_mm_available, ta_mm *, const char *, size_t, size_t *) \
	F(int, ta_mm_chunk, ta_mm *, const char *, size_t, const ta_mm_request *, size_t, size_t, \
		ta_mm_chunking *) \
	F(void *, ta_mm_alloc, ta_mm *, uint64_t, size_t, int, void *) \
	F(int, ta_mm_free, ta_mm *, void *, void *) \
	F(int, ta_mm_queue, ta_mm *, uint64_t, const ta_mm_request *, size_t, size_t) \
	F(int, ta_mm_on_ready, ta_mm *, uint64_t, ta_mm_ready, void *) \
	F(int, ta_mm_allocate_queue, ta_mm *, uint64_t, size_t, void *, ta_mm_chunking *) \
	F(int, ta_mm_use, ta_mm *, uint64_t, void *) \
	F(int, ta_mm_charge, ta_mm *, uint64_t, ssize_t) \
	F(int, ta_mm_hold, ta_mm *, uint64_t, int) \
	F(int, ta_mm_ask_idle, ta_mm *, uint64_t, int, ta_mm_asked *)

#define FIELD_OF(type, name, ...) static type (*p_##name)(__VA_ARGS__);
API(FIELD_OF)
#define mm(name) p_ta_mm_##name

static ta_mm *start(size_t total, const char *name)
{
	load();
#define FIND_IT(type, name, ...) p_##name = (type(*)(__VA_ARGS__))dlsym(RTLD_DEFAULT, #name);
	API(FIND_IT)
	ta_mm *m = mm(create)(0, total, name);
	CHECK(m != NULL, "create: %s", strerror(errno));
	return m;
}

static ta_mm_info info(ta_mm *m, uint64_t id)
{
	ta_mm_info i = {.size = sizeof i};
	CHECK(mm(get)(m, id, &i) == 0, "instance %d: %s", (int)id, strerror(errno));
	return i;
}

#endif
