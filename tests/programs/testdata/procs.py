"""Worker pools by fork and by spawn, forks while threads run, subprocesses."""
import multiprocessing
import os
import subprocess
import sys
import threading


def work(n):
    table = {i: str(i) * (n % 50 + 1) for i in range(3000)}
    return n, sum(map(len, table.values()))


def pools():
    for method in ("fork", "spawn", "forkserver"):
        with multiprocessing.get_context(method).Pool(3) as pool:
            print(method, pool.map(work, range(24)))


def fork_beside_threads():
    """The child of a process whose other threads are inside malloc must go on."""
    stop = threading.Event()

    def churn():
        while not stop.is_set():
            [bytearray(n) for n in range(0, 4000, 37)]

    threads = [threading.Thread(target=churn) for _ in range(4)]
    for t in threads:
        t.start()
    ended = []
    for i in range(40):
        pid = os.fork()
        if pid == 0:
            os._exit(work(i)[1] % 100)
        ended.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    stop.set()
    for t in threads:
        t.join()
    print("forked beside threads", ended)


def queues():
    ctx = multiprocessing.get_context("fork")
    q = ctx.Queue()
    children = [ctx.Process(target=lambda n=n: q.put("x" * (n * 100000))) for n in range(5)]
    for c in children:
        c.start()
    print("queue", sorted(len(q.get()) for _ in children))
    for c in children:
        c.join()
    print("exit codes", [c.exitcode for c in children])


def subprocesses():
    out = subprocess.run(["sort", "-n"], input="\n".join(map(str, range(9000, 0, -1))), capture_output=True, text=True)
    print("sort", out.returncode, len(out.stdout), out.stdout[:20].split())
    out = subprocess.run([sys.executable, "-c", "raise SystemExit(9)"])
    print("exit", out.returncode)
    running = [subprocess.Popen(["sh", "-c", f"echo {i}; exit {i}"], stdout=subprocess.PIPE) for i in range(20)]
    print("popen", [(p.communicate()[0].strip(), p.returncode) for p in running])
    print("spawn", os.waitstatus_to_exitcode(os.waitpid(os.posix_spawn("/bin/false", ["false"], os.environ), 0)[1]))


if __name__ == "__main__":
    pools()
    queues()
    subprocesses()
    sys.stdout.flush()
    fork_beside_threads()
