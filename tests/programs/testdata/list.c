/* A list for the debugger to look at. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct node {
	int value;
	char *name;
	struct node *next;
};

static int sum;

int visit(struct node *n)
{
	sum += n->value;
	return sum;
}

int main(void)
{
	struct node *first = NULL;
	for (int i = 0; i < 100; i++) {
		char name[20];
		snprintf(name, sizeof name, "node %d", i);
		struct node *n = malloc(sizeof *n);
		*n = (struct node){i, strdup(name), first};
		first = n;
	}
	for (struct node *n = first; n; n = n->next)
		visit(n);
	while (first) {
		struct node *next = first->next;
		free(first->name);
		free(first);
		first = next;
	}
	printf("sum %d\n", sum);
	return 0;
}
