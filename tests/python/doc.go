// Package python holds black-box tests of python/tieralloc_shim.py, with the built
// library.
package python
