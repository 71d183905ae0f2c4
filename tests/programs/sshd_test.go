package programs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tieralloc/internal/testlib"
)

// TestSSH: OpenSSH's server confines a child of each connection by a filter of system calls, which
// kills it for those that the filter does not know. With compression that child allocates much. It
// serves every client. Where it serves none without the library, there is nothing to compare with.
func TestSSH(t *testing.T) {
	testlib.Need(t, "ssh", "sshd", "ssh-keygen")
	if os.Geteuid() != 0 {
		testlib.Lacks(t, "root, whom sshd needs for its sandbox")
	}
	if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
		t.Fatal(err)
	}
	if got := serveSSH(t, 1); got != "" {
		testlib.Lacks(t, "sshd that serves: "+got)
	}
	dir := t.TempDir()
	for _, mode := range []string{"TA_SECURE=0", "TA_SECURE=1", "TA_STATS_FILE=" + dir + "/%p.json",
		"TA_PROFILE=" + dir + "/p.%p", "TA_STATS_LIVE=1", "TA_LOG=info"} {
		t.Run(strings.Split(mode, "=")[0], func(t *testing.T) {
			if got := serveSSH(t, 6, "LD_PRELOAD="+testlib.Lib(t), mode); got != "" {
				t.Error(got)
			}
		})
	}
}

// serveSSH serves some clients, and returns what went wrong, or "".
func serveSSH(t *testing.T, clients int, env ...string) string {
	s := newSite(t, false)
	for _, key := range []string{"host", "client"} {
		s.run("", "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key)
	}
	port := freePort(t)
	at := func(name string) string { return filepath.Join(s.dir, name) }
	write(t, s.dir, "config", fmt.Sprintf("Port %d\nListenAddress 127.0.0.1\nHostKey %s\n"+
		"AuthorizedKeysFile %s\nStrictModes no\nUsePAM no\nPermitRootLogin yes\nCompression yes\n"+
		"PidFile none\nMaxStartups 100\n", port, at("host"), at("client.pub")))
	sshd, err := exec.LookPath("sshd")
	if err != nil {
		t.Fatal(err)
	}
	server := *s
	server.env = append(append([]string{}, s.env...), env...)
	cmd := server.start("log", sshd, "-D", "-e", "-f", at("config"))
	testlib.Wait(t, "sshd listens", cmd.Process, func() bool {
		stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", cmd.Process.Pid))
		return strings.Contains(string(stat), ") Z ") ||
			strings.Contains(s.log("log"), "Server listening")
	})
	for range clients {
		const command = "seq 20000 | tee /dev/stderr | tail -n 1"
		r := testlib.Run(t, testlib.Cmd{Dir: s.dir, Env: s.env, Args: []string{"ssh", "-C", "-F",
			"none", "-i", at("client"), "-p", fmt.Sprint(port), "-o", "StrictHostKeyChecking=no",
			"-o", "UserKnownHostsFile=/dev/null", "-o", "BatchMode=yes", "-o", "LogLevel=ERROR",
			"root@127.0.0.1", command}})
		if r.Status != 0 || r.Stdout != "20000\n" {
			return fmt.Sprintf("ssh ended with %d\nstdout: %s\nstderr: %s\nthe server: %s", r.Status,
				clip(r.Stdout), clip(r.Stderr), clip(s.log("log")))
		}
	}
	return ""
}
