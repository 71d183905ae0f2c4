package tiers_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tieralloc/internal/testlib"
)

// policies are settings under which programs must behave as without the library.
// used says whether a report shows that the setting has done something.
var policies = []struct {
	name string
	env  []string
	used func(r *report) bool
}{
	{"reroute", []string{"TA_NORMAL_SOFT=256K", "TA_SLOW_SOFT=1M"},
		func(r *report) bool { return r.Tiers.Normal.Rerouted > 0 && r.Tiers.Slow.AllocCalls > 0 }},
	{"demote", []string{"TA_NORMAL_SOFT=256K", "TA_ON_SOFTCAP=demote", "TA_MIGRATE_BW=0"},
		func(r *report) bool { return r.Tiers.Normal.Migrations.Moved > 0 }},
	{"hard", []string{"TA_NORMAL_HARD=512K", "TA_DEFAULT_HINT=hot", "TA_FAST_HARD=1M",
		"TA_PURGE_DELAY=0"},
		func(r *report) bool {
			return r.Tiers.Fast.RoutedSlow > 0 &&
				r.Tiers.Normal.Peak <= 512*kib
		}},
	{"rules", []string{"TA_RULES=size>=64K:cold;lib=libc.so*,size<200:hot;lib=libstdc*:prefer_fast;thread=none:pin_fast;size=300-301:hot"},
		func(r *report) bool { return r.Tiers.Fast.AllocCalls > 0 || r.Tiers.Slow.AllocCalls > 0 }},
	{"account", []string{"TA_FAST_LAT=1us", "TA_NORMAL_LAT=300ns", "TA_NORMAL_BW=100M",
		"TA_SLOW_BW=1M"},
		func(r *report) bool { return r.Tiers.Normal.WaitNs > 1000 && r.Tiers.Normal.Sleeps == 0 }},
	{"all", []string{"TA_NORMAL_SOFT=1M", "TA_NORMAL_HARD=3M", "TA_ON_SOFTCAP=demote",
		"TA_SLOW_SOFT=2M", "TA_FAST_SOFT=512K", "TA_FAST_HARD=1M",
		"TA_RULES=size<100:hot;size=1000-5000:prefer_fast", "TA_SLOW_LAT=100ns",
		"TA_HUGEPAGES=slow:thp", "TA_PURGE_DELAY=5ms"},
		func(r *report) bool { return r.Tiers.Fast.AllocCalls > 0 }},
}

const pythonText = `
import hashlib, json, threading, zlib, multiprocessing
def work(k, out):
    d = {i: [str(i * k)] * (i % 50) for i in range(4000)}
    b = zlib.compress(json.dumps(d).encode() * 3)
    out[k] = hashlib.md5(zlib.decompress(b) + bytearray(200000 + k)).hexdigest()
def part(n):
    return sum(len(str(i) * n) for i in range(20000))
out = {}
threads = [threading.Thread(target=work, args=(k, out)) for k in range(4)]
[t.start() for t in threads]; [t.join() for t in threads]
with multiprocessing.get_context("fork").Pool(2) as p:
    print(sorted(out.items()), p.map(part, range(4)))
try:
    print(len("x" * 10**15))
except MemoryError:
    print("MemoryError")
`

const perlText = `my (%h, @a); for my $i (1..40000) { $h{"k$i"} = "v" x ($i % 90);
	push @a, $i * 7 % 1009; }
delete $h{"k$_"} for grep { $_ % 3 } 1..40000; my $s = join ",", sort { $a <=> $b } @a;
print length($s), " ", scalar(keys %h), " ", unpack("%32C*", join("", map { "$_$h{$_}" } sort keys %h)), "\n";`

const cText = `#include <stdio.h>
#include <string.h>
struct s { int a[20]; const char *name; };
#define F(n) static long f##n(struct s *p, int k) { \
	long t = 0; \
	for (int i = 0; i < 20; i++) \
		t += p->a[i] * k + n; \
	return t + (long)strlen(p->name); }
F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8) F(9)
int main(void) {
	struct s x = {{1, 2, 3}, "text"};
	printf("%ld\n", f1(&x, 2) + f2(&x, 3) + f3(&x, 4) + f4(&x, 5) + f5(&x, 6) + f6(&x, 7) +
		f7(&x, 8) + f8(&x, 9) + f9(&x, 1));
	return 0;
}
`

// TestPrograms: real programs print the same under every policy.
func TestPrograms(t *testing.T) {
	for _, p := range []struct {
		name, report string // the program whose report is looked at
		args         []string
		stdin        string
	}{
		{"python", "python3", []string{"/usr/bin/python3", "-c", pythonText}, ""},
		{"perl", "perl", []string{"perl", "-e", perlText}, ""},
		{"gcc", "cc1", []string{"bash", "-c",
			"gcc -O2 -x c -frandom-seed=1 -o prog - && md5sum prog && ./prog"}, cText},
		{"sort", "sort", []string{"bash", "-c",
			"seq 1 60000 | rev | sort -S 4M --parallel=3 | md5sum; seq 1 60000 | awk '{s[$1 % " +
				"977] = s[$1 % 977] $1} END {for (i = 0; i < 977; i++) print s[i]}' | " +
				"sha1sum"}, ""},
	} {
		t.Run(p.name, func(t *testing.T) {
			testlib.Need(t, p.args[0])
			dir := t.TempDir()
			plain := testlib.Run(t, testlib.Cmd{Args: p.args, Env: quiet, Dir: dir, Stdin: p.stdin})
			if plain.Status != 0 || plain.Stdout == "" {
				t.Fatalf("plain: %+v", plain)
			}
			for _, policy := range policies {
				t.Run(policy.name, func(t *testing.T) {
					// The pages of processes that were killed stay, so they are in a folder
					// that goes with the test.
					stats, pages := t.TempDir(), t.TempDir()
					c := cmd(append([]string{"TA_STATS_FILE=" + stats + "/%e.%p.json",
						"TA_STATS_LIVE=" + pages + "/%p"}, policy.env...), p.args...)
					c.Dir, c.Stdin = dir, p.stdin
					if r := testlib.Run(t, c); r != plain {
						t.Errorf("plain: %+v\nnow: %+v", clipped(plain), clipped(r))
					}
					looked(t, stats, p.report, policy.used)
				})
			}
		})
	}
}

