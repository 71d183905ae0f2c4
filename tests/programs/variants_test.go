package programs

import "testing"

// TestVariants runs the cheap tables again under settings that change how a
// program is loaded or what its fresh memory holds. LD_BIND_NOW=1 resolves
// every symbol at the start: a library with an unresolved one makes it fail.
func TestVariants(t *testing.T) {
	for _, env := range []string{"LD_BIND_NOW=1", "MALLOC_PERTURB_=85"} {
		runAll(t, withEnv(shellPrograms(), env))
		runAll(t, withEnv(processPrograms(), env))
	}
	runAll(t, withEnv(shellPrograms(), "LC_ALL=C.UTF-8"))
	small := []program{
		{name: "perl", args: []string{"perl", "@work.pl"}, status: 255},
		{name: "node", args: []string{"node", "@work.js"}, status: 4},
		pythonProgram(pythons(t)[0], "data.py"),
	}
	runAll(t, withEnv(small, "LD_BIND_NOW=1"))
	runAll(t, withEnv(small, "MALLOC_PERTURB_=85"))
	runAll(t, withEnv(small, "TA_SECURE=1"))
	runAll(t, withEnv(shellPrograms(), "TA_SECURE=1"))
	runAll(t, withEnv(processPrograms(), "TA_SECURE=1"))
}
