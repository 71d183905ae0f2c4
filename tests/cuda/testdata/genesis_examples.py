"""The examples of Genesis' page on CUDA memory management, as they stand but for the import.

Not of the page are the lines that assert, and stand-ins for genesis' tensors, which are blocks of the
manager. Argument "loaded PATH": the library is not preloaded.
"""
import sys

MIB = 1 << 20

if sys.argv[1:2] == ["loaded"]:
    import tieralloc
    tieralloc.load(sys.argv[2])

from tieralloc import genesis


def randn(*shape):
    size = 4
    for length in shape:
        size *= length
    return mm.allocate_memory(size)


genesis.randn = randn

# Basic Allocation

from tieralloc.genesis.ndarray.cuda_memory_manager import get_memory_manager

# Get global memory manager instance
mm = get_memory_manager()

# Allocate GPU memory
ptr = mm.allocate_memory(1024 * 1024)  # 1MB

# Free memory (automatic caching)
mm.free_memory(ptr, 1024 * 1024)

# Check statistics
stats = mm.get_statistics()
print(f"Cache hit rate: {stats.cache_hit_rate:.2%}")
print(f"Memory efficiency: {stats.efficiency_score():.2%}")

assert ptr and (stats.total_allocations, stats.total_freed, stats.cache_misses) == (1, 1, 1), stats

# Advanced Configuration

# Configure memory manager for specific workload
mm.configure(
    segment_size=512 * 1024 * 1024,    # 512MB segments
    cache_sizes={
        'stream_local': 100,            # 100 blocks per stream
        'global': 500,                  # 500 blocks global cache
    },
    warmup_sizes=[
        (4096, 50),    # 50 blocks of 4KB
        (65536, 20),   # 20 blocks of 64KB  
        (1048576, 10), # 10 blocks of 1MB
    ]
)

with mm.performance_context() as warm:
    blocks = [mm.allocate_memory(size) for size, count in ((4096, 50), (65536, 20), (1048576, 10)) for _ in range(count)]
assert warm.stats.cache_misses == 0 and warm.stats.cache_hit_rate == 1, warm.stats
for block in blocks:
    mm.free_memory(block)
device = mm.get_statistics().device
assert (device["segment_size"], device["stream_local"], device["global_limit"]) == (512 * MIB, 100, 500), device

# Performance Monitoring

# Enable detailed performance tracking
with mm.performance_context() as perf:
    # Run memory-intensive operations
    tensors = [genesis.randn(1000, 1000) for _ in range(100)]
    
# Analyze performance
print(f"Total allocations: {perf.stats.total_allocations}")
print(f"Peak memory: {perf.stats.peak_memory_usage / 1024**3:.2f} GB")
print(f"Fragmentation: {perf.stats.fragmentation_ratio:.2%}")

assert perf.stats.total_allocations == 100 and perf.stats.peak_memory_usage >= 400 * 10**6, perf.stats

# Runtime Configuration

# Configure at runtime
genesis.cuda.configure_memory_manager({
    'segment_size': 1024 * 1024 * 1024,  # 1GB
    'enable_warmup': True,
    'enable_stats': True,
    'allocation_strategy': 'best_fit',
    'coalescing_threshold': 0.1,
})

assert mm.get_statistics().device["segment_size"] == 1024 * MIB

# Transformer Training Optimization

memory_manager = mm

# Optimized memory allocation for transformer training
def allocate_transformer_tensors(batch_size: int, seq_len: int, hidden_size: int):
    """
    Pre-allocate common transformer tensor sizes
    """
    common_sizes = [
        batch_size * seq_len * hidden_size,      # Attention weights
        batch_size * seq_len * hidden_size * 4,  # Feed-forward
        batch_size * seq_len * seq_len,          # Attention scores
    ]
    
    # Warmup cache with expected allocation pattern
    memory_manager.warmup_cache(common_sizes, counts=[10, 5, 10])

allocate_transformer_tensors(8, 128, 1024)

# Dynamic Memory Scaling

def adaptive_memory_management(memory_pressure: float):
    """
    Automatically adjust cache sizes based on memory pressure
    """
    if memory_pressure > 0.8:
        # High pressure: aggressive cache cleanup
        memory_manager.cleanup_cache(threshold=0.9)
        memory_manager.enable_aggressive_coalescing()
    elif memory_pressure < 0.3:
        # Low pressure: expand cache for better performance
        memory_manager.expand_cache_size(factor=1.5)

adaptive_memory_management(0.9)
adaptive_memory_management(0.1)

device = mm.get_statistics().device
assert (device["stream_local"], device["global_limit"]) == (150, 750), device

# Memory Leaks

# Debug memory leaks
stats = mm.get_statistics()
if stats.total_allocations > stats.total_freed + 1000:
    print("Warning: Potential memory leak detected")
    mm.dump_allocation_trace()

assert stats.total_allocations == stats.total_freed + 100, stats
leaks = [mm.allocate_memory(256) for _ in range(1000)]

# Debug memory leaks
stats = mm.get_statistics()
if stats.total_allocations > stats.total_freed + 1000:
    print("Warning: Potential memory leak detected")
    mm.dump_allocation_trace()

found = mm.analyze_allocation_patterns(top=5000)  # recording is on since enable_stats
assert [(address, size) for address, size, _ in found["unfreed"]] == [(leak, 256) for leak in leaks], found
for leak in leaks + tensors:
    mm.free_memory(leak)
assert mm.analyze_allocation_patterns()["unfreed"] == []

# Performance Issues

# Diagnose performance problems
if stats.cache_hit_rate < 0.5:
    print("Low cache hit rate - consider warmup cache")
    mm.analyze_allocation_patterns()

if stats.fragmentation_ratio > 0.3:
    print("High fragmentation - enable aggressive coalescing")
    mm.enable_aggressive_coalescing()

# Memory Pressure

# Handle memory pressure
def handle_oom():
    """Out of memory handler"""
    mm.cleanup_cache(force=True)
    mm.coalesce_free_blocks()
    mm.garbage_collect()

handle_oom()

stats = mm.get_statistics()
assert stats.live_bytes == stats.cached_bytes == stats.reserved_bytes == 0, stats

# The classes that the page names, and what it calls of them.

ptrs = mm.allocate_batch([4096, 65536, 4096])
assert len(set(ptrs)) == 3
for ptr in ptrs:
    mm.free_memory(ptr)

from tieralloc.genesis.ndarray.cuda_memory_manager import AllocationStatistics, AsyncMemoryPool, CUDAMemoryManager

with AsyncMemoryPool(pool_size=64 * MIB) as pool:
    mm.free_memory(pool.allocate_async(MIB).result())
assert isinstance(mm, CUDAMemoryManager) and isinstance(stats, AllocationStatistics)
none = AllocationStatistics()
assert (none.total_allocations, none.total_freed, none.peak_memory_usage, none.cache_hits, none.cache_misses) == (0, 0, 0, 0, 0)
assert none.efficiency_score() == 1.0 and none.fragmentation_ratio == 0.0
for name in ("CUDAMemoryManager", "AllocationStatistics", "AsyncMemoryPool", "get_memory_manager", "configure_memory_manager"):
    assert getattr(genesis.cuda, name) is getattr(genesis.ndarray.cuda_memory_manager, name)
print("ok")
