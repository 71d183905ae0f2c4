"""Reads lines of the program sequences and prints, for each sequence, the medians of each
allocator, and a line "row SEQUENCE VERDICT FIGURES": ok when ours takes less time than
PyTorch's allocator and reserves no more for what is live."""

import statistics
import sys

data = {}
for line in open(sys.argv[1]):
    who, seq, warm, cold, reserved, live = line.split()
    data.setdefault(seq, {}).setdefault(who, []).append((float(warm), float(cold), int(reserved) / int(live)))

factors = []
print(f"{'sequence':12} {'allocator':10} {'warm ns':>9} {'cold ns':>10} {'reserved/live':>13}")
rows = []
for seq, by in data.items():
    mid = {w: tuple(statistics.median(c) for c in zip(*v)) for w, v in by.items()}
    for w, (warm, cold, ratio) in mid.items():
        print(f"{seq:12} {w:10} {warm:9.1f} {cold:10.1f} {ratio:13.3f}")
    if "ours" in mid and "torch" in mid:
        f = mid["torch"][0] / mid["ours"][0]
        factors.append(f)
        ok = f > 1 and mid["ours"][2] <= mid["torch"][2] + 0.001
        rows.append(f"row {seq} {'ok' if ok else 'FAIL'} {f:.2f} times PyTorch, reserved/live {mid['ours'][2]:.3f} to {mid['torch'][2]:.3f}")
    else:
        rows.append(f"row {seq} FAIL no figures")
print("\n".join(rows))
if factors:
    print(f"geometric mean: {statistics.geometric_mean(factors):.2f} times PyTorch's allocator")
