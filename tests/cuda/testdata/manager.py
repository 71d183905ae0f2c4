"""The Python controls on the library itself, with the driver loaded by hand."""
import ctypes
import io

cuda = ctypes.CDLL("libcuda.so.1", mode=ctypes.RTLD_GLOBAL)
assert cuda.cuInit(0) == 0

import tieralloc_shim as t

m = t.get_memory_manager()
m.free_memory(m.allocate_memory(1000))  # before anything is recorded
m.configure(enable_stats=True, coalescing_threshold=1)
a, b = m.allocate_memory(5000), m.allocate_memory(3 << 20)
m.free_memory(a)
c = m.allocate_memory(5000)
assert c == a
m.configure(enable_stats=False)
m.free_memory(b)
out = io.StringIO()
assert m.dump_allocation_trace(out) == 4
lines = [line.split(",")[1:] for line in out.getvalue().splitlines()]
assert lines == [["Action", "Pointer", "Size", "Stream"], ["allocate", hex(a), "5000", "0x0"],
                 ["allocate", hex(b), str(3 << 20), "0x0"], ["free", hex(a), "5000", "0x0"],
                 ["allocate", hex(c), "5000", "0x0"]], lines
found = m.analyze_allocation_patterns()
assert (found["allocations"], found["live"], found["reuse"]) == (3, 2, 1 / 3), found
assert found["warmup_sizes"] == [(5000, 1), (3 << 20, 1)], found
m.configure(warmup_sizes=found["warmup_sizes"])
print("ok")
