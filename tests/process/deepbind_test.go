package process

import (
	"strings"
	"testing"

	"tieralloc/internal/testlib"
)

// TestDeepBindWrapped: a library that wraps malloc in front of ours, and one that wraps dlopen and
// its like behind it, are called as before, and go on to the next one and not back.
func TestDeepBindWrapped(t *testing.T) {
	t.Parallel()
	prog := testlib.CC(t, "deepbind.c", "-ldl", "-rdynamic")
	libs := "LIBS=" + testlib.CC(t, "deepplugin.c", "-shared", "-fPIC") + ":" +
		testlib.CC(t, "deepown.c", "-shared", "-fPIC")
	mallocs := testlib.CC(t, "wrapper.c", "-shared", "-fPIC", "-ldl")
	others := testlib.CC(t, "wrapdl.c", "-shared", "-fPIC", "-ldl")
	for _, preload := range []string{mallocs + " " + testlib.Lib(t), testlib.Lib(t) + " " + mallocs,
		others + " " + testlib.Lib(t), testlib.Lib(t) + " " + others} {
		for _, name := range []string{"now", "lazy", "again", "dlmopen", "threads"} {
			clean(t, with(t, preload, []string{libs}, prog, name))
		}
	}
}

// TestDeepBind: libraries opened with RTLD_DEEPBIND, which look into libc before they look at us,
// get and give back the same blocks as all others.
func TestDeepBind(t *testing.T) {
	t.Parallel()
	prog := testlib.CC(t, "deepbind.c", "-ldl", "-rdynamic")
	libs := "LIBS=" + testlib.CC(t, "deepplugin.c", "-shared", "-fPIC") + ":" +
		testlib.CC(t, "deepown.c", "-shared", "-fPIC")
	audit := "LD_AUDIT=" + testlib.CC(t, "audit.c", "-shared", "-fPIC")
	for _, name := range []string{"now", "lazy", "again", "dlmopen", "namespace", "own", "by name",
		"threads", "refused"} {
		// Without the library its settings make no difference.
		for _, env := range []string{"A=", audit} {
			if r := testlib.Run(t, testlib.Cmd{Args: []string{prog, name},
				Env: append(append([]string{}, quiet...), libs, env)}); r.Status != 0 {
				t.Fatalf("%s, plain with %s: %+v", name, env, r)
			}
		}
		for _, env := range []string{"A=", "TA_SECURE=1", "TA_DISABLE=1", "TA_INTERPOSE=0", audit} {
			setting, _, _ := strings.Cut(env, "=")
			t.Run(name+"/"+setting, func(t *testing.T) {
				clean(t, preloaded(t, []string{libs, env}, prog, name))
			})
		}
	}
}
