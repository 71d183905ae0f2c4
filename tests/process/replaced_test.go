package process

import (
	"testing"

	"tieralloc/internal/testlib"
)

// TestReplacedOperators: a program may bring some of the operators new and delete. The others are
// then derived from them, as by libstdc++.
func TestReplacedOperators(t *testing.T) {
	t.Parallel()
	for name, brings := range map[string][]string{
		"none": nil, "plain": {"-DPLAIN"}, "array": {"-DARRAY"}, "aligned": {"-DALIGNED"},
		"plain and array": {"-DPLAIN", "-DARRAY"}, "all": {"-DPLAIN", "-DARRAY", "-DALIGNED"},
		"static libstdc++": {"-DPLAIN", "-static-libstdc++", "-static-libgcc"},
	} {
		t.Run(name, func(t *testing.T) {
			prog := testlib.CC(t, "replaced.cc",
				append([]string{"-std=c++17", "-Wno-mismatched-new-delete"}, brings...)...)
			want := plain(t, prog)
			clean(t, want)
			for _, env := range []string{"A=", "TA_SECURE=1", "TA_DISABLE=1", "TA_INTERPOSE=0"} {
				r := preloaded(t, []string{env}, prog)
				clean(t, r)
				if r.Stdout != want.Stdout {
					t.Errorf("%s: %q, plain %q", env, r.Stdout, want.Stdout)
				}
			}
		})
	}
}
