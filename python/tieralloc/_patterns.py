"""What the recorded allocations of a device have in common."""

import collections
import itertools


def patterns(events, top):
    """analyze_allocation_patterns of a list of events."""
    sizes, classes, streams = collections.Counter(), collections.Counter(), collections.Counter()
    live, free, lives, most = {}, collections.Counter(), [], collections.Counter()
    now, reused = collections.Counter(), 0
    for i, event in enumerate(events):
        size, stream, pointer = int(event["Size"]), event["Stream"], event["Pointer"]
        if event["Action"] == "allocate":
            sizes[size] += 1
            classes[1 << max(0, size - 1).bit_length()] += 1
            streams[stream] += 1
            if free[size, stream]:
                free[size, stream] -= 1
                reused += 1
            live[pointer] = (i, size, stream)
            now[size] += 1
            most[size] = max(most[size], now[size])
        elif event["Action"] == "free" and pointer in live:
            at, size, stream = live.pop(pointer)
            lives.append(i - at)
            free[size, stream] += 1
            now[size] -= 1
    total = sum(sizes.values())
    common = sizes.most_common(top)
    return {
        "allocations": total, "live": len(live), "sizes": common, "classes": dict(sorted(classes.items())),
        "streams": dict(streams), "reuse": reused / total if total else 0.0,
        "lifetime": sorted(lives)[len(lives) // 2] if lives else None,
        "warmup_sizes": [(size, most[size]) for size, _ in common if size],
        "unfreed": [(int(pointer, 16), size, stream) for pointer, (_, size, stream) in itertools.islice(live.items(), top)],
    }
