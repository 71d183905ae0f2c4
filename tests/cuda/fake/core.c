// What all calls share: the lock, counts, failures on demand; and contexts.
#include <unistd.h>
#include "fake.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int inited;
static pid_t owner;
static unsigned long illegals;
static struct CUctx_st contexts[CONTEXTS];
__thread CUcontext fake_stack[STACK];
__thread int fake_depth, fake_mode;

static struct function {
	const char *name;
	unsigned long calls;
	int fail_in;
	CUresult with;
} functions[256];

static struct function *function(const char *name)
{
	for (unsigned i = 0; i < sizeof functions / sizeof *functions; i++) {
		if (functions[i].name == NULL)
			functions[i].name = strdup(name);
		if (strcmp(functions[i].name, name) == 0)
			return &functions[i];
	}
	abort();
}

// A forked child is refused and, as with the real one, does not wait for threads that are not
// there.
static void forked(void) { pthread_mutex_init(&lock, NULL); }

static __attribute__((constructor)) void begin(void) { pthread_atfork(NULL, NULL, forked); }

int fake_enter(const char *name, int needs)
{
	if (inited && owner != getpid())
		return pthread_mutex_lock(&lock), CUDA_ERROR_NOT_INITIALIZED;
	pthread_mutex_lock(&lock);
	struct function *f = function(name);
	f->calls++;
	if (f->fail_in > 0 && --f->fail_in == 0)
		return f->with;
	if (needs >= INIT && !inited)
		return CUDA_ERROR_NOT_INITIALIZED;
	if (needs == CONTEXT && fake_current() == NULL)
		return INVALID_CONTEXT;
	if (needs == CONTEXT && !fake_current()->alive)
		return CONTEXT_IS_DESTROYED;
	return CUDA_SUCCESS;
}

void fake_leave(int *held)
{
	(void)held;
	pthread_mutex_unlock(&lock);
}

CUresult fake_illegal(CUresult e, const char *what)
{
	illegals++;
	fprintf(stderr, "fake: illegal: %s\n", what);
	return e;
}

void fake_fail(const char *name, int nth, CUresult e)
{
	pthread_mutex_lock(&lock);
	struct function *f = function(name);
	f->fail_in = nth;
	f->with = e;
	pthread_mutex_unlock(&lock);
}

unsigned long fake_calls(const char *name)
{
	pthread_mutex_lock(&lock);
	unsigned long n = function(name)->calls;
	pthread_mutex_unlock(&lock);
	return n;
}

unsigned long fake_illegals(void) { return illegals; }

CUcontext fake_current(void) { return fake_depth > 0 ? fake_stack[fake_depth - 1] : NULL; }

int fake_index(CUcontext c)
{
	return c >= contexts && c < contexts + CONTEXTS ? (int)(c - contexts) : -1;
}

int fake_context_ok(CUcontext c) { return fake_index(c) >= 0 && c->alive; }

