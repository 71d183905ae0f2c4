package verify

import (
	"fmt"
	"os"
	"testing"
)

// scratch outlives the single tests, which share what is built there.
var scratch string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "verify")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	scratch = dir
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}
