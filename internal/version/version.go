// Package version holds the version of the library. tierallocctl and the report take it from here;
// build.sh names the installed library by it; tieralloc.h and the Python package repeat it, and
// tests/docs compares them.
package version

// Number is the version, by the rules of semver.org.
const Number = "1.0.0"

// Date is the date of this version, for the manual pages.
const Date = "2026-11-23"
