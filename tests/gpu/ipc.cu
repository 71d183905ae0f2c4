// Blocks of one process opened in another by cudaIpcGetMemHandle and cudaIpcOpenMemHandle:
// the other must find their words, and what it writes must come back, and nothing else
// change.
//
//	ipc LIB|-     the other process is this program again, with LIB preloaded or without
//
// For each block a line "NAME right", "NAME wrong" (other bytes) or "NAME refused" (by an
// error) is printed. Exit status: 0 all are right, 3 some are refused and none is wrong,
// 1 one is wrong or something was changed that must not be.
#include <cstring>
#include <spawn.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>
#include "device.h"

constexpr size_t SMALL = 3000, LARGE = 5 << 20;
constexpr unsigned CHANGED = 1000; // added to a block's number by the other process

static std::vector<unsigned> words(size_t bytes, unsigned number)
{
	std::vector<unsigned> w(bytes / 4);
	for (size_t i = 0; i < w.size(); i++)
		w[i] = word(number, i);
	return w;
}

static bool holds(const void *p, size_t bytes, unsigned number)
{
	std::vector<unsigned> got(bytes / 4);
	CHECK(cudaMemcpy(got.data(), p, got.size() * 4, cudaMemcpyDeviceToHost));
	return got == words(bytes, number);
}

static void put(void *p, size_t bytes, unsigned number)
{
	CHECK(cudaMemcpy(p, words(bytes, number).data(), bytes / 4 * 4, cudaMemcpyHostToDevice));
	CHECK(cudaDeviceSynchronize());
}

// The other process: arguments NAME BYTES NUMBER HANDLE for each block.
static int open_all(int n, char **args)
{
	std::vector<void *> opened;
	bool wrong = false, refused = false;
	for (int i = 0; i + 3 < n; i += 4) {
		cudaIpcMemHandle_t h;
		size_t bytes = strtoull(args[i + 1], nullptr, 10);
		unsigned number = (unsigned)strtoul(args[i + 2], nullptr, 10);
		for (size_t k = 0; k < sizeof h; k++)
			sscanf(args[i + 3] + 2 * k, "%2hhx", (unsigned char *)&h + k);
		void *p;
		cudaError_t e = cudaIpcOpenMemHandle(&p, h, cudaIpcMemLazyEnablePeerAccess);
		if (e != cudaSuccess) {
			printf("%s refused: %s\n", args[i], cudaGetErrorString(e));
			cudaGetLastError();
			refused = true;
			continue;
		}
		opened.push_back(p);
		if (!holds(p, bytes, number)) {
			printf("%s wrong\n", args[i]);
			wrong = true;
			continue;
		}
		printf("%s right\n", args[i]);
		put(p, bytes, number + CHANGED);
	}
	for (void *p : opened)
		CHECK(cudaIpcCloseMemHandle(p));
	return wrong ? 1 : refused ? 3 : 0;
}

struct Block {
	std::string name; // of one that is exported
	size_t bytes;
	unsigned number;
	void *p;
};

static std::string handle_of(const Block &b)
{
	cudaIpcMemHandle_t h;
	std::string text;
	CHECK(cudaIpcGetMemHandle(&h, b.p));
	for (size_t k = 0; k < sizeof h; k++) {
		char two[3];
		snprintf(two, sizeof two, "%02x", ((unsigned char *)&h)[k]);
		text += two;
	}
	return text;
}

static int run_other(const std::vector<Block> &blocks)
{
	std::vector<std::string> args = {"ipc", "open"};
	for (const Block &b : blocks)
		if (!b.name.empty()) {
			args.push_back(b.name);
			args.push_back(std::to_string(b.bytes));
			args.push_back(std::to_string(b.number));
			args.push_back(handle_of(b));
		}
	std::vector<char *> argv;
	for (std::string &a : args)
		argv.push_back(&a[0]);
	argv.push_back(nullptr);
	pid_t pid;
	int status = 0;
	fflush(stdout);
	int e = posix_spawn(&pid, "/proc/self/exe", nullptr, nullptr, argv.data(), environ);
	if (e != 0)
		fprintf(stderr, "posix_spawn: %s\n", strerror(e)), exit(1);
	if (waitpid(pid, &status, 0) != pid)
		perror("waitpid"), exit(1);
	if (!WIFEXITED(status))
		fprintf(stderr, "the other process ended with signal %d\n", WTERMSIG(status)), exit(1);
	return WEXITSTATUS(status);
}

int main(int argc, char **argv)
{
	setvbuf(stdout, nullptr, _IOLBF, 0);
	if (argc < 2)
		return fprintf(stderr, "usage: %s LIB|-\n", argv[0]), 2;
	CHECK(cudaSetDevice(0));
	CHECK(cudaFree(nullptr));
	if (strcmp(argv[1], "open") == 0)
		return open_all(argc - 2, argv + 2);
	strcmp(argv[1], "-") == 0 ? unsetenv("LD_PRELOAD") : setenv("LD_PRELOAD", argv[1], 1);

	std::vector<Block> blocks;
	for (unsigned i = 0; i < 6; i++) // the third and the fifth of a segment
		blocks.push_back({i == 2 ? "small" : i == 4 ? "small_too" : "", SMALL, i, nullptr});
	for (unsigned i = 6; i < 9; i++)
		blocks.push_back({i == 7 ? "large" : "", LARGE, i, nullptr});
	for (Block &b : blocks) {
		CHECK(cudaMalloc(&b.p, b.bytes));
		put(b.p, b.bytes, b.number);
	}
	int status = run_other(blocks);
	bool intact = true;
	for (const Block &b : blocks) {
		bool same = holds(b.p, b.bytes, b.number);
		bool changed = !same && !b.name.empty() && holds(b.p, b.bytes, b.number + CHANGED);
		if (!same && !changed)
			printf("block %u has other bytes now\n", b.number), intact = false;
		if (status == 0 && !b.name.empty() && !changed)
			printf("%s: what the other process wrote is not here\n", b.name.c_str()), intact = false;
	}
	for (Block &b : blocks)
		CHECK(cudaFree(b.p));
	return intact ? status : 1;
}
