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
// serves every client.
func TestSSH(t *testing.T) {
	testlib.Need(t, "ssh", "sshd", "ssh-keygen")
	if os.Geteuid() != 0 {
		testlib.Lacks(t, "root, whom sshd needs for its sandbox")
	}
	if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
		t.Fatal(err)
	}
	for _, mode := range []string{"TA_SECURE=0", "TA_SECURE=1"} {
		t.Run(mode, func(t *testing.T) { serveSSH(t, mode) })
	}
}

func serveSSH(t *testing.T, mode string) {
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
	server.env = append(append([]string{}, s.env...), "LD_PRELOAD="+testlib.Lib(t), mode)
	cmd := server.start("log", sshd, "-D", "-e", "-f", at("config"))
	testlib.Wait(t, "sshd listens", cmd.Process, func() bool {
		return strings.Contains(s.log("log"), "Server listening")
	})
	const clients = 12
	for range clients {
		const command = "seq 20000 | tee /dev/stderr | tail -n 1"
		got := s.run("", "ssh", "-C", "-F", "none", "-i", at("client"), "-p", fmt.Sprint(port), "-o",
			"StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "BatchMode=yes",
			"-o", "LogLevel=ERROR", "root@127.0.0.1", command)
		if got != "20000" {
			t.Fatalf("ssh said %q", clip(got))
		}
	}
}
