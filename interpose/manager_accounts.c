// ta_mm_*: managers, which divide the memory of a device between instances. Package manager keeps
// the accounts and decides. Blocks are in manager_block.c, queues in manager_queue.c.
#include "cuda_driver.h"
#include "manager.h"

TA_CHECK_MM_INFO;
TA_CHECK_MM_CHUNKING;
_Static_assert(sizeof(ta_mm_request) == 32, "read by package manager");
_Static_assert(TA_MM_DEVICE == TA_MANAGER_DEVICE && TA_MM_PINNED == TA_MANAGER_PINNED &&
		TA_MM_MAPPED == TA_MANAGER_MAPPED && TA_MM_MANAGED == TA_MANAGER_MANAGED,
	"kinds");

static uint64_t bits(double d)
{
	uint64_t u;
	memcpy(&u, &d, sizeof u);
	return u;
}

static double real(uint64_t u)
{
	double d;
	memcpy(&d, &u, sizeof d);
	return d;
}

int ta_mm_device(ta_mm *m, ta_manager_call *c)
{
	*c = ta_manager_about(TA_MANAGER_OP_DEVICE, m, 0);
	return ta_manager_ask(c);
}

CUresult ta_mm_memory(CUcontext c, size_t *free, size_t *total)
{
	CUcontext before;
	CUresult e = ta_cu.cuCtxPushCurrent_v2(c);
	if (e != CUDA_SUCCESS)
		return e;
	e = ta_cuda_memory(free, total);
	ta_cu.cuCtxPopCurrent_v2(&before);
	return e;
}

EXPORT ta_mm *ta_mm_create(int device, size_t total, const char *name)
{
	CUcontext context;
	size_t free;
	if (device < 0 || !ta_cuda_serves(NULL) || ta_cuda_primary(&context, device) != CUDA_SUCCESS)
		return errno = ENODEV, NULL;
	if (total == 0 && ta_mm_memory(context, &free, &total) != CUDA_SUCCESS)
		return errno = ENODEV, NULL;
	ta_manager_call c = ta_manager_about(TA_MANAGER_OP_CREATE, NULL, 0);
	c.Bytes = total;
	c.Device = (uint64_t)device;
	c.Context = (uint64_t)context;
	c.Name = (uint64_t)name;
	return ta_manager_ask(&c) == 0 ? (ta_mm *)c.Manager : NULL;
}

EXPORT int ta_mm_destroy(ta_mm *m)
{
	ta_manager_call c = ta_manager_about(TA_MANAGER_OP_DESTROY, m, 0);
	return ta_manager_ask(&c);
}

EXPORT int ta_mm_set_mode(ta_mm *m, int mode)
{
	ta_manager_call c = ta_manager_about(TA_MANAGER_OP_MODE, m, 0);
	c.On = (uint64_t)mode;
	return ta_manager_ask(&c);
}

EXPORT int ta_mm_register(ta_mm *m, uint64_t instance, const char *name, const char *group,
	double proportion, ta_mm_evict evict, void *arg)
{
	ta_manager_call c = ta_manager_about(TA_MANAGER_OP_REGISTER, m, instance);
	c.Name = (uint64_t)name;
	c.Group = (uint64_t)group;
	c.Proportion = bits(proportion);
	c.Evict = (uint64_t)evict;
	c.Arg = (uint64_t)arg;
	return ta_manager_ask(&c);
}

EXPORT int ta_mm_unregister(ta_mm *m, uint64_t instance)
{
	ta_manager_call c = ta_manager_about(TA_MANAGER_OP_UNREGISTER, m, instance);
	return ta_manager_ask(&c);
}

EXPORT int ta_mm_set_manual(ta_mm *m, uint64_t instance, double proportion)
{
	ta_manager_call c = ta_manager_about(TA_MANAGER_OP_MANUAL, m, instance);
	c.Proportion = bits(proportion);
	return ta_manager_ask(&c);
}

EXPORT int ta_mm_set_auto(ta_mm *m, uint64_t instance)
{
	ta_manager_call c = ta_manager_about(TA_MANAGER_OP_AUTO, m, instance);
	return ta_manager_ask(&c);
}

EXPORT int ta_mm_set_group(ta_mm *m, uint64_t instance, const char *group)
{
	ta_manager_call c = ta_manager_about(TA_MANAGER_OP_GROUP, m, instance);
	c.Group = (uint64_t)group;
	return ta_manager_ask(&c);
}

