// Uses the functions that libc and libstdc++ build on malloc, realloc and free.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <malloc.h>
#include <new>
#include <string>

int main()
{
	for (int i = 1; i < 1000; i++) {
		void *p = reallocarray(nullptr, i, 8);
		p = reallocarray(p, i, 16);
		free(realloc(p, i));
		free(strdup("text"));
		std::string s(i, 'x');
		int *a = new int[i], *b = new (std::nothrow) int;
		delete[] a;
		delete b;
		char *line = nullptr;
		if (asprintf(&line, "%s %d", s.c_str(), i) < 0)
			return 1;
		free(line);
	}
	puts("done");
}
