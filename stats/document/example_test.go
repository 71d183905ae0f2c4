package document_test

import (
	"encoding/json"
	"fmt"
	"unsafe"

	"tieralloc/stats"
	"tieralloc/stats/document"
)

// report is static, because a Report lies outside the Go heap.
var report stats.Report

// JSON returns the length of the whole report, as snprintf does. A caller asks for the length
// first, and then provides a buffer with one more byte for the final zero.
func ExampleJSON() {
	report.Tiers[0].BytesCurrent = 4096

	need := document.JSON(0, 0, &report, nil)
	text := make([]byte, need+1)
	document.JSON(uintptr(unsafe.Pointer(&text[0])), need+1, &report, nil)

	var d struct {
		Tiers map[string]struct {
			Bytes uint64 `json:"bytes_current"`
		}
	}
	if err := json.Unmarshal(text[:need], &d); err != nil {
		fmt.Println(err)
	}
	fmt.Println("fast:", d.Tiers["fast"].Bytes)
	// Output:
	// fast: 4096
}
