package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// documentedRun finds the flags of a command in a document: what stands between run and --.
var documentedRun = regexp.MustCompile(`(?:tieralloc|tierallocctl) run((?:\s+(?:\\\n\s*)?` +
	`-[^\s]+(?:[ =](?:'[^']*'|[^\s'-][^\s]*))?)+)\s+--\s`)

// TestDocumentedRunsHaveAnEffect: no command that is shown has a setting without effect on a
// machine with one kind of memory, where a cap on FAST alone does nothing.
func TestDocumentedRunsHaveAnEffect(t *testing.T) {
	texts := map[string]string{"run --help": runCommand().Example}
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "build" || d.Name() == ".git"):
			return filepath.SkipDir
		case d.IsDir() || filepath.Ext(path) != ".md" && filepath.Base(path) != "__main__.py":
			return nil
		}
		text, err := os.ReadFile(path)
		texts[path] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	capped := 0
	for path, text := range texts {
		for _, m := range documentedRun.FindAllStringSubmatch(text, -1) {
			cmd := runCommand()
			words := strings.Fields(strings.NewReplacer("'", "", "\\\n", " ").Replace(m[1]))
			if err := cmd.ParseFlags(words); err != nil {
				t.Errorf("%s: %q: %v", path, m[0], err)
				continue
			}
			env, given := applySettingFlags(cmd.Flags(), environ{"TA_USE_LIBNUMA=0"})
			for flag := range given {
				if strings.HasSuffix(flag, "_HARD") || strings.HasSuffix(flag, "_SOFT") {
					capped++
				}
			}
			c := checked(t, env...)
			if idle := idleSettings(env, c); len(idle) > 0 || len(c.mistakes) > 0 {
				t.Errorf("%s: %q: mistakes %v, without effect %q", path, m[0], c.mistakes, idle)
			}
		}
	}
	if capped < 4 {
		t.Errorf("%d caps in all documents: the pattern misses some", capped)
	}
}
