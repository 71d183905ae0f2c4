// Package tool tests build/tierallocctl from outside, with the library that was built
// beside it. TA_TEST_TOOL names another tool, TA_TEST_LIB another library.
package tool
