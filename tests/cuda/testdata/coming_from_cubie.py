"""The example of docs/coming-from.md: two components that share a device, in chunks of the same runs."""
import numpy as np

from tieralloc import ArrayRequest, default_memmgr as manager  # before: from cubie.memory import default_memmgr, ...


class Component:
    def __init__(self, label, rows):
        self.label, self.rows, self.array = label, rows, None
        manager.register(self, invalidate_cache_hook=self.forget, allocation_ready_hook=self.ready, stream_group="solver")

    def request(self, runs):
        wanted = ArrayRequest(np.float32, (self.rows, runs), chunk_axis_index=1, total_runs=runs)
        manager.queue_request(self, {self.label: wanted})

    def ready(self, response):
        self.chunks, self.length = response.chunks, response.chunk_length
        self.array = response.arr.get(self.label, self.array)

    def forget(self):
        self.array = None


inputs, outputs = Component("x", 40), Component("y", 160)
runs = 1 << 22
for _ in range(3):
    inputs.request(runs)
    outputs.request(runs)
    manager.allocate_queue(outputs)
    assert (inputs.chunks, inputs.length) == (outputs.chunks, outputs.length) == (4, 1340211), (inputs.chunks, inputs.length)
    host = np.ones((40, inputs.length), np.float32)
    manager.to_device(inputs, [host], [inputs.array])
    manager.from_device(inputs, [inputs.array], [host])
    manager.sync_stream(inputs)
print("ok")
