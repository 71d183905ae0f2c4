// spawn ROUNDS PROGRAM LIBRARY... starts a program, "NAME ARGUMENT ARGUMENT", with each
// library preloaded in turn ("-" stands for none; "LIBRARY,NAME=VALUE NAME=VALUE" sets
// variables, too), ROUNDS times over, and prints one line for each library: the times from
// start to end in nanoseconds, one for each round. What the program prints is lost.
//
// posix_spawn shares the parent's memory until the exec, so the parent's size is
// no part of the time.
#define _GNU_SOURCE
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

extern char **environ;

static long now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000l + t.tv_nsec;
}

// The environment with the library preloaded, or none.
static char **environment(const char *library)
{
	size_t n = 0;
	while (environ[n] != NULL)
		n++;
	char **env = calloc(n + 2 + strlen(library), sizeof *env), **out = env;
	for (size_t i = 0; i < n; i++)
		if (strncmp(environ[i], "LD_PRELOAD=", 11) != 0)
			*out++ = environ[i];
	const char *comma = strchrnul(library, ',');
	if (*library != '-' && asprintf(out++, "LD_PRELOAD=%.*s", (int)(comma - library), library) < 0)
		abort();
	char *more = strdup(*comma != '\0' ? comma + 1 : comma);
	for (char *one = strtok(more, " "); one != NULL; one = strtok(NULL, " "))
		*out++ = one;
	return env;
}

static char *args[16];
static posix_spawn_file_actions_t quiet;

static long once(char **env)
{
	pid_t pid;
	int status;
	long start = now();
	if (posix_spawnp(&pid, args[0], &quiet, NULL, args, env) != 0 ||
		waitpid(pid, &status, 0) != pid || status != 0) {
		fprintf(stderr, "spawn: %s failed\n", args[0]);
		exit(1);
	}
	return now() - start;
}

int main(int argc, char **argv)
{
	if (argc < 4) {
		fprintf(stderr, "usage: spawn ROUNDS PROGRAM LIBRARY...\n");
		return 2;
	}
	int rounds = atoi(argv[1]), n = argc - 3;
	size_t words = 0;
	for (char *word = strtok(argv[2], " "); word != NULL && words < 15; word = strtok(NULL, " "))
		args[words++] = word;
	posix_spawn_file_actions_init(&quiet);
	posix_spawn_file_actions_addopen(&quiet, 1, "/dev/null", O_WRONLY, 0);
	char ***env = calloc(n, sizeof *env);
	long *took = calloc((size_t)n * rounds, sizeof *took);
	for (int k = 0; k < n; k++) {
		env[k] = environment(argv[k + 3]);
		once(env[k]); // the file must be in the page cache
	}
	for (int i = 0; i < rounds; i++)
		for (int k = 0; k < n; k++) { // who follows whom changes from round to round
			int who = (i + k) % n;
			took[who * rounds + i] = once(env[who]);
		}
	for (int k = 0; k < n; k++)
		for (int i = 0; i < rounds; i++)
			printf("%ld%c", took[k * rounds + i], i + 1 < rounds ? ' ' : '\n');
	return 0;
}
