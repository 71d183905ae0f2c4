// What the fake knows of a piece of device memory.
#ifndef MEMORY_H
#define MEMORY_H
#include "fake.h"

enum how { PLAIN, MANAGED, ASYNC, CHUNK, MAPPED };

struct memory {
	struct memory *next;
	CUdeviceptr address;
	size_t asked, size;
	enum how how;
	CUcontext context;
	CUdevice device;
	struct memory *chunk; // that a small one is cut from
	int in_use;           // of a chunk: blocks
	size_t cut;           // of a chunk: bytes
	uint64_t id;
	int opened;  // handles of it, and not closed
	int sync;    // attribute SYNC_MEMOPS
	void *pages; // of managed memory: what managed.c knows of them
};

// The piece that an address lies in, or NULL.
struct memory *fake_find(CUdeviceptr p);
// Notes what cuMemMap has mapped. It is forgotten by fake_release.
void fake_mapped(CUdeviceptr p, size_t n, CUdevice d);

// Memory of a pool, and how many bytes all pools of a device have.
CUresult fake_allocate_async(CUdeviceptr *out, size_t n);
uint64_t fake_async_bytes(CUdevice d);

#endif
