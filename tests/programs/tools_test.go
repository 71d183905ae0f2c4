package programs

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tieralloc/internal/testlib"
)

func TestGit(t *testing.T) {
	runAll(t, []program{{name: "git", args: []string{"bash", "@git.sh"}, needs: []string{"git"}}})
}

// templates writes a C++ program that instantiates many containers.
func templates(t *testing.T, dir string) {
	t.Helper()
	var s strings.Builder
	s.WriteString("#include <algorithm>\n#include <cstdio>\n#include <functional>\n#include " +
		"<map>\n" +
		"#include <memory>\n#include <string>\n#include <unordered_map>\n#include " +
		"<variant>\n#include <vector>\n" +
		"template <int N> struct tag { int v[N + 1]; bool operator<(const tag &o) const { return " +
		"v[0] < o.v[0]; } };\n" +
		"template <int N> struct fib { static constexpr long value = fib<N - 1>::value + fib<N - " +
		"2>::value; };\n" +
		"template <> struct fib<0> { static constexpr long value = 0; };\ntemplate <> struct " +
		"fib<1> { static constexpr long value = 1; };\n")
	const parts = 6
	for i := range parts {
		fmt.Fprintf(&s, `long part%[1]d(int n) {
	std::map<std::string, tag<%[1]d>> m; std::vector<std::shared_ptr<tag<%[1]d>>> v;
		std::unordered_map<int, std::vector<tag<%[1]d>>> u;
	for (int i = 0; i < n; i++) {
		m[std::to_string(i * 7919 %% n)].v[0] = i; v.push_back(std::make_shared<tag<%[1]d>>());
			v.back()->v[0] = n - i; u[i %% 97].resize(i %% 50 + 1);
	}
	std::sort(v.begin(), v.end(), [](auto &a, auto &b) { return *a < *b; });
	std::variant<int, std::string, tag<%[1]d>> x = std::string(n, 'x');
	std::function<long(int)> f = [&](int k) { return v[k]->v[0] + (long)u[k].size() + (long)std::get<std::string>(x).size(); };
	return f(n / 2) + m.begin()->second.v[0] + fib<60 + %[1]d>::value;
}
`, i)
	}
	s.WriteString("int main() {\n\tlong sum = 0;\n")
	for i := range parts {
		fmt.Fprintf(&s, "\tsum += part%d(%d);\n", i, 2000+i)
	}
	s.WriteString("\tstd::printf(\"%ld\\n\", sum);\n\treturn 9;\n}\n")
	write(t, dir, "big.cc", s.String())
}

// TestCompilers compares what the compilers write: the assembly text, and the
// linked program, which is then run.
func TestCompilers(t *testing.T) {
	source := func(t *testing.T, dir string) {
		write(t, dir, "small.c",
			"#include <stdio.h>\n#include <stdlib.h>\nint main(void) { char *p = malloc(10); "+
				"free(p); puts(\"hello\"); return 4; }\n")
	}
	runAll(t, []program{
		{
			name: "g++", needs: []string{"g++"}, status: 9, prepare: templates,
			limit: 3 * time.Minute,
			args: []string{"bash", "-c",
				"g++ -std=c++17 -O1 -pipe -S -o big.s big.cc && md5sum big.s && g++ -o big big.s " +
					"&& md5sum big && exec ./big"},
		},
		{
			name: "g++ with an error", needs: []string{"g++"}, status: 1, prepare: templates,
			args: []string{"bash", "-c",
				"sed -i 's/std::make_shared/std::make_shard/' big.cc; LC_ALL=C exec g++ " +
					"-std=c++17 -fsyntax-only big.cc"},
		},
		{
			name: "clang++", needs: []string{"clang++"}, status: 9, prepare: templates,
			limit: 3 * time.Minute,
			args: []string{"bash", "-c",
				"clang++ -std=c++17 -O1 -S -o big.s big.cc && md5sum big.s && clang++ -o big " +
					"big.s && md5sum big && exec ./big"},
		},
		{
			name: "clang++ with an error", needs: []string{"clang++"}, status: 1,
			prepare: templates,
			args: []string{"bash", "-c",
				"sed -i 's/std::make_shared/std::make_shard/' big.cc; exec clang++ -std=c++17 " +
					"-fsyntax-only big.cc"},
		},
		{
			name: "gcc with link-time optimisation", needs: []string{"gcc"}, status: 4,
			prepare: source,
			args: []string{"bash", "-c",
				"gcc -O2 -g -flto=2 -frandom-seed=1 -c small.c && gcc -O2 -flto=2 -o small " +
					"small.o && md5sum small.o && exec ./small"},
		},
	})
}

