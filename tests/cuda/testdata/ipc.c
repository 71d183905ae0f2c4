// Handles that are opened and closed: each open has one close, of the very address. (A
// real driver opens them in another process only; the fake one is not so strict.)
#include "common.h"

static CUdeviceptr open_block(CUdeviceptr block)
{
	CUdeviceptr p = 0;
	CUipcMemHandle h;
	OK(cu.cuIpcGetMemHandle(&h, block));
	OK(cu.cuIpcOpenMemHandle_v2(&p, h, 1));
	return p;
}

// Blocks cut from a segment, after the first.
static void blocks(CUdeviceptr *p, int n)
{
	CUdeviceptr first;
	load();
	OK(cu.cuMemAlloc_v2(&first, 1000));
	for (int i = 0; i < n; i++)
		OK(cu.cuMemAlloc_v2(&p[i], 1000));
}

static void interior(void)
{
	CUdeviceptr p[2], q, large;
	blocks(p, 2);
	OK(cu.cuMemAlloc_v2(&large, 4 * MIB));
	OK(cu.cuIpcCloseMemHandle(open_block(p[0])));
	q = open_block(large);
	SHOW(cu.cuIpcCloseMemHandle(q + 4096));
	SHOW(cu.cuIpcCloseMemHandle(q));
	SHOW(cu.cuIpcCloseMemHandle(q));
	q = open_block(p[1]);
	SHOW(cu.cuIpcCloseMemHandle(q + 512));
	SHOW(cu.cuIpcCloseMemHandle(q - 512));
	SHOW(cu.cuIpcCloseMemHandle(q));
	SHOW(cu.cuIpcCloseMemHandle(q));
	SHOW(cu.cuIpcCloseMemHandle(0));
}

static void twice(void)
{
	CUdeviceptr p[2], q, r;
	blocks(p, 2);
	q = open_block(p[0]);
	CHECK(open_block(p[0]) == q);
	r = open_block(p[1]);
	SHOW(cu.cuIpcCloseMemHandle(q));
	SHOW(cu.cuIpcCloseMemHandle(q));
	SHOW(cu.cuIpcCloseMemHandle(q)); // must not be taken for r's
	SHOW(cu.cuIpcCloseMemHandle(r));
	SHOW(cu.cuIpcCloseMemHandle(r));
}

// A close that the driver refuses has not happened.
static void refused(void)
{
	CUdeviceptr p, q;
	blocks(&p, 1);
	q = open_block(p);
	fake.fake_fail("cuIpcCloseMemHandle", 1, 700);
	SHOW(cu.cuIpcCloseMemHandle(q));
	SHOW(cu.cuIpcCloseMemHandle(q));
	SHOW(cu.cuIpcCloseMemHandle(q));
}

// More than are kept in mind.
static void many(void)
{
	enum { N = 1500 };
	static CUdeviceptr p[N], q[N];
	blocks(p, N);
	for (int again = 0; again < 2; again++) {
		for (int i = 0; i < N; i++)
			q[i] = open_block(p[i]);
		for (int i = N - 1; i >= 0; i--)
			OK(cu.cuIpcCloseMemHandle(q[i]));
		SHOW(cu.cuIpcCloseMemHandle(q[0]));
		SHOW(cu.cuIpcCloseMemHandle(q[N - 1]));
	}
	interior();
}

int main(int argc, char **argv)
{
	static const struct test tests[] = {
		{"interior", interior}, {"twice", twice}, {"refused", refused}, {"many", many}};
	RUN(tests);
}
