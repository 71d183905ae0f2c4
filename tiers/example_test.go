package tiers

import (
	"fmt"
	"unsafe"

	"tieralloc/internal/config"
)

// configure sets the policy from one setting, with each tier on memory of its own.
func configure(setting string) {
	environ := []uintptr{cstring(setting), 0}
	config.Parse(&settings, uintptr(unsafe.Pointer(&environ[0])))
	Setup(&settings, &apart, 0)
}

// The normal tier has a cap of 1 MiB. The second request does not fit, so Reserve first asks the
// caller to give back cached memory of that tier. The caller repeats the request with the tier's
// bit, and Reserve takes the next tier.
func ExampleReserve() {
	configure("TA_NORMAL_HARD=1M")
	const (
		warm   = uintptr(config.HintWarm)
		size   = 768 << 10
		normal = uintptr(config.TierNormal)
		slow   = uintptr(config.TierSlow)
	)

	fmt.Println("normal:", Reserve(warm, size, 0) == normal)
	fmt.Println("trim:  ", Reserve(warm, size, 0) == Trim|normal)
	fmt.Println("slow:  ", Reserve(warm, size, 1<<normal) == slow)
	// Output:
	// normal: true
	// trim:   true
	// slow:   true
}

// The first rule that holds decides. A caller computes the set of a thread once, and matches the
// size of each request against it.
func ExampleMatch() {
	configure("TA_RULES=thread=worker*:hot; size>=1M:cold")
	worker, other := ThreadSet(cstring("worker-3")), ThreadSet(cstring("main"))

	fmt.Println(Match(worker, 2<<20) == uintptr(config.HintHot))
	fmt.Println(Match(other, 2<<20) == uintptr(config.HintCold))
	fmt.Println(Match(other, 100) == NoHint)
	// Output:
	// true
	// true
	// true
}
