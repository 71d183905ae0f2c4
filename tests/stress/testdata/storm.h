// Blocks whose every byte is known, and the random choices that make them.
#ifndef STORM_H
#define STORM_H
#include <stddef.h>
#include <stdint.h>

// A block and what its bytes must be. An empty one has p == NULL.
struct block {
	unsigned char *p;
	size_t n;
	uint64_t id;
};

// Calls made, as the library should have counted them.
struct calls {
	uint64_t malloc, calloc, realloc, memalign, aligned_alloc, posix_memalign;
	uint64_t usable, free;
};

// One stream of operations. It outlives the threads that take turns to run it.
struct lane {
	uint64_t random; // state of the generator
	uint64_t ops;    // done so far
	uint64_t next_id;
	unsigned number;
	struct calls calls;
};

extern uint64_t storm_seed;

uint64_t storm_random(struct lane *l);
// A number below n.
uint64_t storm_below(struct lane *l, uint64_t n);

// Makes a block of a random size by a random function, checks what the function
// promises and fills it.
struct block block_make(struct lane *l);
// The same, but never large.
struct block block_make_small(struct lane *l);
// Checks the whole block.
void block_check(struct lane *l, const struct block *b, const char *when);
void block_free(struct lane *l, struct block *b);
// Gives the block another size; what fits of its bytes must come along.
void block_resize(struct lane *l, struct block *b);

// Ends the process with one line that says where the lane is.
_Noreturn void storm_fail(struct lane *l, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