API CUresult cuInit(unsigned flags)
{
	CALL(cuInit, NOTHING);
	owner = getpid();
	inited = 1;
	return flags == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

API CUresult cuDriverGetVersion(int *version)
{
	CALL(cuDriverGetVersion, NOTHING);
	*version = 13000;
	return CUDA_SUCCESS;
}

API CUresult cuDeviceGetCount(int *n)
{
	CALL(cuDeviceGetCount, INIT);
	*n = DEVICES;
	return CUDA_SUCCESS;
}

API CUresult cuDeviceGet(CUdevice *d, int ordinal)
{
	CALL(cuDeviceGet, INIT);
	if (ordinal < 0 || ordinal >= DEVICES)
		return 101;
	*d = ordinal;
	return CUDA_SUCCESS;
}

API CUresult cuDeviceGetName(char *out, int n, CUdevice d)
{
	CALL(cuDeviceGetName, INIT);
	if (out == NULL || n <= 0 || d < 0 || d >= DEVICES)
		return CUDA_ERROR_INVALID_VALUE;
	snprintf(out, (size_t)n, "Fake %d", d);
	return CUDA_SUCCESS;
}

API CUresult cuDeviceGetUuid_v2(unsigned char *out, CUdevice d)
{
	CALL(cuDeviceGetUuid_v2, INIT);
	if (out == NULL || d < 0 || d >= DEVICES)
		return CUDA_ERROR_INVALID_VALUE;
	for (int i = 0; i < 16; i++)
		out[i] = (unsigned char)(16 * d + i);
	return CUDA_SUCCESS;
}

int fake_manages(void)
{
	const char *e = getenv("FAKE_MANAGED");
	return e == NULL || *e == 0 ? 2 : atoi(e);
}

// What there is to know of managed memory.
API CUresult cuDeviceGetAttribute(int *out, int attribute, CUdevice d)
{
	CALL(cuDeviceGetAttribute, INIT);
	enum { MANAGED_MEMORY = 83, CONCURRENT_MANAGED_ACCESS = 89, VIRTUAL_MEMORY = 102, RDMA = 110 };
	if (out == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	if (d < 0 || d >= DEVICES)
		return CUDA_ERROR_INVALID_DEVICE;
	if (attribute == VIRTUAL_MEMORY || attribute == RDMA) {
		*out = attribute == VIRTUAL_MEMORY && fake_vmm();
		return CUDA_SUCCESS;
	}
	if (attribute != MANAGED_MEMORY && attribute != CONCURRENT_MANAGED_ACCESS)
		return CUDA_ERROR_INVALID_VALUE;
	*out = fake_manages() >= (attribute == MANAGED_MEMORY ? 1 : 2);
	return CUDA_SUCCESS;
}

API CUresult cuCtxCreate_v2(CUcontext *out, unsigned flags, CUdevice d)
{
	CALL(cuCtxCreate_v2, INIT);
	for (int i = DEVICES; i < CONTEXTS; i++)
		if (!contexts[i].alive) {
			contexts[i] = (struct CUctx_st){.alive = 1, .device = d};
			*out = fake_stack[fake_depth++] = &contexts[i];
			return CUDA_SUCCESS;
		}
	return CUDA_ERROR_OUT_OF_MEMORY;
}

static void destroy(CUcontext c)
{
	fake_drain_context(c);
	fake_streams_end(c);
	fake_memory_end(c);
	c->alive = 0;
	c->peers = 0;
	for (int i = 0; i < CONTEXTS; i++)
		contexts[i].peers &= ~(1ull << fake_index(c));
}

static CUresult ctx_destroy(CUcontext c)
{
	if (!fake_context_ok(c) || c->primary)
		return INVALID_CONTEXT;
	destroy(c);
	if (fake_current() == c)
		fake_depth--;
	return CUDA_SUCCESS;
}

API CUresult cuCtxDestroy(CUcontext c)
{
	CALL(cuCtxDestroy, INIT);
	return ctx_destroy(c);
}

API CUresult cuCtxDestroy_v2(CUcontext c)
{
	CALL(cuCtxDestroy_v2, INIT);
	return ctx_destroy(c);
}

API CUresult cuCtxGetCurrent(CUcontext *out)
{
	CALL(cuCtxGetCurrent, INIT);
	*out = fake_current();
	return CUDA_SUCCESS;
}

API CUresult cuCtxSetCurrent(CUcontext c)
{
	CALL(cuCtxSetCurrent, INIT);
	fake_depth -= fake_depth > 0;
	if (c != NULL)
		fake_stack[fake_depth++] = c;
	return CUDA_SUCCESS;
}

API CUresult cuCtxPushCurrent_v2(CUcontext c)
{
	CALL(cuCtxPushCurrent_v2, INIT);
	if (!fake_context_ok(c))
		return fake_illegal(INVALID_CONTEXT, "push of a context that is none");
	if (fake_depth == STACK)
		return fake_illegal(CUDA_ERROR_INVALID_VALUE, "contexts are pushed and never popped");
	fake_stack[fake_depth++] = c;
	return CUDA_SUCCESS;
}

API CUresult cuCtxPopCurrent_v2(CUcontext *out)
{
	CALL(cuCtxPopCurrent_v2, INIT);
	if (fake_depth == 0)
		return fake_illegal(INVALID_CONTEXT, "pop without a context");
	*out = fake_stack[--fake_depth];
	return CUDA_SUCCESS;
}

API CUresult cuCtxGetDevice(CUdevice *d)
{
	CALL(cuCtxGetDevice, CONTEXT);
	*d = fake_current()->device;
	return CUDA_SUCCESS;
}

API CUresult cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice d)
{
	CALL(cuDevicePrimaryCtxRetain, INIT);
	if (d < 0 || d >= DEVICES)
		return 101;
	CUcontext c = &contexts[d];
	if (!c->alive)
		*c = (struct CUctx_st){.alive = 1, .primary = 1, .device = d};
	c->refs++;
	*out = c;
	return CUDA_SUCCESS;
}

API CUresult cuDevicePrimaryCtxGetState(CUdevice d, unsigned *flags, int *active)
{
	CALL(cuDevicePrimaryCtxGetState, INIT);
	*flags = 0;
	*active = contexts[d].alive;
	return CUDA_SUCCESS;
}

static CUresult primary_release(CUdevice d)
{
	if (!contexts[d].alive || contexts[d].refs == 0)
		return INVALID_CONTEXT;
	if (--contexts[d].refs == 0)
		destroy(&contexts[d]);
	return CUDA_SUCCESS;
}

static CUresult primary_reset(CUdevice d)
{
	if (contexts[d].alive)
		destroy(&contexts[d]);
	contexts[d].refs = 0;
	return CUDA_SUCCESS;
}

#define PRIMARY(name, how) \
	API CUresult name(CUdevice d) \
	{ \
		CALL(name, INIT); \
		return d < 0 || d >= DEVICES ? 101 : how(d); \
	}
PRIMARY(cuDevicePrimaryCtxRelease, primary_release)
PRIMARY(cuDevicePrimaryCtxRelease_v2, primary_release)
PRIMARY(cuDevicePrimaryCtxReset, primary_reset)
PRIMARY(cuDevicePrimaryCtxReset_v2, primary_reset)

API CUresult cuCtxEnablePeerAccess(CUcontext to, unsigned flags)
{
	CALL(cuCtxEnablePeerAccess, CONTEXT);
	if (!fake_context_ok(to) || to == fake_current())
		return INVALID_CONTEXT;
	if (fake_current()->peers >> fake_index(to) & 1)
		return PEER_ALREADY_ENABLED;
	fake_current()->peers |= 1ull << fake_index(to);
	return CUDA_SUCCESS;
}

API CUresult cuCtxDisablePeerAccess(CUcontext to)
{
	CALL(cuCtxDisablePeerAccess, CONTEXT);
	if (!fake_context_ok(to) || !(fake_current()->peers >> fake_index(to) & 1))
		return PEER_NOT_ENABLED;
	fake_current()->peers &= ~(1ull << fake_index(to));
	return CUDA_SUCCESS;
}

API CUresult cuCtxSynchronize(void)
{
	CALL(cuCtxSynchronize, CONTEXT);
	if (fake_forbidden() || fake_capturing_in(fake_current()))
		return CAPTURE_UNSUPPORTED;
	fake_drain_context(fake_current());
	return CUDA_SUCCESS;
}

void fake_complete(CUstream s)
{
	pthread_mutex_lock(&lock);
	CUstream real = fake_stream(s, 0);
	if (real != NULL)
		fake_drain(real);
	pthread_mutex_unlock(&lock);
}

void fake_complete_all(void)
{
	pthread_mutex_lock(&lock);
	fake_drain_all();
	pthread_mutex_unlock(&lock);
}

int fake_busy(CUdeviceptr p, size_t n, CUstream s, int ordered)
{
	pthread_mutex_lock(&lock);
	int busy = fake_pending(p, n, ordered ? fake_stream(s, 0) : NULL);
	pthread_mutex_unlock(&lock);
	return busy;
}
