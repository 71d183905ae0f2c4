package system

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tieralloc/internal/testlib"
)

// firstOutput is what the program of the README's first command prints.
const firstOutput = "6888895\n"

// readmeCommands returns the two commands of the README, word for word.
func readmeCommands(t *testing.T) (first, second string) {
	t.Helper()
	text := read(t, filepath.Join(testlib.Root(), "README.md"))
	_, section, _ := strings.Cut(text, "\n## Two commands\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var commands []string
	for line := range strings.Lines(section) {
		if command, ok := strings.CutPrefix(line, "    "); ok {
			commands = append(commands, command)
		}
	}
	if len(commands) != 2 {
		t.Fatalf("README.md has %d indented lines below \"Two commands\": %q", len(commands),
			commands)
	}
	return commands[0], commands[1]
}

// TestFirstCommandIsMinimal: the program of the first command belongs to every Debian system.
func TestFirstCommandIsMinimal(t *testing.T) {
	testlib.Need(t, "dpkg-query")
	first, _ := readmeCommands(t)
	program, ok := strings.CutPrefix(first, "./build.sh run -- ")
	if !ok {
		t.Fatalf("the README's first command is %q", first)
	}
	program, _, _ = strings.Cut(program, " ")
	owner, err := exec.Command("dpkg-query", "-S", "/usr/bin/"+program).Output()
	if err != nil {
		t.Fatalf("no Debian package has /usr/bin/%s: %v", program, err)
	}
	name, _, _ := strings.Cut(string(owner), ":")
	essential, err := exec.Command("dpkg-query", "-W", "-f", "${Essential}", name).Output()
	if err != nil || string(essential) != "yes" {
		t.Errorf("%s is of the package %s, which a minimal system lacks", program, name)
	}
}
