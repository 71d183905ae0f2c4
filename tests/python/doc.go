// Package python holds black-box tests of the Python package, with the built
// library.
package python
