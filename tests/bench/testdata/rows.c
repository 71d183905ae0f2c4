// rows N prints the seconds of processor time for 40 rows of the product of two matrices of N rows,
// each row a block of N doubles, column by column, as a textbook does it. It steps from row to row
// at one place of them, so it is slow where the rows lie in the same sets of the caches.
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double **matrix(int n, double value)
{
	double **m = malloc(n * sizeof *m);
	for (int i = 0; i < n; i++) {
		m[i] = malloc(n * sizeof **m);
		for (int k = 0; k < n; k++)
			m[i][k] = value;
	}
	return m;
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 1000;
	double **a = matrix(n, 1), **b = matrix(n, 2), sum = 0;
	clock_t start = clock();
	for (int i = 0; i < 40 && i < n; i++)
		for (int j = 0; j < n; j++)
			for (int k = 0; k < n; k++)
				sum += a[i][k] * b[k][j];
	printf("%.3f\n", (double)(clock() - start) / CLOCKS_PER_SEC);
	return sum < 0;
}
