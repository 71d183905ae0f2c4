"""A program whose allocations have stacks of Python. A comment names each line that they come from.
Called with a pickle, it checks the stacks there."""
import ctypes
import pickle
import sys
import threading


def expected():
    """The stacks by the size of the request, as (function, line). Line 0 is any."""
    with open(__file__, encoding="utf-8") as file:
        lines = file.read().split("\n")
    at = {}
    for i, line in enumerate(lines, 1):
        if "  #: " in line:
            at[line.split("#: ")[1]] = i
    return {
        5000001: [("plain", at["plain"]), ("<module>", at["module"])],
        5000002: [("Model.forward.<locals>.<lambda>", at["lambda"]), ("Model.forward", at["long"]),
                  ("Model.généré", at["generator"]), ("<module>", at["next"])],
        5000003: [("deep", at["bottom"])] + [("deep", at["deep"])] * 127,
        5000004: [("plain", at["plain"]), ("Thread.run", 0), ("Thread._bootstrap_inner", 0),
                  ("Thread._bootstrap", 0)],
        5000005: [("plain", at["plain"]), ("from_string", 3), ("<module>", at["string"])],
    }


def check(path):
    with open(path, "rb") as file:
        trace = pickle.load(file)["device_traces"][0]
    want = expected()
    for e in trace:
        if e["action"] != "alloc" or e["size"] not in want:
            continue
        got = [(f["name"], f["line"]) for f in e["frames"]]
        stack = [(n, l or g[1]) for (n, l), g in zip(want[e["size"]], got)]
        assert len(got) == len(want[e["size"]]) and got == stack, (e["size"], got, stack)
        assert e["frames"][0]["filename"] == __file__, e["frames"][0]
        if e["size"] == 5000005:
            assert e["frames"][1]["filename"] == "a b%.py", e["frames"][1]
        del want[e["size"]]
    assert not want, want
    refused = [e for e in trace if e["action"] == "oom"]
    assert refused[0]["frames"][0]["name"] == "<module>", refused
    print("ok")


if len(sys.argv) > 1:
    check(sys.argv[1])
    sys.exit()

# A ctypes function of CDLL releases the interpreter's lock; one of PyDLL keeps it.
cuda = ctypes.CDLL("libcuda.so.1", mode=ctypes.RTLD_GLOBAL)
held = ctypes.PyDLL("libcuda.so.1", mode=ctypes.RTLD_GLOBAL)
context, p = ctypes.c_void_p(), ctypes.c_uint64()
assert cuda.cuInit(0) == 0
assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert cuda.cuCtxSetCurrent(context) == 0


def plain(n):
    cuda.cuCtxSetCurrent(context)
    assert cuda.cuMemAlloc_v2(ctypes.byref(p), ctypes.c_size_t(n)) == 0  #: plain


def deep(n):
    if n == 0:
        return held.cuMemAlloc_v2(ctypes.byref(p), ctypes.c_size_t(5000003))  #: bottom
    return deep(n - 1)  #: deep


class Model:
    def forward(self):
        call = lambda n: held.cuMemAlloc_v2(ctypes.byref(p), ctypes.c_size_t(n))  #: lambda
        return [
            0,
            call(5000002),  #: long
        ]

    def généré(self):
        for _ in range(2):
            yield self.forward()  #: generator


plain(5000001)  #: module
next(Model().généré())  #: next
assert deep(300) == 0
thread = threading.Thread(target=plain, args=(5000004,))
thread.start()
thread.join()
exec(compile("\n\ndef from_string(): plain(5000005)\n", "a b%.py", "exec"))
from_string()  #: string
assert cuda.cuMemAlloc_v2(ctypes.byref(p), ctypes.c_size_t(1 << 40)) == 2
