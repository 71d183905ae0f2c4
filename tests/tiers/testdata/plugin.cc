// A shared object that allocates: in C, in C++, and by asking libc to.
#include <cstdlib>
#include <cstring>
#include <new>

extern "C" {
void *plugin_malloc(size_t n) { return std::malloc(n); }
void *plugin_calloc(size_t n) { return std::calloc(n, 1); }
void *plugin_realloc(size_t n) { return std::realloc(std::malloc(n / 2 + 1), n); }
void *plugin_memalign(size_t n)
{
	void *p = nullptr;
	return posix_memalign(&p, 64, n) == 0 ? p : nullptr;
}
void *plugin_new(size_t n) { return ::operator new(n); }
void *plugin_array(size_t n) { return new (std::nothrow) char[n]; }
void *plugin_aligned(size_t n) { return ::operator new(n, std::align_val_t(128)); }
void *plugin_strdup(size_t n)
{
	static char text[1 << 16];
	std::memset(text, 'x', n - 1);
	text[n - 1] = 0;
	return strdup(text);
}
}
