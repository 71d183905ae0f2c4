package verify

import (
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// outside are names in comments that are other projects', or parts of a name.
var outside = []string{"CUDACachingAllocator.cpp", "F.jumpN", "GLIBC_x.y",
	"_cgo_release_context", "_cgo_wait_runtime_init_done", "_memory_viz", "asm_trampoline",
	"crti.o", "crtn.o", "cudaErrorInsufficientDriver", "hardened_malloc", "heap_info",
	"kernel_sigaction", "linux_dirent64", "malloc_chunk", "memory_tier4", "memory_tierN",
	"nothrow_t", "page_region", "phys_addr", "pm_scan_arg", "proc_pid_stat", "process_vm_readv",
	"profile.proto", "ptrace_syscall_info", "r_debug", "read_archive", "semver.org",
	"stackblock", "stackblock_size", "sysexits.h", "ta_cuda_", "ta_mm_", "tcbhead_t",
	"torch_memory_saver", "uffdio_api", "uffdio_register",
	"vDSO", "vLLM", "vm.overcommit_memory", "x_cgo_init", "x_cgo_mmap", "x_cgo_munmap",
	"x_cgo_sigaction", "x_cgo_thread_start"}

// nameLike matches words of a comment that look like names of the code: with a capital inside, an
// underscore, or a dot.
var nameLike = regexp.MustCompile(
	`\b[a-z][a-z0-9]*[A-Z]\w*|\b[A-Za-z]\w*\.[a-z]\w+|\b_?[a-z]\w*_[a-z0-9]\w*`)

var aWord = regexp.MustCompile(`\w+`)

// sources is the text of the tree: the words of its code, and the comments of its Go and C files.
type sources struct {
	words    map[string]bool
	comments map[string][]string // by file
}

// readSources reads the tree at root. A file's own name counts as a word.
func readSources(root string) (*sources, error) {
	s := &sources{map[string]bool{}, map[string][]string{}}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); name == "build" || name == ".git" || name == "uplot" {
				return filepath.SkipDir
			}
			return nil
		}
		name := d.Name()
		s.words[name], s.words[strings.TrimSuffix(name, filepath.Ext(name))] = true, true
		text, err := os.ReadFile(path)
		if err != nil || len(text) > 1<<20 {
			return err
		}
		switch filepath.Ext(path) {
		case ".go":
			s.readGo(path, text)
		case ".c", ".h", ".S":
			s.readC(path, string(text))
		case ".py", ".ld", ".sh", ".map", ".js", ".html", ".json", "":
			s.add(string(text))
		}
		return nil
	})
	return s, err
}

func (s *sources) add(text string) {
	for _, w := range aWord.FindAllString(text, -1) {
		s.words[w] = true
	}
}

func (s *sources) readGo(path string, text []byte) {
	var scan scanner.Scanner
	scan.Init(token.NewFileSet().AddFile(path, -1, len(text)), text, nil, scanner.ScanComments)
	for {
		switch _, kind, word := scan.Scan(); kind {
		case token.EOF:
			return
		case token.COMMENT:
			if !strings.HasPrefix(word, "//go:") && !strings.HasPrefix(word, "//export") {
				s.comments[path] = append(s.comments[path], word)
			}
		case token.IDENT:
			s.words[word] = true
		case token.STRING:
			s.add(word)
		}
	}
}

var cComment = regexp.MustCompile(`//[^\n]*|(?s:/\*.*?\*/)`)

func (s *sources) readC(path, text string) {
	s.comments[path] = cComment.FindAllString(text, -1)
	s.add(cComment.ReplaceAllString(text, " "))
}

// unknown returns the names in comments that nothing in the tree has.
func (s *sources) unknown() (list []string) {
	for path, comments := range s.comments {
		for _, c := range comments {
			for _, name := range nameLike.FindAllString(c, -1) {
				if s.words[name] || slices.Contains(outside, name) {
					continue
				}
				for part := range strings.SplitSeq(name, ".") {
					if !s.words[part] {
						list = append(list, path+": "+name)
						break
					}
				}
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// TestCommentNames: a comment names nothing that is not in the tree any more.
func TestCommentNames(t *testing.T) {
	s, err := readSources("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range s.unknown() {
		t.Errorf("%s: no such name", strings.TrimPrefix(u, "../../"))
	}
}

// TestUnknownNames: the names of functions, fields and files that went are found, and no words.
func TestUnknownNames(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("a.go", "package a\n// keepIt, s.slot, s.gone, makeRoom and b.c, e.g. in old.go; see ta_go_x.\n"+
		"var keepIt, s struct{ slot int }\n")
	write("b.c", "/* ta_gone, ta_here */ int ta_here; // c.go\n")
	s, err := readSources(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"a.go: makeRoom", "a.go: old.go", "a.go: s.gone", "a.go: ta_go_x",
		"b.c: c.go", "b.c: ta_gone"}
	got := s.unknown()
	for i := range got {
		got[i] = strings.TrimPrefix(got[i], dir+"/")
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, not %q", got, want)
	}
}
