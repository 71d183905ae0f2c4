package main

import (
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"tieralloc/internal/config"
	"tieralloc/numa"
	"tieralloc/numa/plan"
	"tieralloc/numa/probe"
)

// A configCheck is the library's reading of an environment on this machine.
type configCheck struct {
	settings *config.Settings
	nodes    *numa.Topology
	places   *numa.Map
	mistakes []mistake
	strange  []string // TA_ names that resemble none of the library's
}

// mistake is a setting that the library would complain about, or a name that it would ignore and
// that is most likely misspelt.
type mistake struct {
	name string // of the variable
	text string // the value, and what is accepted
	used string // the value that the library uses instead; "": it does not say
}

// These are large, and the library's code expects them in static memory.
var (
	parsed   config.Settings
	topology numa.Topology
	placed   numa.Map
)

// checkConfig reads env by the library's own parsers. The result is valid until the next call.
func checkConfig(env environ) (*configCheck, error) {
	complaints, err := unix.MemfdCreate("complaints", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	file := os.NewFile(uintptr(complaints), "complaints")
	defer file.Close()
	env.vector(func(envp uintptr) {
		config.ParseTo(&parsed, envp, file.Fd())
		probe.Topology(&topology)
		plan.Resolve(&parsed, &topology, &placed, file.Fd())
		plan.RefuseBalance(&parsed, &placed, file.Fd())
		plan.Balance(&parsed, &topology, &placed, numa.BalancingMode())
		memory := plan.Memory(&placed)
		parsed.SetParts(envp, &memory, file.Fd())
		account := placed.Accounts()
		parsed.ShareCaps(envp, &account, file.Fd())
	})
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	text, err := io.ReadAll(file)
	if err != nil {
		return nil, err
	}
	c := &configCheck{settings: &parsed, nodes: &topology, places: &placed}
	for line := range strings.Lines(string(text)) {
		c.mistakes = append(c.mistakes, parseMistake(line))
	}
	c.checkNames(env)
	return c, nil
}

// parseMistake parses a complaint of the library:
//
//	tieralloc: NAME="value": expected this; using that
func parseMistake(line string) mistake {
	text := strings.TrimPrefix(strings.TrimSuffix(line, "\n"), "tieralloc: ")
	m := mistake{text: text}
	m.name, _, _ = strings.Cut(text, "=")
	if i := strings.LastIndex(text, "; using "); i >= 0 {
		m.text, m.used = text[:i], text[i+len("; using "):]
	}
	return m
}

// checkNames looks for names that the library does not know. A name that is close to a known one is
// a mistake. Others may belong to other software.
func (c *configCheck) checkNames(env environ) {
	known := settingNames()
	for _, name := range env.names(prefix) {
		if near := nearestSetting(name, known); near == name {
			continue
		} else if near != "" {
			c.mistakes = append(c.mistakes, mistake{name: name,
				text: name + ": no such variable; did you mean " + near + "?"})
		} else {
			c.strange = append(c.strange, name)
		}
	}
}

// nearestSetting is nearest for names of settings, compared without their common prefix.
func nearestSetting(name string, known []string) string {
	var rest []string
	for _, k := range known {
		rest = append(rest, strings.TrimPrefix(k, prefix))
	}
	if near := nearest(strings.TrimPrefix(name, prefix), rest); near != "" {
		return prefix + near
	}
	return ""
}
