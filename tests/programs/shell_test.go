package programs

import (
	"fmt"
	"io"
	"log"
	"math/rand"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// shellPrograms are the small tools that every script is made of. TestVariants runs them again.
func shellPrograms() []program {
	return []program{
		{name: "bash script", args: []string{"bash", "@shell.sh"}, needs: []string{"rev"},
			status: 5},
		script("a closed pipe", `yes | head -1; echo "${PIPESTATUS[@]}"`),
		script("awk", `seq 1 40000 | awk '{ n[$1 % 997] += $1; s = s $1 % 10 } END { for (i = 0; `+
			`i < 997; i++) print i, n[i]; print length(s) }'`, "awk"),
		script("sed", `seq 1 50000 | sed -n -e 's/\([0-9]\)\([0-9]\)/<\2\1>/g; H; ${ x; `+
			`s/\n/,/g; p; }' | md5sum`, "sed"),
		script("find and grep", `for d in a b c/d; do mkdir -p $d
			for i in $(seq 1 50); do seq $i 9 900 >$d/$i.txt; done; done
			find . -type f -size -4k -name '*1*.txt' -printf '%P %s\n' | sort
			find . -name '*.txt' -print0 | sort -z | xargs -0 grep -cE '(1|7)+3$' |
			md5sum`, "find", "grep", "xargs"),
		script("text tools", `seq 1 30000 | tee copy | rev | tac | nl | cut -c1-9 | paste - - - |
			join -t@ - /dev/null; diff <(sort copy) copy | md5sum
			seq 1 4000 | shuf --random-source=copy | split -n l/7 - part; wc -l part*;
				comm -12 <(sort partaa) <(sort copy) | md5sum; od -c copy |
				tail -3`, "rev", "shuf", "split"),
	}
}

func TestShell(t *testing.T) {
	runAll(t, shellPrograms())
	runAll(t, []program{
		script("sort", `seq 1 1000000 | awk '{ print ($1 * 7919) % 1000003 }' >in;
			head -100000 in >part
			sort --parallel=2 -S 8M -T . in | md5sum; sort --parallel=2 -S 200M -n -r part | md5sum;
				sort -u -k1.3 part | wc`, "sort"),
		script("tar and xz", `mkdir tree; for i in $(seq 1 60); do seq $i 60000 >tree/$i; done
			tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -cf - tree |
				xz -T2 --block-size=1MiB -3 >t.xz
			md5sum t.xz; xz -dc -T2 t.xz | md5sum; xz -tv t.xz 2>/dev/null;
				tar -xJf t.xz --to-stdout | md5sum
			tar -cf - tree --sort=name --mtime=@0 | gzip -n9 | tee t.gz | md5sum; zcat t.gz |
				tar -tf - | tail -2`, "tar", "xz", "gzip"),
		script("openssl", `seq 1 300000 >f
			openssl dgst -sha256 f; openssl enc -aes-256-cbc -pbkdf2 -nosalt -k word -in f | md5sum
			openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out k &&
				openssl pkey -in k -pubout -out p
			openssl dgst -sha256 -sign k -out s f && openssl dgst -sha256 -verify p -signature s f
			openssl req -x509 -key k -subj /CN=test -days 2 -out c &&
				openssl verify -CAfile c c`, "openssl"),
	})
}

func TestSQLite(t *testing.T) {
	sql := `.bail on
CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT, score REAL, body BLOB);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60000)
  INSERT INTO t SELECT i, printf('name-%05d', i * 7919 % 60000), i / 7.0, zeroblob(i % 300) FROM n;
CREATE INDEX by_name ON t(name);
SELECT count(*), sum(score), sum(length(body)) FROM t WHERE name LIKE 'name-0%';
SELECT group_concat(name, ' ') FROM (SELECT name FROM t ORDER BY score DESC LIMIT 40);
SELECT json_group_array(json_object('id', id, 'name', name)) FROM t WHERE id % 3000 = 0;
SELECT name, rank() OVER (PARTITION BY id % 5 ORDER BY name) AS r FROM t WHERE id % 2500 = 1
	ORDER BY id;
DELETE FROM t WHERE id % 3 = 0;
VACUUM;
PRAGMA integrity_check;
.sha3sum
SELECT nothing FROM nowhere;
`
	runAll(t, []program{{name: "sqlite3", args: []string{"sqlite3", "file.db"}, stdin: sql,
		status: 1}})
}

// TestCurl fetches from a server of this test's own, over HTTP and TLS.
func TestCurl(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	var page strings.Builder
	for page.Len() < 3<<20 {
		fmt.Fprintf(&page, "line %d\n", random.Int63())
	}
	serve := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Date"] = nil
		http.ServeContent(w, r, "page.txt", time.Time{}, strings.NewReader(page.String()))
	})
	plain, secure := httptest.NewServer(serve), httptest.NewUnstartedServer(serve)
	secure.Config.ErrorLog = log.New(io.Discard, "", 0) // the refused handshake is expected
	secure.StartTLS()
	defer plain.Close()
	defer secure.Close()
	text := fmt.Sprintf(`for u in %[1]s/a %[2]s/b; do curl -sS -k -i --http1.1 $u | md5sum
		curl -sS -k -r 5-90 $u; done
		curl -sS -k --parallel -o 1 %[1]s/1 -o 2 %[2]s/2 -o 3 %[1]s/3 -o 4 %[2]s/4 2>progress;
			md5sum 1 2 3 4; curl -sS %[2]s/5`, plain.URL, secure.URL)
	p := script("curl", text, "curl")
	p.status = 60 // the last one must refuse the server's certificate
	runAll(t, []program{p})
}
