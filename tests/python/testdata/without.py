"""Without the library at work: what says so, and what does nothing."""

import sys
import unittest

import tieralloc_shim as t

why = sys.argv.pop()


class Without(unittest.TestCase):
    def test_not_available(self):
        self.assertFalse(t.available())
        self.assertFalse(t.enabled())

    def test_calls_say_how_to_start(self):
        for call in (t.enable, t.hello, t.stats, lambda: t.tier_of(b"x"), lambda: t.move(1, "fast")):
            with self.assertRaises(RuntimeError) as caught:
                call()
            text = str(caught.exception)
            self.assertIn(why, text)
            self.assertRegex(text, r"\n    LD_PRELOAD='?/.*libtieralloc\.so'? /.*python3\S* .*without\.py")
        self.assertFalse(t.enabled())

    def test_hints_do_nothing(self):
        t.set_default_hint("hot")
        with t.hint("cold"), t.hint("HOT"):
            pass
        self.assertEqual(t.hint("cold")(lambda a, b=1: a + b)(2, b=3), 5)
        t.disable()

    def test_words_are_checked(self):
        for word in "lukewarm", "", None, 1, b"hot", "hot ", "fast":
            for call in t.set_default_hint, t.hint:
                with self.assertRaises(ValueError) as caught:
                    call(word)
                self.assertEqual(str(caught.exception), f"unknown hint {word!r}: expected hot, warm,"
                                                        " cold, pin_fast or prefer_fast")


unittest.main()
