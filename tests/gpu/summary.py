"""Reads what the program sequences printed and prints, for each sequence, the medians of
each allocator, and a line "row SEQUENCE VERDICT FIGURES": ok when ours takes less time than
PyTorch's allocator and reserves no more for what is live, FAIL when not or when a run of
ours is missing, lack when one of PyTorch's is. Ends with an error for a line that it does
not understand. Usage:

    summary.py FILE RUNS SEQUENCE...    RUNS: of each allocator with each sequence"""

import statistics
import sys


def read(path):
    """{(allocator, sequence): [(ns warm, ns cold, reserved over live), ...]}"""
    runs = {}
    with open(path, encoding="ascii") as file:
        for line in file:
            try:
                who, sequence, warm, cold, reserved, live = line.split()
                figures = float(warm), float(cold), int(reserved) / int(live)
            except (ValueError, ZeroDivisionError):
                sys.exit(f"{path}: not a line of figures: {line!r}")
            if not all(0 < figure < float("inf") for figure in figures):
                sys.exit(f"{path}: figures that cannot be: {line!r}")
            runs.setdefault((who, sequence), []).append(figures)
    return runs


def main(path, wanted, names):
    runs = read(path)
    mid = {key: tuple(statistics.median(column) for column in zip(*found)) for key, found in runs.items()}
    print(f"{'sequence':12} {'allocator':10} {'warm ns':>9} {'cold ns':>10} {'reserved/live':>13}")
    rows, factors = [], []
    for name in names:
        for who in "ours", "torch", "pool", "expandable":
            if (who, name) in mid:
                warm, cold, ratio = mid[who, name]
                print(f"{name:12} {who:10} {warm:9.1f} {cold:10.1f} {ratio:13.3f}")
        short = [(who, len(runs.get((who, name), []))) for who in ("ours", "torch") if len(runs.get((who, name), [])) != wanted]
        if wanted < 1 or short:
            verdict = "FAIL" if wanted < 1 or short[0][0] == "ours" else "lack"
            rows.append(f"row {name} {verdict} " + ", ".join(f"{n} of {wanted} runs of {who}" for who, n in short))
            continue
        ours, torch = mid["ours", name], mid["torch", name]
        factors.append(torch[0] / ours[0])
        verdict = "ok" if factors[-1] > 1 and ours[2] <= torch[2] + 0.001 else "FAIL"
        rows.append(f"row {name} {verdict} {factors[-1]:.2f} times PyTorch, reserved/live {ours[2]:.3f} to {torch[2]:.3f}")
    print("\n".join(rows))
    if factors:
        print(f"geometric mean of {len(factors)}: {statistics.geometric_mean(factors):.2f} times PyTorch's allocator")


main(sys.argv[1], int(sys.argv[2]), sys.argv[3:])
