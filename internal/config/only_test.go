package config

import (
	"strings"
	"testing"
)

// TestOnly: a program is named by its name, or by the beginning of it before a *.
func TestOnly(t *testing.T) {
	for _, c := range []struct {
		list, path string
		want       bool
	}{
		{"redis-server,python3", "/usr/bin/redis-server", true},
		{"redis-server,python3", "python3", true},
		{"redis-server,python3", "./python3", true},
		{"redis-server,python3", "/usr/bin/python3.11", false},
		{"redis-server,python3", "/python3/sh", false},
		{"redis-server, python3* ,", "/usr/bin/python3.11", true},
		{"python3*", "python3", true},
		{"python3*", "python", false},
		{"*", "/bin/sh", true},
		{"sh", "/bin/SH", false},
		{"sh", "/bin/", false},
		{"sh", "", false},
		{",,s h", "/bin/s h", true},
	} {
		env := newEnviron(t, []string{"A=1", "TA_ONLY=" + c.list, c.path})
		path := env.entry(2)
		if !Only(env.addr()) || OnlyNames(env.addr(), path) != c.want {
			t.Errorf("%q, %s", c.list, c.path)
		}
		if OnlyNames(env.addr(), 0) {
			t.Errorf("%q names a program without a name", c.list)
		}
		env.clobber()
	}
	for _, entry := range []string{"A=1", "TA_ONLY=", "TA_ONLY=a/b"} {
		env := newEnviron(t, []string{entry, "TA_ONLY=sh"})
		if Only(env.addr()) != (entry == "A=1") {
			t.Errorf("%s, and then another", entry)
		}
		env.clobber()
	}
	if Only(0) {
		t.Error("no environment has a list")
	}
}

// TestBadOnly: a list that cannot be read keeps every program out, whatever else is set.
func TestBadOnly(t *testing.T) {
	for _, list := range []string{"/usr/bin/true", "a,py*3", "**", "a b*c", " , ,"} {
		o := run(t, []string{"TA_ONLY=" + list, "TA_DISABLE=0", "TA_LOG=info"})
		want := with(func(o *outcome) {
			o.disable, o.log = true, LogInfo
			o.lines = []string{"tieralloc: TA_ONLY=\"" + list +
				"\": expected names of programs such as" +
				" redis-server,python3*, without folders, * only at a name's end; using no program"}
		})
		if !o.equal(want) {
			t.Errorf("%s: %+v", list, strings.Join(o.lines, "\n"))
		}
	}
}
