// Package lockorder runs programs on the library's debug build, whose locks compare each
// acquisition with the table of internal/lockrank.
package lockorder
