# Many arrays of all sizes: element-wise work, sorting, joins, reductions.
import sys
import numpy as np
rng = np.random.default_rng(7)
total = 0.0
for r in range(int(sys.argv[1])):
    for n in (10, 100, 1000):
        for k in range(400):
            a = np.arange(n, dtype=np.float64) + k
            b = np.sqrt(a) * 2 + a[::-1]
            total += float(b[n // 2]) + float((a > b).sum())
    big = rng.integers(0, 1000, 300000)
    u, c = np.unique(big, return_counts=True)
    total += float(c.max()) + float(np.concatenate([big, u]).astype(np.float32).mean())
    parts = [big[i:i + 1000] * 2 for i in range(0, len(big), 1000)]
    total += float(np.vstack(parts).sum(axis=0)[3])
    m = rng.random((600, 600))
    total += float((m @ m.T)[0, 0]) + float(np.sort(m, axis=None)[77])
print(round(total, 3))
