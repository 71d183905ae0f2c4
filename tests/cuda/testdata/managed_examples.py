"""The examples of NVIDIA/cuda-python's pull request 1775, as they are but for the import.

The functions at the beginning stand for what the examples leave out.
"""
import ctypes

from managed_common import fake

size = weights_size = inputs_size = output_size = 1 << 20
fake.fake_launch.argtypes = [ctypes.c_uint64, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p]
num_steps = 3


def launch_my_kernel(buf, stream):
    fake.cuCtxSetCurrent(current)
    assert fake.fake_launch(buf.__cuda_array_interface__["data"][0], buf.size, 9, stream.handle) == 0


def run_forward(activations, stream):
    launch_my_kernel(activations, stream)


def run_inference(weights, inputs, output, stream):
    launch_my_kernel(output, stream)


current = ctypes.c_void_p()
assert fake.cuInit(0) == 0 and fake.cuDevicePrimaryCtxRetain(ctypes.byref(current), 0) == 0

from tieralloc import Device, Host, ManagedMemoryResource

mr = ManagedMemoryResource()
buf = mr.allocate(size)
buf.read_mostly = True
buf.preferred_location = Device(0)
buf.preferred_location = None
buf.accessed_by.add(Device(1))
buf.accessed_by.discard(Device(1))
buf.accessed_by = {Device(0), Device(1)}
assert buf.read_mostly and buf.preferred_location is None and buf.accessed_by == {Device(0), Device(1)}
stream = Device(0).create_stream()
buf.prefetch(Device(0), stream=stream)
buf.discard(stream=stream)
buf.discard_prefetch(Device(0), stream=stream)

from tieralloc.utils import advise, prefetch, discard, discard_prefetch

weights, activations, scratch = mr.allocate(size), mr.allocate(size), mr.allocate(size)
prefetch(buf, Device(0), stream=stream)
launch_my_kernel(buf, stream=stream)
prefetch(buf, Host(), stream=stream)
stream.sync()
result = bytes(buf)
assert result == b"\x09" * size

advise(weights, "set_read_mostly")
advise(activations, "set_preferred_location", Device(0))
advise(scratch, "set_accessed_by", Device(0))
assert weights.read_mostly and activations.preferred_location is Device(0) and scratch.accessed_by == {Device(0)}

discard(scratch, stream=stream)
for step in range(num_steps):
    discard_prefetch(activations, Device(0), stream=stream)
    run_forward(activations, stream=stream)
stream.sync()
assert bytes(activations) == b"\x09" * size and bytes(scratch)[:1] == b"\xdd"

output, log_metrics, shard_a, shard_b, shard_c = (mr.allocate(size) for _ in range(5))
prefetch(
    [output, log_metrics],
    [Device(0), Host()],
    stream=stream,
)
prefetch([shard_a, shard_b, shard_c], Device(0), stream=stream)

weights = mr.allocate(weights_size)
inputs = mr.allocate(inputs_size)
output = mr.allocate(output_size)
weights.read_mostly = True
weights.preferred_location = Device(0)
output.preferred_location = Device(0)
inputs.prefetch(Device(0), stream=stream)
run_inference(weights, inputs, output, stream=stream)
output.prefetch(Host(), stream=stream)
stream.sync()
assert bytes(output) == b"\x09" * output_size and output.preferred_location is Device(0)
assert fake.fake_illegals() == 0
print("ok")
