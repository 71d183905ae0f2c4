// The contexts that the device heap knows, and the lock under which contexts begin and end.
#include "cuda_driver.h"
#include "process_lock.h"

// The driver may reuse a handle that it has just released for the next context. The lock keeps a
// next context from beginning until the heap knows that the old one has ended.
static int lives;

void ta_cuda_lives_lock(void) { ta_process_lock(&lives, TA_LOCK_CONTEXTS); }

void ta_cuda_lives_unlock(void) { ta_process_unlock(&lives, TA_LOCK_CONTEXTS); }

CUresult ta_cuda_primary(CUcontext *out, int device)
{
	CUdevice d;
	CUresult e = ta_cu.cuDeviceGet(&d, device);
	ta_cuda_lives_lock();
	if (e == CUDA_SUCCESS)
		e = ta_cu.cuDevicePrimaryCtxRetain(out, d);
	ta_cuda_lives_unlock();
	return e;
}

static ta_cuda_known contexts[TA_CUDA_CONTEXTS];
static CUcontext const beginning = (CUcontext)-1; // marks an entry that is being filled in

// Notes a context that the heap has asked about. Two threads may do so at the same time: a context
// that is noted twice does no harm.
void ta_cuda_note(CUcontext c, CUdevice d)
{
	CUcontext none = NULL;
	for (int i = 0; i < TA_CUDA_CONTEXTS; i++)
		if (__atomic_load_n(&contexts[i].context, __ATOMIC_ACQUIRE) == c)
			return;
	for (int i = 0; i < TA_CUDA_CONTEXTS; i++, none = NULL)
		if (__atomic_compare_exchange_n(
				&contexts[i].context, &none, beginning, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
			contexts[i].device = d;
			__atomic_store_n(&contexts[i].context, c, __ATOMIC_RELEASE);
			return;
		}
}

void ta_cuda_forget(CUcontext c)
{
	for (int i = 0; i < TA_CUDA_CONTEXTS; i++) {
		CUcontext was = c;
		__atomic_compare_exchange_n(
			&contexts[i].context, &was, NULL, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
	}
}

int ta_cuda_contexts(ta_cuda_known out[TA_CUDA_CONTEXTS])
{
	int n = 0;
	for (int i = 0; i < TA_CUDA_CONTEXTS; i++) {
		CUcontext c = __atomic_load_n(&contexts[i].context, __ATOMIC_ACQUIRE);
		if (c != NULL && c != beginning)
			out[n++] = (ta_cuda_known){c, contexts[i].device};
	}
	return n;
}
