"""Where something is missing: the library, the device, the functions of a newer library, NumPy."""
import ctypes
import sys
import warnings

how = sys.argv[1]
if how == "numpy":
    sys.modules["numpy"] = None
import tieralloc


def error_of(call, *arguments):
    try:
        call(*arguments)
    except Exception as error:
        return error
    raise AssertionError("accepted")


if how in ("library", "load"):  # started without it
    error = error_of(tieralloc.MemoryManager)
    assert type(error) is RuntimeError and "LD_PRELOAD=" in str(error) and "mm_absent.py" in str(error), error
    assert "tieralloc.load(" in str(error)
    error = error_of(tieralloc.load, "/no/such/file.so")
    assert type(error) is OSError and "/no/such/file.so" in str(error), error
    assert type(error_of(tieralloc.load, 3)) is TypeError
    assert type(error_of(tieralloc.load, b"x")) is TypeError
if how == "library":
    error = error_of(tieralloc.load, sys.argv[2])  # a library, but another one
    assert type(error) is ValueError and sys.argv[2] in str(error) and "ta_cuda_malloc" in str(error), error
if how == "load":
    cuda = ctypes.CDLL("libcuda.so.1", mode=ctypes.RTLD_GLOBAL)
    tieralloc.load(sys.argv[2])
    tieralloc.load("/no/such/file.so")  # it is here already
    import numpy as np

    class Instance:
        pass

    m, instance = tieralloc.MemoryManager(mode="active"), Instance()
    m.register(instance, 0.5)
    x = m.allocate_all({"x": tieralloc.ArrayRequest(np.float32, (10,))}, id(instance), m.get_stream(instance))["x"]
    x.copy_to_device(np.ones(10, np.float32))
    assert x.copy_to_host().sum() == 10 and m.statistics(instance)["bytes_live"] == 40
if how == "device":  # the library, without a device
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        m = tieralloc.MemoryManager()
    assert len(found) == 1 and "no device" in str(found[0].message) and m.totalmem == 1, found
    for call in (lambda: m.register(m), lambda: m.allocate((1,), "f4", "device"), lambda: m.manual_pool_proportion):
        assert isinstance(error_of(call), (RuntimeError, NotImplementedError)), error_of(call)
    assert m.registry == {} and m.stream_groups.groups == {}
if how == "off":  # it serves no devices
    m = tieralloc.MemoryManager()
    error = error_of(m.register, m)
    assert type(error) is RuntimeError and "device 0" in str(error), error
    assert m.registry == {} and m.stream_groups.groups == {}
    error = error_of(m.allocate, (1,), "f4", "device")
    assert type(error) is RuntimeError and "device 0" in str(error), error
if how == "ordinal":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        error = error_of(tieralloc.MemoryManager(device=7).register, tieralloc)
    assert type(error) is RuntimeError and "device 7" in str(error), error
if how == "numpy":
    m = tieralloc.MemoryManager()
    m.register(how)
    assert m.proportion(how) == 1.0 and m.get_stream(how).query()
    assert type(error_of(m.allocate, (1,), "f4", "device")) in (ImportError, ModuleNotFoundError)
print("ok")
