package cgroup

import (
	"os"
	"path/filepath"
	"testing"
)

func TestPressure(t *testing.T) {
	text := func(avg10 string) string {
		return "some avg10=" + avg10 + " avg60=77.00 avg300=0.00 total=9\n" +
			"full avg10=99.00 avg60=0.00 avg300=0.00 total=9\n"
	}
	for _, c := range []struct {
		name, self, system string
		files              map[string]string
		want               uint64
		ok                 bool
	}{
		{"nobody tells", "0::/a\n", "", nil, 0, false},
		{"the system", "0::/a\n", text("12.34"), nil, 1234, true},
		{"the group", "0::/a\n", text("12.34"),
			map[string]string{"a/memory.pressure": text("0.07")}, 7, true},
		{"not a group above", "0::/a/b\n", text("3.00"),
			map[string]string{"a/memory.pressure": text("50.00")}, 300, true},
		{"the root of a container", "0::/docker/x\n", text("3.00"),
			map[string]string{"memory.pressure": text("100.00")}, 10000, true},
		{"version 1", "4:memory:/a\n0::/a\n", text("5.01"),
			map[string]string{"a/memory.pressure": text("50.00")}, 501, true},
		{"no number", "0::/a\n", "some avg10=x\n", nil, 0, false},
		{"no hundredths", "0::/a\n", "some avg10=3 avg60=1\n", nil, 0, false},
		{"half a number", "0::/a\n", "some avg10=3.", nil, 0, false},
		{"another line", "0::/a\n", "full avg10=30.00\n", nil, 0, false},
		{"a group's text that is none", "0::/a\n", text("6.00"),
			map[string]string{"a/memory.pressure": "\x00"}, 600, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			tree(t, c.self, c.files)
			System = filepath.Join(t.TempDir(), "memory")
			t.Cleanup(func() { System = "" })
			if c.system != "" {
				if err := os.WriteFile(System, []byte(c.system), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if got, ok := Pressure(); got != c.want || ok != c.ok {
				t.Errorf("%d, %v", got, ok)
			}
		})
	}
}