// TestGoBuild builds a small program that uses cgo, so that gcc and ld take
// part; Go's own tools are static and run without the library. Each run has a
// build cache of its own, or the second would only copy the result of the first.
func TestGoBuild(t *testing.T) {
	source := func(t *testing.T, dir string) {
		write(t, dir, "go.mod", "module small\n\ngo 1.24\n")
		write(t, dir, "main.go",
			"package main\n\n// #include <stdlib.h>\nimport \"C\"\n\nfunc main() {\n\tp := "+
				"C.malloc(10)\n\tC.free(p)\n\tprintln(\"built by go\")\n}\n")
	}
	runAll(t, []program{{
		name: "cgo program", needs: []string{"go", "gcc"}, prepare: source, limit: 4 * time.Minute,
		env: []string{"GOFLAGS=-buildvcs=false", "GOTOOLCHAIN=local", "CGO_ENABLED=1"},
		args: []string{"bash", "-c",
			"GOCACHE=$PWD/cache go build -trimpath -o small . && md5sum small && exec ./small"},
	}})
}

// TestGoBuildItself builds this project with the library preloaded into the
// toolchain.
func TestGoBuildItself(t *testing.T) {
	testlib.Need(t, "go", "gcc")
	out, dir := filepath.Join(t.TempDir(), "lib.so"), t.TempDir()
	r := testlib.Run(t, testlib.Cmd{
		Args: []string{"go", "build", "-buildvcs=false", "-buildmode=c-shared", "-o", out, "."},
		Dir:  testlib.Root(), Preload: true, Timeout: 4 * time.Minute,
		Env: []string{"TA_STATS_FILE=" + filepath.Join(dir, "%p.%e.json")},
	})
	if r.Status != 0 {
		t.Errorf("status %d\n%s", r.Status, clip(r.Stderr))
	}
	checkStats(t, dir, "collect2") // go itself is linked statically
}

// TestFaketime has another preloaded library beside this one, which takes over the clocks, before
// it and behind it.
func TestFaketime(t *testing.T) {
	const when = "'2020-01-02 03:04:05'"
	runAll(t, []program{
		script("date", "faketime "+when+" date +%F; faketime -f '@2020-01-02 03:04:05' sh -c "+
			"'date +%F; date -r /etc/hostname +%Y | wc -c'", "faketime"),
		script("threads", "exec faketime -m "+when+` python3 -c '
import threading, time
def work(): held.append([bytes(i) for i in range(2000)]); days.append(time.strftime("%F"))
held, days = [], []
threads = [threading.Thread(target=work) for i in range(8)]
[t.start() for t in threads]; [t.join() for t in threads]
print(days)'`, "faketime", "python3"),
		script("behind", `file=$(faketime `+when+` sh -c 'echo "$LD_PRELOAD"' | tr : '\n' |
			grep faketime)
			LD_PRELOAD=${LD_PRELOAD:+$LD_PRELOAD:}$file FAKETIME='@2020-01-02 03:04:05' date +%F`, "faketime"),
	})
}

// TestFFmpeg makes, codes and decodes pictures and sound on two threads.
func TestFFmpeg(t *testing.T) {
	runAll(t, []program{script("ffmpeg", `f() { ffmpeg -nostdin -hide_banner -loglevel error -y -threads 2 "$@"; }
		f -f lavfi -i testsrc=duration=2:size=320x240:rate=15 -f lavfi -i sine=frequency=440:duration=2 -c:v libx264 -threads 2 -c:a aac -bitexact a.mkv
		f -i a.mkv -vf 'scale=160:120,hflip' -c:v mpeg4 -threads 2 -c:a pcm_s16le -bitexact b.avi
		f -i b.avi -f framemd5 -; f -i nothing.mkv -f null - 2>errors && exit
		sed 's/@ 0x[0-9a-f]*//' errors >&2; exit 1`, "ffmpeg").with("", 1)})
}
