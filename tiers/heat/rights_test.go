package heat

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

const dropsRights = "TA_TEST_DROPS_RIGHTS"

// TestRightsLost: a process that is no longer root, and closed to inspection, gets an error from
// its source that names the file. Open to inspection again, it finds sources that need no right.
func TestRightsLost(t *testing.T) {
	if os.Getenv(dropsRights) != "" {
		dropRights(t)
		return
	}
	if os.Getuid() != 0 {
		t.Skip("only root has rights to lose")
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestRightsLost$", "-test.v")
	cmd.Env = append(os.Environ(), dropsRights+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}

func dropRights(t *testing.T) {
	m := newMemory(t, RegionBytes, unix.MADV_NOHUGEPAGE)
	m.split(t)
	sources := []Source{&Referenced{}, &Written{}, &SoftDirty{}}
	first, refused := First(sources, m.regions, RegionBytes)
	if first != 0 {
		t.Fatal(refused)
	}
	const nobody = 65534
	if err := syscall.Setuid(nobody); err != nil {
		t.Fatal(err)
	}
	_, err := sources[0].Sample(make([]Rate, len(m.regions)))
	if err == nil || !strings.Contains(err.Error(), "/proc/self/") {
		t.Fatalf("a sample without the right: %v", err)
	}
	for _, s := range sources {
		err := s.Probe()
		if err == nil || !strings.HasSuffix(err.Error(), "needed") {
			t.Errorf("%s does not say what is needed: %v", s.Name(), err)
		}
	}
	sources[0].Stop()
	if i, refused := First(sources[1:], m.regions, 0); i != 2 || len(refused) != 2 {
		t.Fatalf("source %d works without a right: %v", i+1, refused)
	}

	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	sources = Sources()
	i, refused := First(sources, m.regions, RegionBytes)
	t.Log(refused)
	if i == len(sources) {
		t.Fatalf("source %d, refused %v", i, refused)
	}
	m.tellApart(t, sources[i])
	sources[i].Stop()
}
