package programs

import (
	"fmt"
	"math/rand"
	"os/exec"
	"strings"
	"testing"

	"tieralloc/internal/testlib"
)

// redis is one server with its data in one site.
type redis struct {
	*site
	server *exec.Cmd
}

func startRedis(s *site) *redis {
	s.t.Helper()
	r := &redis{site: s}
	r.server = s.start("log", "redis-server", "--port", "0", "--unixsocket", "socket", "--dir",
		s.dir,
		"--save", "", "--appendonly", "no", "--enable-debug-command", "yes", "--io-threads", "2",
		"--activedefrag", "no")
	testlib.Wait(s.t, "an answer", r.server.Process, func() bool {
		cmd := exec.Command("redis-cli", "-s", "socket", "PING")
		cmd.Dir = s.dir
		out, _ := cmd.Output()
		return strings.TrimSpace(string(out)) == "PONG"
	})
	return r
}

func (r *redis) cli(args ...string) string {
	r.t.Helper()
	return r.run("", append([]string{"redis-cli", "-s", "socket"}, args...)...)
}

// save makes the server fork a child that writes the data, and waits for it.
func (r *redis) save() {
	r.t.Helper()
	r.cli("BGSAVE")
	testlib.Wait(r.t, "BGSAVE", r.server.Process,
		func() bool {
			return strings.Contains(r.cli("INFO", "persistence"),
				"rdb_bgsave_in_progress:0")
		})
	if !strings.Contains(r.cli("INFO", "persistence"), "rdb_last_bgsave_status:ok") {
		r.t.Fatalf("BGSAVE failed\n%s", clip(r.log("log")))
	}
}

func (r *redis) shutdown() {
	r.t.Helper()
	// The server closes the connection before it answers, so redis-cli's own
	// status means nothing here.
	cmd := exec.Command("redis-cli", "-s", "socket", "SHUTDOWN", "NOSAVE")
	cmd.Dir = r.dir
	cmd.Run()
	if err := testlib.End(r.server); err != nil {
		r.t.Errorf("redis-server: %v\n%s", err, clip(r.log("log")))
	}
}

// redisCommands is a fixed mixture of types and sizes, with deletions between.
func redisCommands() string {
	random := rand.New(rand.NewSource(7))
	var s strings.Builder
	for i := range 60000 {
		k, v := random.Intn(9000), strings.Repeat("v", 1+random.Intn(1<<random.Intn(11)))
		switch random.Intn(9) {
		case 0, 1:
			fmt.Fprintf(&s, "SET s%d %s%d\n", k, v, i)
		case 2:
			fmt.Fprintf(&s, "APPEND s%d %s\n", k, v)
		case 3:
			fmt.Fprintf(&s, "HSET h%d f%d %s\n", k%300, k, v)
		case 4:
			fmt.Fprintf(&s, "ZADD z%d %d m%d\n", k%200, i, k)
		case 5:
			fmt.Fprintf(&s, "RPUSH l%d %s\n", k%250, v)
		case 6:
			fmt.Fprintf(&s, "SADD t%d %d\n", k%150, i%700)
		case 7:
			fmt.Fprintf(&s, "XADD x%d %d-1 f %s\n", k%20, i+1, v)
		case 8:
			fmt.Fprintf(&s, "DEL s%d l%d h%d\n", k, k%2500, k%3000)
		}
	}
	return s.String()
}

// redisRun returns the digest of the data after fixed commands. On the way the
// data is saved under load, saved again, and loaded by a second server.
func redisRun(t *testing.T, preload bool) string {
	s := newSite(t, preload)
	r := startRedis(s)
	answer := r.run(redisCommands(), "redis-cli", "-s", "socket", "--pipe")
	if !strings.Contains(answer, "errors: 0, replies: 60000") {
		t.Fatalf("redis-cli --pipe: %s", answer)
	}
	digest := r.cli("DEBUG", "DIGEST")

	bench := s.start("bench", "redis-benchmark", "-s", "socket", "--dbnum", "1", "-q", "-n",
		"15000", "-c", "20", "-d", "300", "-r", "5000",
		"-t", "set,get,incr,lpush,rpop,sadd,hset,zadd,lrange_100,mset")
	r.save()
	if err := testlib.End(bench); err != nil {
		t.Fatalf("redis-benchmark: %v\n%s", err, clip(r.log("bench")))
	}
	r.cli("-n", "1", "FLUSHDB", "ASYNC")
	if now := r.cli("DEBUG", "DIGEST"); now != digest {
		t.Errorf("digest %s became %s under load", digest, now)
	}
	r.cli("DEBUG", "RELOAD")
	r.save()
	r.shutdown()

	r = startRedis(s)
	if now := r.cli("DEBUG", "DIGEST"); now != digest {
		t.Errorf("digest %s became %s by BGSAVE and a new server", digest, now)
	}
	r.shutdown()
	if preload {
		checkStats(t, s.stats, "redis-server", "redis-benchmark")
	}
	return digest
}

func TestRedis(t *testing.T) {
	testlib.Need(t, "redis-server", "redis-cli", "redis-benchmark")
	plain := redisRun(t, false)
	if preloaded := redisRun(t, true); preloaded != plain {
		t.Errorf("digest: plain %s, preloaded %s", plain, preloaded)
	}
}
