"""The examples of NVIDIA/cuda-python's pull request 1775 (managed memory) with the import changed, and
with kernels whose results are checked. Usage:

    examples.py properties|functions|batch|together cupy|numba|cuda.core

The library must be preloaded, and python/ be on PYTHONPATH. Where the examples name a second
device and there is none, the first stands for it."""

import sys

import numpy as np
from tieralloc import Device, Host, ManagedMemoryResource
from tieralloc.utils import advise, discard, discard_prefetch, prefetch

import kernels

N = 1 << 20  # floats of a buffer
SIZE = 4 * N
right = 0


def check(held, what):
    if not held:
        sys.exit(f"wrong: {what}")


def second():
    """Device(1) of the examples."""
    try:
        return Device(1)
    except Exception:  # whatever says that there is none
        return Device(0)


def values(buf):
    return np.frombuffer(buf, dtype=np.float32)


def fill(buf, seed):
    data = np.random.default_rng(seed).random(N, dtype=np.float32)
    values(buf)[:] = data
    return data


def same(got, expected, what):
    """Within the last place, for a device may fuse what the host does in two steps."""
    global right
    got = np.frombuffer(got, dtype=np.float32)
    check(got.shape == expected.shape and np.allclose(got, expected, rtol=1e-6, atol=0), what)
    right += len(got)


def run(y, x, w, stream):
    axpy(int(stream.handle), N, int(y.handle), int(x.handle), int(w.handle), N)


def properties():
    buf, weights, out = (mr.allocate(SIZE) for _ in range(3))
    x, w = fill(buf, 1), fill(weights, 2)

    buf.read_mostly = True
    check(buf.read_mostly is True, "read_mostly is not set")
    buf.preferred_location = Device(0)     # or Host(), or Host(numa_id=N)
    check(buf.preferred_location == Device(0), f"preferred {buf.preferred_location}")
    buf.preferred_location = Host()
    check(buf.preferred_location == Host(), f"preferred {buf.preferred_location}")
    buf.preferred_location = None          # unset
    check(buf.preferred_location is None, f"preferred {buf.preferred_location}")

    buf.accessed_by.add(second())
    check(second() in buf.accessed_by, "add had no effect")
    buf.accessed_by.discard(second())
    check(second() not in buf.accessed_by, "discard had no effect")
    buf.accessed_by = {Device(0), second()}   # diff vs current; advise only deltas
    check(set(buf.accessed_by) == {Device(0), second()}, f"accessed by {set(buf.accessed_by)}")

    buf.prefetch(Device(0), stream=stream)
    run(out, buf, weights, stream)
    out.prefetch(Host(), stream=stream)
    stream.sync()
    same(bytes(out), 2 * x + w, "after prefetches")
    same(bytes(buf), x, "the input")

    out.discard(stream=stream)
    run(out, weights, buf, stream)
    out.discard_prefetch(Device(0), stream=stream)
    run(out, weights, buf, stream)
    stream.sync()
    same(bytes(out), 2 * w + x, "after discards")


def functions():
    buf, weights, activations, scratch = (mr.allocate(SIZE) for _ in range(4))
    x, w = fill(buf, 3), fill(weights, 4)

    # Stage to GPU, kernel, bring back to host
    prefetch(buf, Device(0), stream=stream)
    run(buf, buf, weights, stream)
    prefetch(buf, Host(), stream=stream)
    stream.sync()
    result = bytes(buf)
    same(result, 2 * x + w, "after the kernel")

    # Advice
    advise(weights, "set_read_mostly")
    advise(activations, "set_preferred_location", Device(0))
    advise(scratch, "set_accessed_by", Device(0))
    check(weights.read_mostly and activations.preferred_location == Device(0) and Device(0) in scratch.accessed_by, "advice")

    # Discard / discard+prefetch (CUDA 13+)
    discard(scratch, stream=stream)
    for _ in range(3):
        discard_prefetch(activations, Device(0), stream=stream)
        run(activations, weights, buf, stream)
    stream.sync()
    same(bytes(activations), 2 * w + np.frombuffer(result, dtype=np.float32), "after three steps")
    same(bytes(weights), w, "the weights")


def batch():
    output, log_metrics, *shards = (mr.allocate(SIZE) for _ in range(5))
    contents = [fill(buf, 5 + i) for i, buf in enumerate([output, log_metrics, *shards])]

    # Pair-by-index: output -> GPU 0, log_metrics -> host
    prefetch(
        [output, log_metrics],
        [Device(0), Host()],
        stream=stream,
    )

    # Scalar broadcast: every shard moves to GPU 0
    shard_a, shard_b, shard_c = shards
    prefetch([shard_a, shard_b, shard_c], Device(0), stream=stream)
    stream.sync()
    run(shard_a, shard_b, shard_c, stream)
    stream.sync()
    same(bytes(shard_a), 2 * contents[3] + contents[4], "the first shard")
    for i, buf in (0, output), (1, log_metrics), (3, shard_b):
        same(bytes(buf), contents[i], f"buffer {i} after its prefetch")
    try:
        prefetch([output, log_metrics], [Device(0)], stream=stream)
    except ValueError:
        pass
    else:
        sys.exit("wrong: one place for two buffers was accepted")


def together():
    weights = mr.allocate(SIZE)
    inputs = mr.allocate(SIZE)
    output = mr.allocate(SIZE)

    # One-time hints
    weights.read_mostly = True
    weights.preferred_location = Device(0)
    output.preferred_location = Device(0)
    w = fill(weights, 20)

    for step in range(3):
        x = fill(inputs, 21 + step)
        # Per inference
        inputs.prefetch(Device(0), stream=stream)
        run(output, inputs, weights, stream)
        output.prefetch(Host(), stream=stream)
        stream.sync()
        same(bytes(output), 2 * x + w, f"inference {step}")
    for buf in weights, inputs, output:
        buf.close(stream)


what, launcher = sys.argv[1:]
Device(0).set_current()
axpy, _ = kernels.load(launcher)
stream = Device(0).create_stream()
mr = ManagedMemoryResource()
{"properties": properties, "functions": functions, "batch": batch, "together": together}[what]()
print(right, "values right")
