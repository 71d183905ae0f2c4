"""Threads which allocate, hand objects to each other and end in any order."""
import hashlib
import queue
import random
import threading


def churn(seed, out):
    rng = random.Random(seed)
    held, digest = {}, hashlib.sha256()
    for step in range(6000):
        key = rng.randrange(300)
        if key in held:
            digest.update(held.pop(key))
        else:
            held[key] = bytes([step & 255]) * rng.choice((1, 40, 600, 3000, 70000))
    out.put((seed, digest.hexdigest(), held))


out = queue.Queue()
threads = [threading.Thread(target=churn, args=(seed, out)) for seed in range(8)]
for t in threads:
    t.start()
results = sorted((out.get() for _ in threads), key=lambda r: r[0])
for t in threads:
    t.join()
for seed, digest, held in results:
    print(seed, digest, len(held), sum(map(len, held.values())))

# The consumer frees what the producers have allocated.
pipe, total = queue.Queue(maxsize=100), 0
makers = [threading.Thread(target=lambda: [pipe.put(bytearray(i * 7 % 5000)) for i in range(1500)]) for _ in range(4)]
for t in makers:
    t.start()
for _ in range(6000):
    total += len(pipe.get())
print("passed on", total)

# Short-lived threads, in greater number than any fixed table is likely to hold.
counts = []
for _ in range(60):
    batch = [threading.Thread(target=lambda: counts.append(len(bytearray(2000)))) for _ in range(25)]
    for t in batch:
        t.start()
    for t in batch:
        t.join()
print("ended", len(counts), sum(counts))
