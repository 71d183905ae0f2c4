package programs

import (
	"os"
	"path/filepath"
	"testing"

	"tieralloc/internal/testlib"
)

// page is a document that a browser's script completes.
const page = `<!DOCTYPE html><title>page</title><body><p id=a></p><canvas id=c width=60 height=40></canvas><script>
const words = new Map(), all = [];
for (let i = 0; i < 200000; i++) {
	const w = (i * 7919 % 10007).toString(36);
	words.set(w, (words.get(w) || 0) + 1); all[i % 5000] = w + i;
}
document.getElementById('a').textContent = words.size + ' ' + all.join('').length + ' ' + JSON.stringify([...words].sort().slice(0, 9));
const c = document.getElementById('c').getContext('2d'); c.fillStyle = '#f80';
c.fillRect(5, 5, 30, 20); c.fillText('text', 4, 35);
for (let i = 0; i < 300; i++)
	document.body.append(Object.assign(document.createElement('i'), {textContent: i}));
</script>`

func writePage(t *testing.T, dir string) { write(t, dir, "page.html", page) }

// browser is a script of a user other than root; its remarks on what the machine
// lacks go to a log, which is shown when it fails.
func browser(name, text string, needs ...string) program {
	p := script(name, "export HOME=$PWD\n{ "+text+"\n} 2>log || { status=$?; tail -n 30 log >&2; "+
		"exit $status; }", needs...)
	p.ordinary, p.prepare = true, writePage
	return p
}

// TestChromium leaves the sandbox on: the processes that draw the page come from
// one in a user namespace, without root directory and under a filter of system calls.
func TestChromium(t *testing.T) {
	namespaces(t)
	runAll(t, []program{browser("chromium", `chromium --headless --disable-gpu --disable-quic --no-first-run --disable-background-networking \
		--disable-component-update --disable-sync --user-data-dir="$PWD/profile" --dump-dom "file://$PWD/page.html"`, "chromium")})
}

func TestFirefox(t *testing.T) {
	runAll(t, []program{browser("firefox", `firefox-esr --headless --no-remote --profile "$PWD" --window-size 400,300 --screenshot "$PWD/page.png" \
		"file://$PWD/page.html" && md5sum page.png`, "firefox-esr")})
}

// TestZygote makes and uses a sandbox as Chromium and Electron do, of which Debian
// has the former only.
func TestZygote(t *testing.T) {
	namespaces(t)
	zygote := testlib.CC(t, "zygote.c")
	// what is in the sandbox can leave no statistics, and says so
	p := browser("zygote", "./zygote")
	p.prepare = func(t *testing.T, dir string) {
		text, err := os.ReadFile(zygote)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "zygote"), text, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	runAll(t, []program{p})
}

// namespaces skips the test where a process may not have a user namespace of its own, as in some
// containers.
func namespaces(t *testing.T) {
	t.Helper()
	testlib.Need(t, "unshare")
	if testlib.Run(t, testlib.Cmd{Args: append(become(t), "unshare", "-U", "true")}).Status != 0 {
		t.Skip("this machine does not let a process have a user namespace of its own")
	}
}