func clipped(r testlib.Result) testlib.Result {
	r.Stdout, r.Stderr = clip(r.Stdout), clip(r.Stderr)
	return r
}

// looked checks the reports in a folder, but not what a process that was killed had
// begun to write. At least one of the named program must show
// that the policy was used.
func looked(t *testing.T, dir, program string, used func(*report) bool) {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(dir, "*.json"))
	shown := 0
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		r := valid(t, text)
		if strings.HasPrefix(filepath.Base(f), program) && used(&r) {
			shown++
		}
	}
	if shown == 0 {
		t.Errorf("no report of %s among %d shows that the policy was used", program, len(files))
	}
}

// redisCommands fill a server with values of many sizes.
func redisCommands() string {
	var s strings.Builder
	for i := range 12000 {
		v := strings.Repeat("v", 1+i*i%(1<<(i%12)))
		switch i % 5 {
		case 0:
			fmt.Fprintf(&s, "SET s%d %s\n", i*7%3000, v)
		case 1:
			fmt.Fprintf(&s, "APPEND s%d %s\n", i*11%3000, v)
		case 2:
			fmt.Fprintf(&s, "HSET h%d f%d %s\n", i%100, i, v)
		case 3:
			fmt.Fprintf(&s, "RPUSH l%d %s\n", i%50, v)
		case 4:
			fmt.Fprintf(&s, "DEL s%d l%d\n", i*13%3000, i%500)
		}
	}
	return s.String()
}

// redisDigest runs a server for fixed commands, has it save its data from a forked
// child and load them again, and returns their digest.
func redisDigest(t *testing.T, env []string, preload bool) string {
	t.Helper()
	dir, stats := t.TempDir(), t.TempDir()
	socket := filepath.Join(dir, "s")
	server := exec.Command("redis-server", "--port", "0", "--unixsocket", socket, "--dir", dir,
		"--save", "", "--enable-debug-command", "yes",
		"--logfile", filepath.Join(dir, "log"))
	server.Env = append(append(os.Environ(), quiet...), env...)
	if preload {
		server.Env = append(server.Env, "LD_PRELOAD="+testlib.Lib(t),
			"TA_STATS_FILE="+stats+"/%e.%p.json")
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer server.Process.Kill()
	cli := func(stdin string, args ...string) string {
		c := exec.Command("redis-cli", append([]string{"-s", socket}, args...)...)
		c.Stdin = strings.NewReader(stdin)
		out, _ := c.CombinedOutput()
		return strings.TrimSpace(string(out))
	}
	testlib.Wait(t, "redis-server", server.Process,
		func() bool { return cli("", "PING") == "PONG" })
	if out := cli(redisCommands(), "--pipe"); !strings.Contains(out, "errors: 0, replies: 12000") {
		t.Fatal(out)
	}
	digest := cli("", "DEBUG", "DIGEST")
	cli("", "BGSAVE")
	testlib.Wait(t, "BGSAVE", server.Process,
		func() bool {
			return strings.Contains(cli("", "INFO", "persistence"),
				"rdb_bgsave_in_progress:0")
		})
	if info := cli("", "INFO", "persistence"); !strings.Contains(info,
		"rdb_last_bgsave_status:ok") {
		t.Error(info)
	}
	cli("", "DEBUG", "RELOAD")
	if again := cli("", "DEBUG", "DIGEST"); again != digest {
		t.Errorf("digest %s became %s", digest, again)
	}
	cli("", "SHUTDOWN", "NOSAVE")
	if err := testlib.End(server); err != nil {
		t.Error(err)
	}
	if preload {
		looked(t, stats, "redis-server",
			func(r *report) bool { return r.Tiers.Fast.Migrations.Moved > 0 })
	}
	return digest
}

// TestRedis: a server's data are the same with most of its memory demoted and rules
// for its threads.
func TestRedis(t *testing.T) {
	testlib.Need(t, "redis-server", "redis-cli")
	env := []string{"TA_DEFAULT_HINT=prefer_fast", "TA_FAST_SOFT=2M", "TA_ON_SOFTCAP=demote",
		"TA_MIGRATE_BW=0", "TA_NORMAL_HARD=24M",
		"TA_RULES=thread=bio_*:cold;size>=1M:cold", "TA_SLOW_LAT=50ns"}
	plain := redisDigest(t, nil, false)
	if now := redisDigest(t, env, true); now != plain {
		t.Errorf("digest %s, plain %s", now, plain)
	}
}
