// Package nvmllink makes a program that links go-nvml's pkg/nvml start everywhere.
//
// That package leaves every function of NVML undefined in the program, and relies on
// the loader to bind each one at its first call, by when it has opened the library. A
// program that is bound at its start, by LD_BIND_NOW or because it was linked so, then
// does not start at all, whether it would have used NVML or not; and one that calls a
// function which the driver is too old for dies in the midst of it.
//
// This package defines them all: each is a jump through a word of its own. The words
// first lead to a function that returns NVML_ERROR_FUNCTION_NOT_FOUND, and Open sets
// them to what the library has. The definitions are hidden, so that the library's calls
// of itself do not find them.
package nvmllink

// #include <stdlib.h>
// #cgo LDFLAGS: -ldl
// const char *ta_nvml_open(const char *library);
import "C"

import (
	"errors"
	"unsafe"
)

// Library is the file name of NVML, which comes with the driver.
const Library = "libnvidia-ml.so.1"

// Open leads the functions to those of a library. It is called before any of them is,
// and again after another library was to be used.
func Open(library string) error {
	name := C.CString(library)
	defer C.free(unsafe.Pointer(name))
	if why := C.ta_nvml_open(name); why != nil {
		return errors.New(C.GoString(why))
	}
	return nil
}
