package process

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tieralloc/internal/testlib"
)

// TestStrangersLink: a file of the library that a process of root writes into a user's folder does
// not follow the links that the user makes there. Root's own links lead where they lead.
func TestStrangersLink(t *testing.T) {
	t.Parallel()
	prog := testlib.CC(t, "settings.c")
	for _, variable := range []string{"TA_STATS_FILE", "TA_STATS_LIVE", "TA_LOG=info TA_LOG_FILE"} {
		for owner, want := range map[int]int{0: 1, 65534: 0} {
			target, link := testlib.LinkOf(t, owner)
			env := strings.Fields(variable + "=" + filepath.Join(link, "new"))
			if variable == "TA_STATS_LIVE" {
				env[0] += ".%p"
			}
			r := preloaded(t, env, prog, "work")
			if r.Status != 0 || r.Stdout != "done\n" {
				t.Errorf("%s, link of user %d: %+v", variable, owner, r)
			}
			name := variable[strings.LastIndexByte(variable, ' ')+1:]
			if told := strings.Contains(r.Stderr, name); told != (want == 0) {
				t.Errorf("%s, link of user %d: %q", variable, owner, r.Stderr)
			}
			if files, err := os.ReadDir(target); err != nil || len(files) != want {
				t.Errorf("%s, link of user %d: the target holds %v, %v", variable, owner, files,
					err)
			}
		}
	}
}
