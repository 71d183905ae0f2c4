package config_test

import (
	"fmt"
	"os"
	"unsafe"

	"tieralloc/internal/config"
)

// settings are static, because the rules in them are kept by their address.
var settings config.Settings

// kept holds the strings whose addresses are in an environment.
var kept [][]byte

// environment is the vector of C strings that a process starts with.
func environment(entries ...string) []uintptr {
	var vector []uintptr
	for _, e := range entries {
		b := append([]byte(e), 0)
		kept = append(kept, b)
		vector = append(vector, uintptr(unsafe.Pointer(&b[0])))
	}
	return append(vector, 0)
}

// Parse reads the settings of the library from an environment. It passes over all other variables.
func ExampleParse() {
	envp := environment("HOME=/root", "TA_FAST_HARD=2G", "TA_DEFAULT_HINT=cold")
	bad := config.Parse(&settings, uintptr(unsafe.Pointer(&envp[0])))

	fmt.Println("bad:", bad)
	fmt.Println("hard cap:", settings.Tiers[config.TierFast].Hard>>20, "MiB")
	fmt.Println("cold:", settings.DefaultHint == config.HintCold)
	// Output:
	// bad: 0
	// hard cap: 2048 MiB
	// cold: true
}

// A bad value is one line that names the variable, the value and what is accepted. The setting
// keeps its default.
func ExampleParseTo() {
	envp := environment("TA_THROTTLE=fast")
	bad := config.ParseTo(&settings, uintptr(unsafe.Pointer(&envp[0])), os.Stdout.Fd())

	fmt.Println("bad:", bad)
	// Output:
	// tieralloc: TA_THROTTLE="fast": expected account or sleep; using account
	// bad: 1
}
