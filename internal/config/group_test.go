package config

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestGroup: TA_GROUP is a name, which stands for a file of this user's, or a path.
func TestGroup(t *testing.T) {
	named := fmt.Sprintf("/dev/shm/tieralloc-group.%d.", os.Geteuid())
	long := strings.Repeat("n", groupNameMax)
	const isBad = "bad"
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	for val, want := range map[string]string{
		"":                                   "",
		"train":                              named + "train",
		"A.b-_9":                             named + "A.b-_9",
		long:                                 named + long,
		"/run/x":                             "/run/x",
		"/%p":                                "/%p",
		"/" + strings.Repeat("d", PathMax-1): "/" + strings.Repeat("d", PathMax-1),
		"/" + strings.Repeat("d", PathMax):   isBad,
		long + "n":                           isBad,
		"a/b":                                isBad,
		"./a":                                isBad,
		"/run/":                              isBad,
		"/":                                  isBad,
		"a b":                                isBad,
		"a\n":                                isBad,
		"é":                                  isBad,
		"%p":                                 isBad,
	} {
		s := new(Settings)
		env := newEnviron(t, []string{"TA_GROUP=" + val, "TA_GROUP_MIN=2M"})
		bad := ParseTo(s, env.addr(), uintptr(null.Fd())) != 0
		env.clobber()
		if got := s.GroupFile.String(); bad != (want == isBad) || !bad && got != want ||
			s.Grouped != (got != "") || s.GroupMin != 2<<20 {
			t.Errorf("%q: %q, %v, %d, bad %v", val, got, s.Grouped, s.GroupMin, bad)
		}
	}
}
