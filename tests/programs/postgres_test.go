package programs

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tieralloc/internal/testlib"
)

// postgres is a cluster in one site, run by a user other than root, since the
// server refuses root.
type postgres struct {
	*site
	bin string
}

// postgresBin finds the server's own folder: the programs in PATH may be
// scripts that choose a cluster of the system's.
func postgresBin(t *testing.T) string {
	t.Helper()
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/pgbench")
	if len(found) > 0 {
		return filepath.Dir(found[len(found)-1])
	}
	path, err := exec.LookPath("pgbench")
	if err == nil {
		_, err = os.Stat(filepath.Join(filepath.Dir(path), "initdb"))
	}
	if err != nil {
		testlib.Lacks(t, "postgresql with pgbench")
	}
	return filepath.Dir(path)
}

func (p *postgres) do(stdin, name string, args ...string) string {
	p.t.Helper()
	return p.run(stdin, append([]string{filepath.Join(p.bin, name)}, args...)...)
}

// start begins a server that no other process changes data behind: without
// autovacuum and with the checkpoints that the test asks for.
func (p *postgres) start() {
	p.t.Helper()
	p.do("", "pg_ctl", "-D", "data", "-l", "log", "-w", "-s", "-o",
		"-k "+p.dir+" -c listen_addresses= -c fsync=off -c autovacuum=off -c shared_buffers=64MB "+
			"-c max_parallel_workers_per_gather=2"+
			" -c min_parallel_table_scan_size=0 -c parallel_setup_cost=0 -c parallel_tuple_cost=0",
		"start")
	p.t.Cleanup(func() {
		// Only a test that has failed leaves the server running.
		stop := append(append([]string{}, p.user...), filepath.Join(p.bin, "pg_ctl"), "-D",
			filepath.Join(p.dir, "data"), "-m", "immediate", "stop")
		exec.Command(stop[0], stop[1:]...).Run()
	})
}

const queries = `
\pset format unaligned
SELECT count(*), sum(abalance), sum(bid * aid::bigint) FROM pgbench_accounts;
SELECT aid % 10 AS k, count(*), string_agg(aid::text, ',' ORDER BY aid) FILTER (WHERE aid < 200)
	FROM pgbench_accounts GROUP BY k ORDER BY k;
SET work_mem = '64kB';
SELECT md5(string_agg(aid::text, ' ')) FROM (SELECT aid FROM pgbench_accounts
	ORDER BY md5(aid::text)) AS s;
SELECT count(*) FROM pgbench_accounts a JOIN pgbench_accounts b ON a.aid = b.aid * 2;
SELECT json_agg(row_to_json(t)) FROM (SELECT tid, bid, lag(tid) OVER (ORDER BY tid)
	FROM pgbench_tellers) AS t;
DO $$ DECLARE s text := ''; BEGIN FOR i IN 1..3000 LOOP s := s || i::text; END LOOP;
	RAISE NOTICE '%', md5(s); END $$;
SELECT regexp_replace(repeat('abc123', 2000), '[0-9]+', '-', 'g') = repeat('abc-', 2000);
WITH RECURSIVE n(i, s) AS (SELECT 1, '1' UNION ALL SELECT i + 1, s || i FROM n WHERE i < 500)
	SELECT md5(string_agg(s, '')) FROM n;
SET max_parallel_workers_per_gather = 0;
SELECT 1 / (tid - tid) FROM pgbench_tellers;
`

// postgresRun returns what the clients print that must not differ: the text of
// initdb, a dump after a fixed series of transactions, and answers to queries; and the server's
// faults.
func postgresRun(t *testing.T, bin string, preload bool) (out, faults []string) {
	p := &postgres{newSite(t, preload), bin}
	p.own()
	first := p.do("", "initdb", "-D", "data", "-U", "me", "-A", "trust", "-E", "UTF8", "--locale=C",
		"--no-sync", "--no-instructions")
	p.start()
	p.env = append(append([]string{}, p.env...), "PGHOST="+p.dir, "PGUSER=me",
		"PGDATABASE=postgres", "PGTZ=UTC")
	p.do("", "pgbench", "-i", "-s", "1", "-q")
	answer := p.do("", "pgbench", "-n", "-c", "1", "-t", "400", "--random-seed=42")
	if !strings.Contains(answer, "actually processed: 400/400") {
		t.Errorf("pgbench: %s", answer)
	}
	// A multi-client run in which no order of events can change the data.
	answer = p.do("", "pgbench", "-n", "-S", "-c", "6", "-j", "2", "-t", "400", "-M", "prepared")
	if !strings.Contains(answer, "actually processed: 2400/2400") {
		t.Errorf("pgbench -S: %s", answer)
	}
	// CLUSTER puts the rows in the order of their keys, and so the dump.
	p.do("CLUSTER pgbench_accounts USING pgbench_accounts_pkey; CLUSTER pgbench_branches USING "+
		"pgbench_branches_pkey;"+
		"CLUSTER pgbench_tellers USING pgbench_tellers_pkey; VACUUM ANALYZE; CHECKPOINT;", "psql",
		"-q", "-v", "ON_ERROR_STOP=1")
	dump := []string{"-t", "pgbench_accounts", "-t", "pgbench_branches", "-t", "pgbench_tellers"}
	if strings.Contains(p.do("", "pg_dump", "--help"), "--restrict-key") {
		dump = append(dump, "--restrict-key=fixed") // random by default
	}
	out = []string{first, p.do("", "pg_dump", dump...), p.do(queries, "psql", "-X")}
	p.do("", "pg_ctl", "-D", "data", "-m", "fast", "-w", "-s", "stop")
	if preload {
		checkStats(t, p.stats, "postgres", "initdb", "psql")
	}
	return out, p.faults("log", "PANIC", "terminated by signal", "WARNING")
}

func TestPostgres(t *testing.T) {
	bin := postgresBin(t)
	testlib.Need(t, "setpriv")
	plain, plainFaults := postgresRun(t, bin, false)
	preloaded, faults := postgresRun(t, bin, true)
	sameFaults(t, plainFaults, faults)
	for i, what := range []string{"initdb", "pg_dump", "psql"} {
		compareText(t, what, plain[i], preloaded[i])
	}
	if !strings.Contains(plain[1], "COPY public.pgbench_accounts") || len(plain[1]) < 1<<20 {
		t.Errorf("the dump is too short: %s", clip(plain[1]))
	}
}
