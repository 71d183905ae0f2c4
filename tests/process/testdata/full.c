// Takes all memory that there is, and gives a background thread some time without any.
#include <stdlib.h>
#include <unistd.h>

int main(void)
{
	while (malloc(500) != NULL)
		;
	for (int i = 0; i < 10; i++)
		usleep(10000);
	return 0;
}
