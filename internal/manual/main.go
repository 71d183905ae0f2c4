// Command manual writes the pages of section 3 of the manual, from the library's header: one page
// for each group of functions, by the name of its first one, and a link for each other function.
//
//	go run ./internal/manual interpose/tieralloc.h build/man
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"tieralloc/internal/roff"
	"tieralloc/internal/version"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: manual HEADER DIR")
		os.Exit(2)
	}
	if err := write(os.Args[1], filepath.Join(os.Args[2], "man3")); err != nil {
		fmt.Fprintln(os.Stderr, "manual:", err)
		os.Exit(1)
	}
}

func write(header, dir string) error {
	text, err := os.ReadFile(header)
	if err != nil {
		return err
	}
	groups := parse(string(text))
	if len(groups) == 0 {
		return fmt.Errorf("%s: no groups of functions", header)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, g := range groups {
		own := g.functions()[0]
		for _, name := range g.functions() {
			page := roff.Link(own, 3)
			if name == own {
				page = g.page(groups)
			}
			if err := os.WriteFile(filepath.Join(dir, name+".3"), page, 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

// page is the manual page of a group.
func (g group) page(all []group) []byte {
	p := roff.New(roff.Names{Names: g.functions(), Section: 3, Short: g.title,
		Date: version.Date, Source: "tieralloc " + version.Number})
	p.Section("Synopsis")
	p.Verbatim("#include <tieralloc.h>\n\nLink with -ltieralloc.")
	for _, d := range g.declarations {
		if len(d.functions) > 0 {
			p.Verbatim(d.prototypes())
		}
	}
	p.Section("Description")
	p.Text(g.text)
	for _, d := range g.declarations {
		p.Subsection(d.title())
		if d.hasType() {
			p.Verbatim(d.code)
		}
		p.Text(d.text)
	}
	also := []string{"tierallocctl(1)", "tieralloc(7)"}
	for _, other := range all {
		if other.title != g.title {
			also = append(also, other.functions()[0]+"(3)")
		}
	}
	p.SeeAlso(also...)
	return p.Bytes()
}
