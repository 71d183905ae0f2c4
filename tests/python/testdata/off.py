"""Where the library was told not to serve devices, nothing is enabled. Usage: off.py [SETTING]"""

import ctypes
import sys
import unittest
from unittest import mock

import tieralloc_shim as t

setting = sys.argv.pop() if len(sys.argv) > 1 else None


real = ctypes.CDLL


def without_driver(name, *args, **kwargs):
    """ctypes.CDLL of a machine without a driver."""
    if name == "libcuda.so.1":
        raise OSError(f"{name}: cannot open shared object file")
    return real(name, *args, **kwargs)


class Off(unittest.TestCase):
    def test_frameworks(self):
        for name in "torch", "cupy", "numba":
            module = mock.MagicMock()
            modules = {name: module, "numba.cuda": module.cuda, "numba.cuda.cudadrv": module.cuda.cudadrv}
            with mock.patch.dict(sys.modules, modules), mock.patch("tieralloc.frameworks._torch_allocator", None), \
                    mock.patch("tieralloc.frameworks.numba_manager"):
                for names in [name], [name, "torch"], []:
                    if setting is None:
                        self.assertEqual(t.enable_cuda(name), (name,))
                        continue
                    with self.assertRaisesRegex(RuntimeError, f"serves no device memory .* with {setting}$"):
                        t.enable_cuda(*names)
            self.assertEqual(bool(module.mock_calls), setting is None, module.mock_calls)

    def test_manager(self):
        """It is there, with nothing in it, and says why when it is asked for something."""
        m = t.get_memory_manager()
        self.assertEqual(m.get_statistics().total_allocations, 0)
        self.assertEqual(m.cleanup_cache(force=True), 0)
        if setting is None:
            with self.assertRaisesRegex(RuntimeError, "^there is no CUDA driver: libcuda.so.1: "), \
                    mock.patch("ctypes.CDLL", without_driver):
                m.allocate_memory(4096)
        else:
            why = rf" \({setting} is set\)"
            with self.assertRaisesRegex(OSError, f"no 4096 bytes on device 0: No such device{why}$"):
                m.allocate_memory(4096)
            with self.assertRaisesRegex(OSError, f"no free of 0x1000 on device 0: No such device{why}$"):
                m.free_memory(4096)
            with self.assertRaisesRegex(NotImplementedError, f"strategy = 1 for device 0: .*{why}$"):
                m.configure(allocation_strategy="first_fit")


unittest.main()
