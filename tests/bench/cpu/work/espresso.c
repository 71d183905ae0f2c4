// Many small blocks of short life, after the logic minimizer espresso (in Grunwald and Zorn's
// studies of allocators): prime implicants of random functions by Quine's and McCluskey's
// method, with a block for each cube, for its text and for its entry in a table.
#include "work.h"

#define VARIABLES 9
#define BUCKETS   1024

struct cube {
	struct cube *next, *in_bucket;
	uint32_t value, loose; // variables that are set; variables that do not matter
	int covered;
	char *text;
};

struct cover {
	struct cube *first, *bucket[BUCKETS];
};

// The cube in the notation of espresso: one character for each variable.
static char *text_of(uint32_t value, uint32_t loose)
{
	char *text = malloc(VARIABLES + 1);
	if (text == NULL)
		die("malloc");
	for (int i = 0; i < VARIABLES; i++)
		text[i] = loose >> i & 1 ? '-' : (char)('0' + (value >> i & 1));
	text[VARIABLES] = 0;
	return text;
}

static unsigned bucket_of(const char *text)
{
	unsigned h = 5381;
	while (*text != 0)
		h = h * 33 + (unsigned char)*text++;
	return h % BUCKETS;
}

// Adds the cube, unless the cover has it.
static void add(struct cover *c, uint32_t value, uint32_t loose)
{
	char *text = text_of(value, loose);
	struct cube **place = &c->bucket[bucket_of(text)];
	for (struct cube *old = *place; old != NULL; old = old->in_bucket)
		if (strcmp(old->text, text) == 0) {
			free(text);
			return;
		}
	struct cube *new = malloc(sizeof *new);
	if (new == NULL)
		die("malloc");
	*new = (struct cube){c->first, *place, value, loose, 0, text};
	c->first = *place = new;
}

// Frees the cover; returns a sum over its cubes that nothing covers.
static uint64_t discard(struct cover *c)
{
	uint64_t sum = 0;
	for (struct cube *old = c->first, *after; old != NULL; old = after) {
		char *text = text_of(old->value, old->loose);
		if (strcmp(old->text, text) != 0)
			corrupt(old->text, VARIABLES + 1, 0);
		if (!old->covered)
			sum += seed((uint64_t)old->value << 32 | old->loose);
		after = old->next;
		free(text);
		free(old->text);
		free(old);
	}
	free(c);
	return sum;
}

static struct cover *new_cover(void)
{
	struct cover *c = calloc(1, sizeof *c);
	if (c == NULL)
		die("calloc");
	return c;
}

static uint64_t minimize(uint64_t *random)
{
	uint64_t sum = 0;
	struct cover *cover = new_cover();
	for (uint32_t v = 0; v < 1u << VARIABLES; v++)
		if (next(random) >> 62 != 0)
			add(cover, v, 0);
	while (cover->first != NULL) {
		struct cover *larger = new_cover();
		for (struct cube *a = cover->first; a != NULL; a = a->next)
			for (struct cube *b = a->next; b != NULL; b = b->next) {
				uint32_t differ = a->value ^ b->value;
				if (a->loose != b->loose || (differ & (differ - 1)) != 0)
					continue;
				a->covered = b->covered = 1;
				add(larger, a->value & b->value, a->loose | differ);
			}
		sum += discard(cover);
		cover = larger;
	}
	return sum + discard(cover);
}

int main(int argc, char **argv)
{
	uint64_t sum = 0, random = seed(0);
	begin(argc, argv);
	long functions = scaled(60);
	for (long i = 0; i < functions; i++)
		sum += minimize(&random);
	return finish(sum);
}
