// Package nvmllink lets a program that links go-nvml's pkg/nvml start on machines without NVML.
//
// pkg/nvml leaves every function of NVML undefined in the program. It relies on the loader to bind
// each function at its first call, after it has opened the library. If the loader binds at start,
// because of LD_BIND_NOW or of how the program was linked, the program does not start at all. If
// the driver is too old for a function, the call of it ends the program.
//
// This package defines all functions. Each jumps through a pointer of its own. At first the
// pointers lead to a function that returns NVML_ERROR_FUNCTION_NOT_FOUND; Open sets them to the
// library's functions. The definitions are hidden, so that NVML's own calls do not bind to them.
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

// Open sets the pointers to the functions of a library. It is called before any of the functions,
// and again to use another library.
func Open(library string) error {
	name := C.CString(library)
	defer C.free(unsafe.Pointer(name))
	if why := C.ta_nvml_open(name); why != nil {
		return errors.New(C.GoString(why))
	}
	return nil
}
