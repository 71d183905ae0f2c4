package cuda

import (
	"strings"
	"testing"

	"tieralloc/internal/testlib"
)

// TestGenesisExamples: the examples of Genesis' document, with each way of reuse, and with the
// library loaded.
func TestGenesisExamples(t *testing.T) {
	const program = "testdata/genesis_examples.py"
	for name, c := range map[string]testlib.Cmd{
		"preloaded": pythonProgram(t, true, nil, program),
		"events":    pythonProgram(t, true, []string{"TA_CUDA_REUSE=event"}, program),
		"all":       pythonProgram(t, true, []string{"TA_CUDA_SUBALLOC=all"}, program),
		"loaded":    pythonProgram(t, false, nil, program, "loaded", testlib.Lib(t)),
	} {
		t.Run(name, func(t *testing.T) {
			c.Env = append(c.Env, "FAKE_MEMORY=0x200000000")
			r := testlib.Run(t, c)
			clean(t, r)
			if !strings.HasPrefix(r.Stdout,
				"Cache hit rate: 0.00%\nMemory efficiency: 0.00%\nTotal allocations: 100\nPeak "+
					"memory: 0.37 GB\n") ||
				!strings.Contains(r.Stdout,
					"Warning: Potential memory leak "+
						"detected\nThread,Action,Pointer,Size,Stream\n") ||
				!strings.HasSuffix(r.Stdout, "ok\n") {
				t.Errorf("stdout %q", clip(r.Stdout))
			}
		})
	}
}

// TestGenesisMessages: what its manager says of what is not right.
func TestGenesisMessages(t *testing.T) {
	const program = "testdata/genesis_messages.py"
	none := "LD_LIBRARY_PATH=" + t.TempDir()
	for name, c := range map[string]testlib.Cmd{
		"no library":     pythonProgram(t, false, nil, program, "no_library"),
		"no driver":      pythonProgram(t, true, []string{none}, program, "no_driver"),
		"no device":      pythonProgram(t, true, nil, program, "no_device"),
		"no such device": pythonProgram(t, true, nil, program, "no_such_device"),
		"off":            pythonProgram(t, true, []string{"TA_CUDA=0"}, program, "off"),
		"frees":          pythonProgram(t, true, nil, program, "frees"),
		"frees, events":  pythonProgram(t, true, []string{"TA_CUDA_REUSE=event"}, program, "frees"),
		"recording":      pythonProgram(t, true, nil, program, "recording"),
	} {
		t.Run(name, func(t *testing.T) { says(t, c) })
	}
}

// TestGenesisVariables: GENESIS_CUDA_… are read in their own units where ours are not set, and each
// is one line.
func TestGenesisVariables(t *testing.T) {
	const (
		program = "testdata/genesis_messages.py"
		noLimit = "9223372036854775808"
		most    = "tieralloc: GENESIS_CUDA_CACHE_SIZE=1000 is used (a number of blocks); " +
			"tieralloc's variable is TA_CUDA_CACHE_LIMIT, which is in bytes\n"
	)
	for name, c := range map[string]struct {
		env    []string
		want   []string
		stderr string
	}{
		"none": {nil, []string{"20971520", noLimit, "0", "1"}, ""},
		"all": {[]string{"GENESIS_CUDA_SEGMENT_SIZE=1073741824", "GENESIS_CUDA_CACHE_SIZE=1000",
			"GENESIS_CUDA_WARMUP_ENABLED=true",
			"GENESIS_CUDA_STATS_ENABLED=true"}, []string{"1073741824", "1000", "1", "1"},
			"tieralloc: GENESIS_CUDA_SEGMENT_SIZE=1073741824 is used (bytes, from 2 MiB to 64 " +
				"GiB in steps of 2 MiB);" +
				" tieralloc's variable is TA_CUDA_SEGMENT_SIZE, which takes K, M and G\n" + most +
				"tieralloc: GENESIS_CUDA_WARMUP_ENABLED=true is used (true or false); " +
				"tieralloc's variable is TA_CUDA_WARMUP," +
				" which lists what is warmed, as in 4K:50,1M:10\n" +
				"tieralloc: GENESIS_CUDA_STATS_ENABLED=true is used (true or false); tieralloc's " +
				"variable is TA_CUDA_TRACE," +
				" which is a file that all allocations are written to\n"},
		"ours": {[]string{"GENESIS_CUDA_SEGMENT_SIZE=1073741824", "TA_CUDA_SEGMENT_SIZE=4M",
			"GENESIS_CUDA_CACHE_SIZE=1000"},
			[]string{"4194304", "1000", "0", "1"}, most},
		"no warm-up": {[]string{"GENESIS_CUDA_WARMUP_ENABLED=False"},
			[]string{"20971520", noLimit, "0", "0"},
			"tieralloc: GENESIS_CUDA_WARMUP_ENABLED=False is used (true or false); tieralloc's " +
				"variable is TA_CUDA_WARMUP," +
				" which lists what is warmed, as in 4K:50,1M:10\n"},
		"wrong": {[]string{"GENESIS_CUDA_SEGMENT_SIZE=1G", "GENESIS_CUDA_CACHE_SIZE=-1",
			"GENESIS_CUDA_WARMUP_ENABLED=2", "GENESIS_CUDA_STATS_ENABLED="},
			[]string{"20971520", noLimit, "0", "1"},
			"tieralloc: GENESIS_CUDA_SEGMENT_SIZE=1G: expected bytes, from 2 MiB to 64 GiB in " +
				"steps of 2 MiB; it is not used\n" +
				"tieralloc: GENESIS_CUDA_CACHE_SIZE=-1: expected a number of blocks; it is not " +
				"used\n" +
				"tieralloc: GENESIS_CUDA_WARMUP_ENABLED=2: expected true or false; it is not " +
				"used\n" +
				"tieralloc: GENESIS_CUDA_STATS_ENABLED=: expected true or false; it is not used\n"},
	} {
		t.Run(name, func(t *testing.T) {
			r := testlib.Run(t, pythonProgram(t, true, c.env,
				append([]string{program, "variables"}, c.want...)...))
			if r.Status != 0 || r.Stdout != "ok\n" || r.Stderr != c.stderr {
				t.Errorf("status %d, stdout %q\nstderr %s\nwant %s", r.Status, r.Stdout, r.Stderr,
					c.stderr)
			}
		})
	}
}