EXPORT int ta_mm_pools(ta_mm *m, double *manual, double *automatic)
{
	ta_manager_call c = ta_manager_about(TA_MANAGER_OP_POOLS, m, 0);
	int answer = ta_manager_ask(&c);
	if (answer == 0 && manual != NULL)
		*manual = real(c.Manual);
	if (answer == 0 && automatic != NULL)
		*automatic = real(c.Automatic);
	return answer;
}

EXPORT int ta_mm_get(ta_mm *m, uint64_t instance, ta_mm_info *out)
{
	struct ta_manager_info info;
	ta_manager_call c = ta_manager_about(TA_MANAGER_OP_GET, m, instance);
	c.Out = (uint64_t)&info;
	if (out == NULL || out->size < sizeof out->size)
		return errno = EINVAL, -1;
	int answer = ta_manager_ask(&c);
	if (answer == 0)
		ta_mm_fill(out, &info, sizeof info);
	return answer;
}

int ta_mm_free_of(ta_mm *m, size_t free, ta_manager_call *c, size_t *total)
{
	ta_manager_call device;
	c->Free = free;
	*total = 0;
	if (free != TA_MM_ASK)
		return 0;
	int answer = ta_mm_device(m, &device);
	if (answer == 0 &&
		(!ta_cuda_serves(NULL) ||
			ta_mm_memory((CUcontext)device.Context, &free, total) != CUDA_SUCCESS))
		return errno = ENODEV, -1;
	c->Free = free;
	c->FreeOfHeap = 1;
	return answer;
}

EXPORT int ta_mm_available(ta_mm *m, const char *group, size_t free, size_t *out)
{
	size_t total;
	ta_manager_call c = ta_manager_about(TA_MANAGER_OP_AVAILABLE, m, 0);
	if (out == NULL)
		return errno = EINVAL, -1;
	if (ta_mm_free_of(m, free, &c, &total) != 0)
		return -1;
	c.Group = (uint64_t)group;
	int answer = ta_manager_ask(&c);
	if (answer >= 0)
		*out = c.Available;
	return answer;
}

EXPORT int ta_mm_chunk(ta_mm *m, const char *group, size_t free, const ta_mm_request *requests,
	size_t n, size_t runs, ta_mm_chunking *out)
{
	size_t total;
	struct ta_manager_chunking chunking = {0};
	ta_manager_call c = ta_manager_about(TA_MANAGER_OP_CHUNK, m, 0);
	if (out == NULL || out->size < sizeof out->size || (requests == NULL && n != 0))
		return errno = EINVAL, -1;
	if (ta_mm_free_of(m, free, &c, &total) != 0)
		return -1;
	c.Group = (uint64_t)group;
	c.Requests = (uint64_t)requests;
	c.Count = n;
	c.Runs = runs;
	c.Out = (uint64_t)&chunking;
	int answer = ta_manager_ask(&c);
	if (answer == 0 || errno != EINVAL)
		ta_mm_fill(out, &chunking, sizeof chunking);
	return answer;
}

EXPORT int ta_mm_use(ta_mm *m, uint64_t instance, void *stream)
{
	ta_manager_call c = ta_manager_about(TA_MANAGER_OP_USE, m, instance);
	c.Stream = (uint64_t)stream;
	return ta_manager_ask(&c);
}

EXPORT int ta_mm_hold(ta_mm *m, uint64_t instance, int on)
{
	ta_manager_call c = ta_manager_about(TA_MANAGER_OP_HOLD, m, instance);
	c.On = (uint64_t)on;
	return ta_manager_ask(&c);
}

EXPORT int ta_mm_charge(ta_mm *m, uint64_t instance, ssize_t bytes)
{
	ta_manager_call c = ta_manager_about(TA_MANAGER_OP_ACCOUNT, m, instance);
	c.Bytes = (uint64_t)bytes;
	return ta_manager_ask(&c);
}

void ta_mm_stream_ends(CUstream s)
{
	ta_manager_call c = ta_manager_about(TA_MANAGER_OP_STREAM_END, NULL, 0);
	c.Stream = (uint64_t)s;
	ta_go_manager((uintptr_t)&c);
}

void ta_mm_context_gone(CUcontext gone)
{
	ta_manager_call c = ta_manager_about(TA_MANAGER_OP_CONTEXT_END, NULL, 0);
	c.Context = (uint64_t)gone;
	ta_go_manager((uintptr_t)&c);
}
