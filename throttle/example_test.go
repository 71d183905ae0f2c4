package throttle_test

import (
	"fmt"

	"tieralloc/throttle"
)

// A bucket of 1 MB/s lets a burst of 1000 bytes pass at once. After that each byte takes a
// microsecond. The bucket keeps no time and does not sleep: the caller does both.
func ExampleBucket_Charge() {
	var b throttle.Bucket
	b.Set(1_000_000, 1000, 0)

	const start = 1_000_000_000 // nanoseconds
	fmt.Println("burst:", b.Charge(start, 1000))
	fmt.Println("next: ", b.Charge(start, 500))
	fmt.Println("later:", b.Charge(start+1_500_000, 500))
	// Output:
	// burst: 0
	// next:  500000
	// later: 0
}
