package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// contender is an allocator: a library to preload and variables to set.
type contender struct {
	name, library string
	env           []string
}

// known is a peer in Debian.
type known struct{ name, library, pack string }

var (
	peersDir = "/usr/lib/x86_64-linux-gnu"
	peers    = []known{
		{"mimalloc", "libmimalloc.so.2", "libmimalloc2.0"},
		{"jemalloc", "libjemalloc.so.2", "libjemalloc2"},
		{"tcmalloc", "libtcmalloc_minimal.so.4", "libtcmalloc-minimal4"},
	}
)

func knownNames() string {
	var out []string
	for _, k := range peers {
		out = append(out, k.name)
	}
	return strings.Join(out, ", ")
}

func (k known) path() string { return filepath.Join(peersDir, k.library) }

func (k known) installed() bool {
	_, err := os.Stat(k.path())
	return err == nil
}

func (k known) contender() contender { return contender{name: k.name, library: k.path()} }

// parsePeers reads the argument of --peers.
func parsePeers(list string) ([]contender, error) {
	var out []contender
	add := func(c contender) error {
		if c.name == "glibc" || c.name == "tieralloc" ||
			slices.ContainsFunc(out, func(o contender) bool { return o.name == c.name }) {
			return fmt.Errorf("--peers: there are two of %q", c.name)
		}
		out = append(out, c)
		return nil
	}
	for word := range strings.SplitSeq(list, ",") {
		some, err := parsePeer(word)
		if err != nil {
			return nil, err
		}
		for _, c := range some {
			if err := add(c); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

func parsePeer(word string) ([]contender, error) {
	switch word {
	case "none":
		return nil, nil
	case "fetch":
		if err := fetch(); err != nil {
			return nil, err
		}
		return installed(), nil
	case "installed":
		return installed(), nil
	}
	if name, path, ok := strings.Cut(word, "="); ok {
		c, err := parseLibrary(name, path)
		return []contender{c}, err
	}
	for _, k := range peers {
		if k.name != word {
			continue
		}
		if !k.installed() {
			return nil, fmt.Errorf("--peers: %s is not installed: %s is not there (Debian "+
				"package %s; --peers fetch installs it)", word, k.path(), k.pack)
		}
		return []contender{k.contender()}, nil
	}
	return nil, fmt.Errorf("--peers: %q: installed, fetch, none, %s, or NAME=PATH are accepted",
		word, knownNames())
}

// parseLibrary reads PATH[:VAR=VALUE...].
func parseLibrary(name, text string) (contender, error) {
	path, rest, more := strings.Cut(text, ":")
	if name == "" || path == "" {
		return contender{}, fmt.Errorf("--peers: %q: NAME=PATH is accepted", name+"="+text)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return contender{}, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return contender{}, fmt.Errorf("--peers: %s: %w", name, err)
	}
	if !info.Mode().IsRegular() || strings.ContainsAny(path, " :") {
		return contender{},
			fmt.Errorf("--peers: %s: %q is not a file that can be preloaded (no spaces, no colons)",
				name, path)
	}
	c := contender{name: name, library: path}
	if more {
		c.env = strings.Split(rest, ":")
	}
	for _, v := range c.env {
		if variable, _, ok := strings.Cut(v, "="); !ok || variable == "" {
			return contender{}, fmt.Errorf("--peers: %s: %q: VAR=VALUE is accepted", name, v)
		}
	}
	return c, nil
}

// installed are the peers that are there; the others are told on standard error.
func installed() []contender {
	var out []contender
	for _, k := range peers {
		if !k.installed() {
			fmt.Fprintf(os.Stderr,
				"bench cpu: without %s, which is not installed (Debian package %s; --peers fetch "+
					"installs it)\n", k.name, k.pack)
			continue
		}
		out = append(out, k.contender())
	}
	return out
}

// fetch installs the packages of the peers that lack.
func fetch() error {
	var lack []string
	for _, k := range peers {
		if !k.installed() {
			lack = append(lack, k.pack)
		}
	}
	if len(lack) == 0 {
		return nil
	}
	what := strings.Join(lack, " ")
	if _, err := exec.LookPath("apt-get"); err != nil || os.Geteuid() != 0 {
		return fmt.Errorf("--peers fetch: that takes root and apt-get; the packages that lack "+
			"are %s", what)
	}
	install := append([]string{"install", "-q", "-y", "--no-install-recommends"}, lack...)
	for _, args := range [][]string{{"update", "-q"}, install} {
		cmd := exec.Command("apt-get", args...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		if text, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("--peers fetch: apt-get %s: %w\n%s", strings.Join(args, " "), err,
				tail(string(text)))
		}
	}
	return nil
}

// tail is the end of a text.
func tail(s string) string {
	const most = 1000
	s = strings.TrimSpace(s)
	return s[max(0, len(s)-most):]
}
