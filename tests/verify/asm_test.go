package verify

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// asmSins are the exports of testdata/sins.S and what the report must say.
var asmSins = map[string]string{
	"ta_go_call_reg":      "indirect call",
	"ta_go_call_mem":      "indirect call",
	"ta_go_jump_reg":      "not the form of a jump table",
	"ta_go_jump_mem":      "not the form of a jump table",
	"ta_go_jump_slot":     "not the form of a jump table",
	"ta_go_table_outside": "entry 1 of _cgoexp_0_ta_go_table_outside.jump1 lies outside",
	"ta_go_table_foreign": "no jump table of the function",
	"ta_go_table_changed": "not loaded with a table's address",
	"ta_go_plt":           "leaves Go (C code or a PLT stub): call",
	"ta_go_c":             "leaves Go (C code or a PLT stub): call",
	"ta_go_c_jump":        "leaves Go (C code or a PLT stub): jmp",
	"ta_go_middle":        "enters main.callee in the middle, at +0x1",
	"ta_go_branch":        "reaches runtime.newobject",
	"ta_go_dead_code":     "reaches runtime.deferreturn",
	"ta_go_fs":            "thread-local access",
	"ta_go_gs":            "thread-local access",
	"ta_go_fsbase":        "thread-local access",
	"ta_go_g_field":       "uses g other than its stackguard0",
	"ta_go_g_copy":        "uses g other than its stackguard0",
	"ta_go_syscall":       "system call outside",
	"ta_go_rsp_mov":       "the stack depth cannot be bounded",
	"ta_go_rsp_and":       "the stack depth cannot be bounded",
	"ta_go_rsp_sub_reg":   "the stack depth cannot be bounded",
	"ta_go_rsp_pop":       "the stack depth cannot be bounded",
	"ta_go_rsp_xchg":      "the stack depth cannot be bounded",
	"ta_go_rsp_leave":     "the stack depth cannot be bounded",
	"ta_go_unbalanced":    "returns with 8 bytes still on the stack",
	"ta_go_push_loop":     "stack depth differs",
	"ta_go_deep_lea":      "needs 4104 bytes of stack, more than 4096",
	"ta_go_deep_call":     "needs 4104 bytes of stack, more than 4096",
	"ta_go_past_end":      "runs past the end",
}

// asmClean are those that must pass, with the depth that must be found: what
// they push, each call, and the gate's own call.
var asmClean = map[string]int64{
	"ta_go_ok":       8 + 0x80 + 0x40 + 8 + 8 + 8,
	"ta_go_ok_limit": StackLimit,
}

func assemble(t *testing.T) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "sins.so")
	cmd := exec.Command("gcc", "-shared", "-nostdlib",
		"-Wl,-z,notext,-z,execstack,--default-symver,--no-warnings",
		"-o", out, filepath.Join("testdata", "sins.S"))
	if msg, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd.Args, err, msg)
	}
	return out
}

// TestAsmSins: each is found, each with exactly one violation, and what is
// allowed passes.
func TestAsmSins(t *testing.T) {
	img, err := Load(assemble(t))
	if err != nil {
		t.Fatal(err)
	}
	rules := &Rules{Own: func(pkg string) bool { return pkg == "main" }}
	for name, entry := range img.Exports() {
		want, sin := asmSins[name]
		res := Walk(img, rules, []*Func{entry})
		switch {
		case asmClean[name] > 0:
			for _, v := range res.Violations {
				t.Errorf("%s: %v", name, v)
			}
			if res.Depth != asmClean[name] {
				t.Errorf("%s: depth %d, want %d: %v", name, res.Depth, asmClean[name],
					res.DepthPath)
			}
		case !sin:
			t.Errorf("%s of sins.S is not listed", name)
		case len(res.Violations) != 1 || !strings.Contains(res.Violations[0].What, want):
			t.Errorf("%s: want one violation that says %q, got %v", name, want, res.Violations)
		}
	}
	if n, want := len(img.Exports()), len(asmSins)+len(asmClean); n != want {
		t.Errorf("sins.S has %d exports, want %d", n, want)
	}
}

// TestIndirectList: an annotated function may call and jump indirectly.
func TestIndirectList(t *testing.T) {
	img, err := Load(assemble(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ta_go_call_reg", "ta_go_jump_mem"} {
		entry := img.Exports()[name]
		rules := &Rules{Own: func(string) bool { return false },
			Indirect: map[string]string{entry.Name: "a test"}}
		if res := Walk(img, rules, []*Func{entry}); len(res.Violations) > 0 {
			t.Errorf("%s: %v", name, res.Violations)
		}
	}
}

// TestDynamicSins: each breach on the dynamic side is found.
func TestDynamicSins(t *testing.T) {
	d, err := ReadDynamic(assemble(t))
	if err != nil {
		t.Fatal(err)
	}
	d.Versions["GLIBC_2.36"] = []string{"arc4random"}
	d.Versions["GLIBC_2.2.5"] = []string{"malloc"}
	breaches := d.Check([]string{"malloc"})
	for _, want := range []string{
		"does not define malloc",
		"defines stray, which is not on the list",
		"needs nvmlInit_v2",
		"needs GLIBC_2.36 for [arc4random]",
		"text relocations",
		"executable stack",
		"both writable and executable",
		"defines symbol versions",
	} {
		if !slices.ContainsFunc(breaches, func(b string) bool {
			return strings.Contains(b,
				want)
		}) {
			t.Errorf("not reported: %s\nreported: %v", want, breaches)
		}
	}
}

// TestDynamicClean: a list that fits is accepted, and Go's own build has none
// of the other faults.
func TestDynamicClean(t *testing.T) {
	path, err := fixture()
	if err != nil {
		t.Fatal(err)
	}
	d, err := ReadDynamic(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range d.Check(d.Defined) {
		t.Error(b)
	}
	if b := d.Check(nil); len(b) < len(d.Defined) {
		t.Errorf("an empty list: %d breaches for %d symbols", len(b), len(d.Defined))
	}
}
