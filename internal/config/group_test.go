package config

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"tieralloc/internal/raw"
)

// TestGroupName: a path is a name only where the name stands for it.
func TestGroupName(t *testing.T) {
	for path, want := range map[string]string{
		groupFiles + "7.x":    "x",
		groupFiles + "77.x.y": "x.y",
		groupFiles + "7.x/y":  groupFiles + "7.x/y",
		groupFiles + "7.":     groupFiles + "7.",
		groupFiles + "7":      groupFiles + "7",
		groupFiles + "x":      groupFiles + "x",
		groupFiles:            groupFiles,
		groupFiles[:9]:        groupFiles[:9],
		"/tmp/x":              "/tmp/x",
	} {
		file := new(Text)
		file.Set(raw.Bytes(path), uintptr(len(path)))
		if got := nameIn(file); got != want {
			t.Errorf("%s: %q, not %s", path, got, want)
		}
	}
}

// nameIn is the name of the group whose file is at path.
func nameIn(path *Text) string {
	name, n := GroupName(path)
	return path.String()[name-path.Addr():][:n]
}

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
		if got := nameIn(&s.GroupFile); !bad && got != val {
			t.Errorf("%q: the name is %q", val, got)
		}
	}
}
