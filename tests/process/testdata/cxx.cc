// Every form of operator new and delete, and what new does without memory.
#include "common.h"
#include <malloc.h>
#include <new>
#include <sys/resource.h>
#include <vector>

static const std::align_val_t A64{64}, A4K{4096};
static const std::nothrow_t &nt = std::nothrow;

static void forms()
{
	for (size_t n = 0; n < 100000; n = n * 3 + 1) {
		void *p[] = {operator new(n), operator new[](n), operator new(n, nt), operator new[](n, nt),
			operator new(n, A64), operator new[](n, A64), operator new(n, A4K, nt), operator new[](n, A4K, nt)};
		for (unsigned i = 0; i < 8; i++) {
			CHECK(p[i] != nullptr && malloc_usable_size(p[i]) >= n);
			CHECK((uintptr_t)p[i] % (i < 4 ? 16 : i < 6 ? 64 : 4096) == 0, "form %u, size %zu: %p", i, n, p[i]);
			memset(p[i], 1, n);
		}
		operator delete(p[0]), operator delete[](p[1]);
		operator delete(p[2], nt), operator delete[](p[3], nt);
		operator delete(p[4], A64), operator delete[](p[5], A64);
		operator delete(p[6], A4K, nt), operator delete[](p[7], A4K, nt);
		operator delete(operator new(n), n), operator delete[](operator new[](n), n);
		operator delete(operator new(n, A64), n, A64), operator delete[](operator new[](n, A4K), n, A4K);
	}
	errno = 99;
	operator delete(nullptr), operator delete[](nullptr, nt), operator delete(nullptr, A64);
	delete (new (A64) long), delete[] (new std::vector<int>[7]);
	CHECK(errno == 99);
}

static void limit()
{
	struct rlimit l = {400 * MIB, 400 * MIB};
	CHECK(setrlimit(RLIMIT_AS, &l) == 0);
}

template <class F> static bool throws(F f)
{
	try {
		f();
	} catch (const std::bad_alloc &) {
		return true;
	}
	return false;
}

static void bad_alloc()
{
	limit();
	for (int i = 0; i < 20; i++) {
		CHECK(throws([] { hide(operator new(1000 * MIB)); }));
		CHECK(throws([] { hide(operator new[](SIZE_MAX - 5)); }));
		CHECK(throws([] { hide(operator new(1000 * MIB, A64)); }));
		CHECK(throws([] { hide(operator new[](SIZE_MAX - 5, A4K)); }));
	}
	std::vector<void *> all;
	all.reserve(1 << 20);
	CHECK(throws([&] { for (;;) all.push_back(operator new(60000)); }));
	CHECK(all.size() > 2000, "%zu", all.size());
	for (void *p : all)
		operator delete(p);
	operator delete(operator new(100 * MIB)); // life goes on
}

static void nothrow()
{
	limit();
	CHECK(operator new(1000 * MIB, nt) == nullptr && operator new[](1000 * MIB, nt) == nullptr);
	CHECK(operator new(1000 * MIB, A64, nt) == nullptr && operator new[](SIZE_MAX - 5, A4K, nt) == nullptr);
	CHECK(new (nt) char[1000 * MIB] == nullptr);
}

static int calls;
static void *reserve;

static void gives_way() { calls++, operator delete(reserve), reserve = nullptr, std::set_new_handler(nullptr); }
static void counts()
{
	if (++calls == 3)
		std::set_new_handler(nullptr);
}
static void throws_int() { calls++; throw 7; }
static void throws_bad() { calls++; throw std::bad_alloc(); }

// The handler is asked again and again until there is memory or no handler.
static void handler()
{
	limit();
	reserve = operator new(250 * MIB);
	std::set_new_handler(gives_way);
	void *p = operator new(200 * MIB);
	CHECK(p != nullptr && calls == 1);
	operator delete(p);
	for (int form = 0; form < 4; form++) {
		calls = 0;
		std::set_new_handler(counts);
		if (form == 0)
			CHECK(throws([] { hide(operator new(1000 * MIB)); }));
		else if (form == 1)
			CHECK(throws([] { hide(operator new[](1000 * MIB, A64)); }));
		else if (form == 2)
			CHECK(operator new(1000 * MIB, nt) == nullptr);
		else
			CHECK(operator new[](1000 * MIB, A64, nt) == nullptr);
		CHECK(calls == 3, "form %d: %d", form, calls);
	}
	std::set_new_handler(throws_int);
	try {
		hide(operator new(1000 * MIB));
		CHECK(false);
	} catch (int seven) {
		CHECK(seven == 7);
	}
}

// The standard: the nothrow form returns null when the handler throws bad_alloc.
static void throwing_handler()
{
	limit();
	std::set_new_handler(throws_bad);
	CHECK(operator new(1000 * MIB, nt) == nullptr && calls == 1);
	CHECK(operator new[](1000 * MIB, A64, nt) == nullptr && calls == 2);
}

static const struct test tests[] = {{"forms", forms}, {"bad_alloc", bad_alloc}, {"nothrow", nothrow}, {"handler", handler},
	{"throwing handler", throwing_handler}};

int main(int argc, char **argv) { RUN(tests); }
