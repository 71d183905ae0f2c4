// A program that brings some of the operators new and delete. Its blocks begin with a header, so that none
// may be freed by others. PLAIN, ARRAY and ALIGNED choose which it brings.
#include <cstdio>
#include <cstdlib>
#include <new>

static int news, deletes;

static void *take(size_t n)
{
	news++;
	char *p = n < 1 << 30 ? static_cast<char *>(aligned_alloc(64, (n + 127) & ~size_t(63))) : nullptr;
	if (p == nullptr)
		throw std::bad_alloc();
	*reinterpret_cast<long *>(p) = 42;
	return p + 64;
}

static void give(void *p)
{
	if (p == nullptr)
		return;
	deletes++;
	long *header = reinterpret_cast<long *>(static_cast<char *>(p) - 64);
	if (*header != 42) {
		puts("not its own");
		abort();
	}
	*header = 0;
	free(header);
}

#ifdef PLAIN
void *operator new(size_t n) { return take(n); }
void operator delete(void *p) noexcept { give(p); }
#endif
#ifdef ARRAY
void *operator new[](size_t n) { return take(n); }
void operator delete[](void *p) noexcept { give(p); }
#endif
#ifdef ALIGNED
void *operator new(size_t n, std::align_val_t) { return take(n); }
void operator delete(void *p, std::align_val_t) noexcept { give(p); }
#endif

static void scalars(size_t n)
{
	operator delete(operator new(n));
	operator delete(operator new(n), n);
	operator delete(operator new(n), std::nothrow);
	operator delete(operator new(n, std::nothrow));
	operator delete(operator new(n, std::nothrow), std::nothrow);
}

static void arrays(size_t n)
{
	operator delete[](operator new[](n));
	operator delete[](operator new[](n), n);
	operator delete[](operator new[](n), std::nothrow);
	operator delete[](operator new[](n, std::nothrow));
	operator delete[](operator new[](n, std::nothrow), n);
}

static void aligned(size_t n)
{
	const std::align_val_t a{64};
	operator delete(operator new(n, a), a);
	operator delete(operator new(n, a), n, a);
	operator delete(operator new(n, a, std::nothrow), a, std::nothrow);
	operator delete[](operator new[](n, a), a);
	operator delete[](operator new[](n, a), n, a);
	operator delete[](operator new[](n, a, std::nothrow), a, std::nothrow);
}

static void refused()
{
	const size_t n = size_t(1) << 46;
	void *volatile p = operator new(n, std::nothrow);
	void *volatile q = operator new[](n, std::nothrow);
	void *volatile r = operator new(n, std::align_val_t{64}, std::nothrow);
	int thrown = 0;
	try {
		p = operator new[](n);
	} catch (const std::bad_alloc &) {
		thrown++;
	}
	printf("%p %p %p %d\n", p, q, r, thrown);
}

int main()
{
	for (size_t n = 1; n < 1 << 22; n *= 3) {
		scalars(n);
		arrays(n);
		aligned(n);
	}
	refused();
	printf("%d %d\n", news, deletes);
}
