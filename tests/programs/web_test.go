package programs

import (
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"tieralloc/internal/testlib"
)

// freePort is one of this machine's own address that nobody listens on.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// web is a web server in one site.
type web struct {
	*site
	server *exec.Cmd
	url    string
}

// startWeb begins a server that stays in the foreground, and waits for its first answer.
func startWeb(s *site, url string, args ...string) *web {
	s.t.Helper()
	w := &web{s, s.start("log", args...), url}
	testlib.Wait(s.t, "an answer", w.server.Process,
		func() bool {
			return exec.Command("curl", "-sf", "-o", "/dev/null",
				url+"/small.txt").Run() == nil
		})
	return w
}

// get asks for a page several times at once and returns one line per answer.
func (w *web) get(path string) string {
	w.t.Helper()
	w.run("", "bash", "-c",
		`for i in $(seq 1 40); do args+=(-o answer$i "$0"); done; curl -sS --compressed `+
			`--parallel --parallel-max 8 "${args[@]}" 2>progress`, w.url+path)
	return w.run("", "bash", "-c", "md5sum answer*; rm answer*")
}

// stop ends the server by a signal, and returns the faults in its log.
func (w *web) stop(how syscall.Signal) (faults []string) {
	w.t.Helper()
	w.server.Process.Signal(how)
	if err := testlib.End(w.server); err != nil {
		w.t.Errorf("the server: %v", err)
	}
	return w.faults("errors", "exited on signal", "exit signal", "[alert]", "[emerg]", "AH00052")
}

// pages are served by both servers.
func (s *site) pages() {
	s.t.Helper()
	write(s.t, s.dir, "small.txt", "small\n")
	write(s.t, s.dir, "large.txt", strings.Repeat("a large page, which is sent packed\n", 30000))
}

const nginxConf = `daemon off; worker_processes 2; pid nginx.pid; error_log errors;
events { worker_connections 64; }
http {
	access_log off; gzip on; gzip_types text/plain; default_type text/plain; ssi on;
		ssi_types text/plain;
	client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi;
		uwsgi_temp_path uwsgi; scgi_temp_path scgi;
	server { listen 127.0.0.1:%[1]d; root .;
		location /again/ { proxy_pass http://127.0.0.1:%[1]d/; proxy_buffers 4 4k; } }
}
`

// nginxRun returns the answers of two generations of workers, and the faults of the server.
func nginxRun(t *testing.T, preload bool) (answers string, faults []string) {
	s := newSite(t, preload)
	s.own()
	s.pages()
	port := freePort(t)
	write(t, s.dir, "nginx.conf", strings.ReplaceAll(fmt.Sprintf(nginxConf, port), "root .",
		"root "+s.dir))
	w := startWeb(s, fmt.Sprintf("http://127.0.0.1:%d", port), "nginx", "-p", s.dir, "-e", "errors",
		"-c", "nginx.conf")
	answers = w.get("/small.txt") + w.get("/large.txt") + w.get("/again/large.txt")
	w.server.Process.Signal(syscall.SIGHUP)
	answers += w.get("/large.txt") + w.get("/again/small.txt")
	faults = w.stop(syscall.SIGQUIT)
	if preload {
		checkStats(t, s.stats, "nginx")
	}
	return answers, faults
}

func TestNginx(t *testing.T) {
	testlib.Need(t, "nginx", "curl")
	plain, plainFaults := nginxRun(t, false)
	preloaded, faults := nginxRun(t, true)
	sameFaults(t, plainFaults, faults)
	compareText(t, "the answers", plain, preloaded)
}

const apacheConf = `ServerRoot %[1]s
Listen 127.0.0.1:%[2]d
ServerName localhost
PidFile apache.pid
ErrorLog errors
%[3]s
DocumentRoot %[1]s
TypesConfig /etc/mime.types
SetOutputFilter DEFLATE
DirectoryIndex index.html
<FilesMatch "\.php$">
	SetHandler application/x-httpd-php
</FilesMatch>
KeepAlive Off
StartServers 2
MaxRequestWorkers 4
`

const apachePage = `<?php
$a = [];
for ($i = 0; $i < 5000; $i++) $a[$i * 7919 % 5003] = str_repeat(chr(97 + $i % 26), $i % 90);
ksort($a);
$d = new DOMDocument();
$d->loadXML('<a>' . str_repeat('<b>x</b>', 500) . '</a>');
echo md5(serialize($a)), ' ', md5($d->saveXML()), ' ', strlen(json_encode($a)), ' ', count(get_loaded_extensions()) > 20 ? 'many' : 'few', "\n";
`

// apacheModule is the file of a module, of any version of PHP.
func apacheModule(t *testing.T, name string) string {
	t.Helper()
	for _, pattern := range []string{"mod_" + name, "lib" + name + "[0-9]*"} {
		if found, _ := filepath.Glob("/usr/lib/apache2/modules/" + pattern +
			".so"); len(found) > 0 {
			return found[0]
		}
	}
	testlib.Lacks(t, "apache module "+name)
	return ""
}

// apacheRun returns the answers before and after the server's children are replaced, and the
// faults of the server.
func apacheRun(t *testing.T, preload bool) (answers string, faults []string) {
	s := newSite(t, preload)
	s.own()
	s.pages()
	write(t, s.dir, "page.php", apachePage)
	var modules strings.Builder
	for _, m := range []string{"mpm_prefork", "authz_core", "dir", "mime", "filter", "deflate",
		"php"} {
		fmt.Fprintf(&modules, "LoadModule %s_module %s\n", m, apacheModule(t, m))
	}
	port := freePort(t)
	write(t, s.dir, "apache.conf", fmt.Sprintf(apacheConf, s.dir, port, modules.String()))
	w := startWeb(s, fmt.Sprintf("http://127.0.0.1:%d", port), "apache2", "-f",
		s.dir+"/apache.conf", "-DFOREGROUND")
	answers = w.get("/small.txt") + w.get("/large.txt") + w.get("/page.php") +
		w.run("", "curl", "-sS", w.url+"/page.php")
	w.server.Process.Signal(syscall.SIGUSR1)
	answers += w.get("/page.php") + w.get("/large.txt")
	faults = w.stop(syscall.SIGTERM)
	if preload {
		checkStats(t, s.stats, "apache2")
	}
	return answers, faults
}

func TestApache(t *testing.T) {
	testlib.Need(t, "apache2", "curl")
	plain, plainFaults := apacheRun(t, false)
	if !strings.Contains(plain, "many") {
		t.Errorf("php has answered: %s", clip(plain))
	}
	preloaded, faults := apacheRun(t, true)
	sameFaults(t, plainFaults, faults)
	compareText(t, "the answers", plain, preloaded)
}
