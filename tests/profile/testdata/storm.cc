// storm SECONDS PLUGIN allocates in threads, in handlers of a signal that comes every millisecond,
// while exceptions are thrown and caught, while PLUGIN is loaded and unloaded, in coroutines and in
// forked children. It prints how many of each there were.
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <dlfcn.h>
#include <stdexcept>
#include <string>
#include <sys/time.h>
#include <sys/wait.h>
#include <thread>
#include <ucontext.h>
#include <unistd.h>
#include <vector>

static std::atomic<bool> over;
static std::atomic<long> signals, caught, loaded, switched, forked;

static void churn()
{
	std::vector<std::string> v;
	for (int i = 0; i < 20; i++)
		v.emplace_back(std::string(100 + i * 37, 'x'));
}

static void handler(int)
{
	free(malloc(3000));
	signals++;
}

__attribute__((noinline)) static int thrower(int depth)
{
	std::string s(200 + depth, 'y'); // its destructor runs while the stack is unwound
	if (depth == 0)
		throw std::runtime_error(std::string(500, 'z'));
	return thrower(depth - 1) + (int)s.size();
}

static void exceptions()
{
	while (!over) {
		try {
			thrower(20);
		} catch (const std::exception &e) {
			churn();
			caught++;
		}
	}
}

static void loader(const char *plugin)
{
	while (!over) {
		void *h = dlopen(plugin, RTLD_NOW);
		if (h == nullptr)
			abort();
		((void (*)(int))dlsym(h, "plugin_allocate"))(50);
		dlclose(h);
		loaded++;
	}
}

static thread_local ucontext_t outside, inside;

static void coroutine()
{
	for (;;) {
		churn();
		swapcontext(&inside, &outside);
	}
}

static void coroutines()
{
	std::vector<char> stack(256 << 10);
	getcontext(&inside);
	inside.uc_stack.ss_sp = stack.data();
	inside.uc_stack.ss_size = stack.size();
	inside.uc_link = nullptr;
	makecontext(&inside, coroutine, 0);
	while (!over) {
		swapcontext(&outside, &inside);
		switched++;
	}
}

static void forks()
{
	while (!over) {
		pid_t pid = fork();
		if (pid == 0) {
			churn();
			_exit(0);
		}
		int status;
		while (waitpid(pid, &status, 0) < 0)
			;
		if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
			abort();
		forked++;
		usleep(5000);
	}
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	struct sigaction sa = {};
	sa.sa_handler = handler;
	sa.sa_flags = SA_RESTART;
	sigaction(SIGALRM, &sa, nullptr);
	struct itimerval every = {{0, 1000}, {0, 1000}};
	setitimer(ITIMER_REAL, &every, nullptr);
	std::thread threads[] = {std::thread(exceptions), std::thread(loader, argv[2]),
		std::thread(coroutines), std::thread(forks), std::thread([] {
			while (!over)
				std::thread(churn).join();
		})};
	time_t end = time(nullptr) + atoi(argv[1]);
	while (time(nullptr) < end)
		usleep(10000);
	over = true;
	for (auto &t : threads)
		t.join();
	printf("%ld %ld %ld %ld %ld\n", signals.load(), caught.load(), loaded.load(), switched.load(),
		forked.load());
	return 0;
}
