/* A library that keeps the loader waiting. */
#include <unistd.h>

__attribute__((constructor)) static void wait_a_second(void) { sleep(1); }
