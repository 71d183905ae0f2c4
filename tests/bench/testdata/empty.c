// A shared library with nothing in it.
int tieralloc_bench_nothing;
