// Package version holds the version of the library. tierallocctl and the report take it from here;
// tieralloc.h and the Python package repeat it, and tests/docs compares them.
package version

// Number is the version, by the rules of semver.org.
const Number = "0.1.0"
