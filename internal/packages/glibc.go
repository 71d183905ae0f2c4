package main

import (
	"debug/elf"
	"fmt"
	"strconv"
	"strings"
)

// checkGlibc returns an error if a program or library needs a newer glibc than the packages
// promise.
func checkGlibc(path string) error {
	file, err := elf.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	needs, err := file.DynamicVersionNeeds()
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	for _, library := range needs {
		for _, need := range library.Needs {
			// GLIBC_2.3.4 is older than GLIBC_2.34.
			minor, _, _ := strings.Cut(strings.TrimPrefix(need.Dep, "GLIBC_2."), ".")
			if n, err := strconv.Atoi(minor); err == nil && n > glibc {
				return fmt.Errorf("%s needs %s, and the packages are for 2.%d", path, need.Dep,
					glibc)
			}
		}
	}
	return nil
}
