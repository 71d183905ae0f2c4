package programs

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"tieralloc/internal/testlib"
)

const mariadbTables = `CREATE DATABASE d; USE d;
CREATE TABLE t(id INT PRIMARY KEY, name VARCHAR(60), score DOUBLE, body TEXT, KEY(name))
	ENGINE=InnoDB;
INSERT INTO t SELECT seq, CONCAT('name-', seq * 7919 % 20011), seq / 7, REPEAT('x', seq % 300)
	FROM seq_1_to_20000;
CREATE TABLE m ENGINE=Aria SELECT id, name FROM t WHERE id % 3 = 0;
DELETE FROM t WHERE id % 7 = 0;
`

const mariadbQueries = `USE d;
SELECT COUNT(*), SUM(id), ROUND(SUM(score), 3), MD5(GROUP_CONCAT(name ORDER BY id)) FROM t;
SELECT name, RANK() OVER (PARTITION BY id % 5 ORDER BY name) AS r FROM t WHERE id % 1500 = 1
	ORDER BY id;
SELECT COUNT(*) FROM t JOIN m USING(name) LEFT JOIN t AS u ON u.id = m.id * 2;
SELECT JSON_ARRAYAGG(JSON_OBJECT('id', id, 'body', LENGTH(body))) FROM t WHERE id % 2000 = 2;
WITH RECURSIVE n AS (SELECT 1 AS i, CAST('1' AS CHAR(4000)) AS s
	UNION ALL SELECT i + 1, CONCAT(s, i) FROM n WHERE i < 500)
	SELECT MD5(GROUP_CONCAT(s ORDER BY i)) FROM n;
CHECK TABLE t, m;
SELECT * FROM nowhere;
`

// mariadbRun returns answers, also of clients that ask at the same time, and a dump; and the
// errors that the server met.
func mariadbRun(t *testing.T, preload bool) (out, errors []string) {
	s := newSite(t, preload)
	s.own()
	data, socket := s.dir+"/data", s.dir+"/socket"
	s.run("", "mariadb-install-db", "--no-defaults", "--datadir="+data,
		"--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve")
	server := s.start("log", "mariadbd", "--no-defaults", "--datadir="+data, "--socket="+socket,
		"--skip-networking", "--pid-file="+data+"/pid",
		"--innodb-buffer-pool-size=32M", "--innodb-flush-log-at-trx-commit=0",
		"--thread-handling=pool-of-threads")
	client := func(name string) []string {
		return []string{name, "--no-defaults", "--socket=" + socket, "--user=root"}
	}
	testlib.Wait(t, "an answer", server.Process, func() bool {
		return exec.Command(client("mariadb-admin")[0],
			append(client("mariadb-admin")[1:], "ping")...).Run() == nil
	})
	s.run(mariadbTables, client("mariadb")...)
	same := make([]*exec.Cmd, 6)
	for i := range same {
		same[i] = s.start(fmt.Sprintf("client%d", i), append(client("mariadb"), "d", "-e",
			strings.Repeat("SELECT MD5(GROUP_CONCAT(name ORDER BY score DESC)) FROM t WHERE id % "+
				"5 = 1; SELECT COUNT(DISTINCT body) FROM t;", 5))...)
	}
	for i, cmd := range same {
		if err := testlib.End(cmd); err != nil {
			t.Errorf("client: %v", err)
		}
		out = append(out, s.log(fmt.Sprintf("client%d", i)))
	}
	out = append(out, s.run(mariadbQueries, append(client("mariadb"), "--force", "-t")...),
		s.run("", append(client("mariadb-dump"), "--skip-dump-date", "d")...))
	s.run("", append(client("mariadb-admin"), "shutdown")...)
	if err := testlib.End(server); err != nil {
		t.Errorf("mariadbd: %v", err)
	}
	if log := s.log("log"); strings.Contains(log, "got signal") {
		t.Errorf("the server's log: %s", clip(log))
	}
	if preload {
		checkStats(t, s.stats, "mariadbd", "mariadb")
	}
	return out, s.faults("log", "[ERROR]")
}

// TestMariaDB compares the answers, and the errors in the logs: a machine may refuse the server
// something, with and without the library.
func TestMariaDB(t *testing.T) {
	testlib.Need(t, "mariadbd", "mariadb", "mariadb-install-db", "mariadb-admin", "mariadb-dump")
	plain, plainErrors := mariadbRun(t, false)
	preloaded, errors := mariadbRun(t, true)
	sameFaults(t, plainErrors, errors)
	for i := range plain {
		compareText(t, fmt.Sprintf("answer %d", i), plain[i], preloaded[i])
	}
}
