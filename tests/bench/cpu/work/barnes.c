// Few allocations and much work on pointers, after Barnes and Hut's N-body method: an octree
// of malloc'ed cells is built and freed in each step. How closely an allocator places cells
// that belong together is what there is to see.
#include "work.h"
#include <math.h>

#define BODIES  30000
#define DEEPEST 60

struct body {
	double at[3], speed[3], pull[3], mass;
};

struct cell {
	double middle[3], half, centre[3], mass;
	struct cell *child[8];
	const struct body *body; // a leaf's
};

static struct cell *new_cell(const double *middle, double half)
{
	struct cell *c = calloc(1, sizeof *c);
	if (c == NULL)
		die("calloc");
	memcpy(c->middle, middle, sizeof c->middle);
	c->half = half;
	return c;
}

static void add(struct cell *c, const struct body *b, int depth);

static void add_below(struct cell *c, const struct body *b, int depth)
{
	int which = 0;
	double middle[3];
	for (int d = 0; d < 3; d++) {
		int upper = b->at[d] >= c->middle[d];
		which |= upper << d;
		middle[d] = c->middle[d] + (upper ? c->half / 2 : -c->half / 2);
	}
	if (c->child[which] == NULL)
		c->child[which] = new_cell(middle, c->half / 2);
	add(c->child[which], b, depth + 1);
}

static void add(struct cell *c, const struct body *b, int depth)
{
	const struct body *old = c->body;
	int empty = c->mass == 0;
	for (int d = 0; d < 3; d++)
		c->centre[d] = (c->centre[d] * c->mass + b->at[d] * b->mass) / (c->mass + b->mass);
	c->mass += b->mass;
	if (empty) {
		c->body = b;
		return;
	}
	if (depth == DEEPEST) // two bodies in one place
		return;
	c->body = NULL;
	if (old != NULL)
		add_below(c, old, depth);
	add_below(c, b, depth);
}

static void pull(struct body *b, const struct cell *c)
{
	double d[3], square = 1e-4;
	if (c == NULL || c->body == b)
		return;
	for (int i = 0; i < 3; i++) {
		d[i] = c->centre[i] - b->at[i];
		square += d[i] * d[i];
	}
	if (c->body != NULL || 4 * c->half * c->half < square) {
		double f = c->mass / (square * sqrt(square));
		for (int i = 0; i < 3; i++)
			b->pull[i] += d[i] * f;
		return;
	}
	for (int i = 0; i < 8; i++)
		pull(b, c->child[i]);
}

static void free_cells(struct cell *c)
{
	if (c == NULL)
		return;
	for (int i = 0; i < 8; i++)
		free_cells(c->child[i]);
	free(c);
}

static void step(struct body **bodies, long n)
{
	struct cell *root = new_cell((double[]){0, 0, 0}, 4096);
	for (long i = 0; i < n; i++)
		add(root, bodies[i], 0);
	for (long i = 0; i < n; i++) {
		memset(bodies[i]->pull, 0, sizeof bodies[i]->pull);
		pull(bodies[i], root);
	}
	free_cells(root);
	for (long i = 0; i < n; i++)
		for (int d = 0; d < 3; d++) {
			bodies[i]->speed[d] += bodies[i]->pull[d] * 1e-3;
			bodies[i]->at[d] += bodies[i]->speed[d] * 1e-3;
		}
}

int main(int argc, char **argv)
{
	uint64_t sum = 0, random = seed(0);
	begin(argc, argv);
	long n = scaled(BODIES);
	struct body **bodies = malloc((size_t)n * sizeof *bodies);
	if (bodies == NULL)
		die("malloc");
	for (long i = 0; i < n; i++) {
		if ((bodies[i] = calloc(1, sizeof **bodies)) == NULL)
			die("calloc");
		for (int d = 0; d < 3; d++)
			bodies[i]->at[d] = (double)(next(&random) >> 11) * 0x1p-52 - 1;
		bodies[i]->mass = 1.0 / (double)n;
	}
	for (int i = 0; i < 3; i++)
		step(bodies, n);
	for (long i = 0; i < n; i++) {
		for (int d = 0; d < 3; d++)
			sum += read_word((char *)&bodies[i]->at[d]);
		free(bodies[i]);
	}
	free(bodies);
	return finish(sum);
}
