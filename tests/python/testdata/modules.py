"""The modules of the package: what they import, alone and of each other, and their former names."""

import ast
import importlib
import importlib.util
import os
import pathlib
import sys
import unittest
import warnings

ROOT = pathlib.Path(importlib.util.find_spec("tieralloc").origin).parent

# NumPy is what these make arrays of, and they are loaded where it is.
NUMPY = {"tieralloc._arrays"}


def modules():
    """The path of each module, by its name."""
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        parts = ("tieralloc", *path.relative_to(ROOT).with_suffix("").parts)
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(name, path, known):
    """The package's modules that a module imports, anywhere in its text."""
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[:len(package) - node.level + 1] if node.level else []
            base = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                whole = f"{base}.{alias.name}"
                found.add(whole if whole in known else base)
    return found & set(known)


def circle(graph):
    """A circle in a graph, as a list that ends where it begins, or []."""
    done = set()

    def visit(name, above):
        if name in above:
            return [*above[above.index(name):], name]
        if name in done:
            return []
        for below in sorted(graph[name]):
            found = visit(below, [*above, name])
            if found:
                return found
        done.add(name)
        return []

    for name in sorted(graph):
        found = visit(name, [])
        if found:
            return found
    return []


class Modules(unittest.TestCase):
    def test_no_circle(self):
        known = modules()
        graph = {name: imports(name, path, known) for name, path in known.items()}
        self.assertIn("tieralloc._library", graph["tieralloc.hints"])
        self.assertIn("tieralloc._futures", graph["tieralloc.cuda"])  # in a function
        self.assertEqual(circle(graph), [])
        self.assertEqual(circle({"a": {"b"}, "b": {"c"}, "c": {"b"}}), ["b", "c", "b"])

    def test_each_alone(self):
        """Every module can be the first that a program imports."""
        for name in [*modules(), "tieralloc_shim", "tieralloc_cuda", "tieralloc_async"]:
            if name in NUMPY and importlib.util.find_spec("numpy") is None:
                continue
            child = os.fork()
            if child == 0:
                status = 1
                try:
                    assert not any(known.startswith("tieralloc") for known in sys.modules)
                    importlib.import_module(name)
                    status = 0
                finally:
                    sys.stderr.flush()
                    os._exit(status)
            self.assertEqual(os.waitpid(child, 0)[1], 0, name)

    def test_hints_are_light(self):
        """A program that wants hints does not load what is for devices."""
        out, into = os.pipe()
        child = os.fork()
        if child == 0:
            import tieralloc_shim
            tieralloc_shim.available()
            os.write(into, " ".join(sorted(m for m in sys.modules if "tieralloc" in m)).encode())
            os._exit(0)
        os.waitpid(child, 0)
        self.assertEqual(os.read(out, 4096).decode(), "tieralloc tieralloc._abi tieralloc._library"
                                                      " tieralloc.hints tieralloc_shim")

    def test_one_binding(self):
        """The library's functions are found and typed in one place."""
        for name, path in modules().items():
            text = path.read_text(encoding="utf-8")
            if name != "tieralloc._library":
                self.assertNotIn("CDLL(None", text, name)
                self.assertNotIn("SIGNATURES[", text, name)

    def test_names(self):
        child = os.fork()
        if child == 0:
            import tieralloc
            missing = [n for n in tieralloc.__all__ if getattr(tieralloc, n, None) is None]
            os._exit(0 if not missing and not hasattr(tieralloc, "nothing") else 1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)

    def test_former_names(self):
        """They have what the modules have that took their place, and say so."""
        for old, new in ("tieralloc_cuda", "tieralloc.cuda"), ("tieralloc_async", "tieralloc.aio"):
            child = os.fork()
            if child == 0:
                with warnings.catch_warnings(record=True) as told:
                    warnings.simplefilter("always")
                    module, its = importlib.import_module(old), importlib.import_module(new)
                same = all(getattr(module, name) is getattr(its, name) for name in its.__all__)
                said = [(w.category, str(w.message)) for w in told]
                os._exit(0 if same and said == [(DeprecationWarning, f"{old} is now {new}")] else 1)
            self.assertEqual(os.waitpid(child, 0)[1], 0, old)


unittest.main()
