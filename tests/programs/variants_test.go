package programs

import "testing"

// TestVariants runs the cheap tables again under settings that change how a program is loaded, what
// it allocates, or its heap. LD_BIND_NOW=1 resolves every symbol at the start: a library with an
// unresolved one makes it fail.
func TestVariants(t *testing.T) {
	small := []program{
		{name: "perl", args: []string{"perl", "@work.pl"}, status: 255},
		{name: "node", args: []string{"node", "@work.js"}, status: 4},
		pythonProgram(pythons(t)[0], "data.py"),
	}
	for _, env := range []string{"LD_BIND_NOW=1", "TA_SECURE=1"} {
		runAll(t, withEnv(small, env))
		runAll(t, withEnv(processPrograms(), env))
	}
	for _, env := range []string{"LC_ALL=C.UTF-8", "TA_SECURE=1"} {
		runAll(t, withEnv(shellPrograms(), env))
	}
}
