// columns N BYTES prints the seconds of processor time for a change of 20 million numbers in a
// table of N columns, each a block of so many bytes, row by row. It uses the same place of all
// columns in turn, so it is slow where they begin in the same sets of the caches.
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 16;
	long bytes = argc > 2 ? atol(argv[2]) : 1000000, rows = bytes / sizeof(int);
	int **column = calloc(n, sizeof *column), sum = 0;
	for (int j = 0; j < n; j++) {
		column[j] = malloc(bytes);
		for (long i = 0; i < rows; i++)
			column[j][i] = i * j;
	}
	clock_t start = clock();
	for (long left = 20000000; left > 0; left -= n * rows)
		for (long i = 0; i < rows; i++)
			for (int j = 0; j < n; j++)
				column[j][i] += i;
	printf("%.3f\n", (double)(clock() - start) / CLOCKS_PER_SEC);
	for (int j = 0; j < n; j++)
		sum += column[j][rows / 2];
	return sum == 1;
}
