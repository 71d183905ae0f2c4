"""Where the library is not in the process, the device heap says so."""

import unittest

import tieralloc_shim as t
from tieralloc import cuda as c


class Without(unittest.TestCase):
    def test_says_so(self):
        for call in t.get_memory_manager, t.enable_cuda, lambda: t.enable_cuda("torch"), lambda: c.configure_memory_manager({}):
            with self.assertRaisesRegex(RuntimeError, "is not in this process. Start Python again like this:\n    LD_PRELOAD="):
                call()


unittest.main()
