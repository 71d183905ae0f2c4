// Package roff writes manual pages with the macros of man(7).
package roff

import (
	"bytes"
	"fmt"
	"strings"
)

// A Page is a manual page under construction.
type Page struct {
	text  bytes.Buffer
	fresh bool // a title was written last, which begins a paragraph itself
}

// Names is the heading of a page, in the form that apropos(1) reads.
type Names struct {
	Names   []string // the page's own name first
	Section int
	Short   string // follows the names and a dash
	Date    string // year, month and day
	Source  string // the program and its version
}

// New begins a page.
func New(n Names) *Page {
	p := &Page{}
	p.line(".TH %s %d %s %s", quote(n.Names[0]), n.Section, n.Date, quote(n.Source))
	p.line(".nh\n.ad l") // do not hyphenate names
	p.Section("Name")
	p.line("%s \\- %s", escape(strings.Join(n.Names, ", ")), escape(n.Short))
	return p
}

// Section begins a section.
func (p *Page) Section(title string) {
	p.line(".SH %s", quote(strings.ToUpper(title)))
	p.fresh = true
}

// Subsection begins a part of a section.
func (p *Page) Subsection(title string) {
	p.line(".SS %s", quote(title))
	p.fresh = true
}

// paragraph begins a paragraph.
func (p *Page) paragraph() {
	if !p.fresh {
		p.line(".PP")
	}
}

// Text writes paragraphs. Empty lines are between them, and lines that begin with blanks stay as
// they are.
func (p *Page) Text(text string) {
	var lines []string
	flush := func() {
		if len(lines) > 0 {
			p.paragraph()
			p.line("%s", escape(strings.Join(lines, "\n")))
			lines = nil
		}
	}
	var kept []string
	keep := func() {
		if len(kept) > 0 {
			p.Verbatim(strings.Join(kept, "\n"))
			kept = nil
		}
	}
	for line := range strings.Lines(text + "\n") {
		line = strings.TrimRight(line, " \n")
		switch {
		case line == "":
			flush()
			if len(kept) > 0 {
				kept = append(kept, "")
			}
		case line[0] == ' ' || line[0] == '\t':
			flush()
			kept = append(kept, line)
		default:
			keep()
			lines = append(lines, line)
		}
	}
	flush()
	keep()
}

// Verbatim writes lines unchanged, without their common indentation.
func (p *Page) Verbatim(text string) {
	p.paragraph()
	p.line(".RS 4\n.nf\n%s\n.fi\n.RE", escape(dedent(text)))
}

// Item writes an entry of a list: a tag, and texts, each on lines of its own.
func (p *Page) Item(tag string, texts ...string) {
	p.line(".TP\n.B %s", quote(tag))
	for i, text := range texts {
		if i > 0 {
			p.line(".br")
		}
		p.line("%s", escape(text))
	}
}

// Synopsis writes the form of a command.
func (p *Page) Synopsis(text string) { p.line(".B %s", quote(text)) }

// SeeAlso ends a page. Each name has a section in parentheses.
func (p *Page) SeeAlso(names ...string) {
	p.Section("See also")
	for i, name := range names {
		base, section, _ := strings.Cut(name, "(")
		end := ","
		if i == len(names)-1 {
			end = ""
		}
		p.line(".BR %s (%s%s", quote(base), section, end)
	}
}

// Bytes is the page's text.
func (p *Page) Bytes() []byte { return p.text.Bytes() }

func (p *Page) line(format string, args ...any) {
	fmt.Fprintf(&p.text, format+"\n", args...)
	p.fresh = false
}

// Link returns the text of a page that includes another page of the same section.
func Link(name string, section int) []byte {
	return fmt.Appendf(nil, ".so man%d/%s.%d\n", section, name, section)
}

// characters escapes characters that are special in roff or that it prints differently.
var characters = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`,
	"~", `\(ti`, "\t", "    ")

// escape returns text that prints unchanged. A dot at the beginning of a line would be a request,
// and an empty line would be printed as an additional one.
func escape(text string) string {
	lines := strings.Split(characters.Replace(text), "\n")
	for i, line := range lines {
		if line == "" {
			lines[i] = `\&`
		} else if strings.HasPrefix(line, ".") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}

// quote returns text as one argument of a macro.
func quote(text string) string {
	return `"` + strings.ReplaceAll(escape(text), `"`, `\(dq`) + `"`
}

// dedent removes the blanks that all lines begin with, and empty lines at the end.
func dedent(text string) string {
	lines := strings.Split(strings.TrimRight(strings.ReplaceAll(text, "\t", "    "), "\n "), "\n")
	least := len(text)
	for _, line := range lines {
		if blanks := len(line) - len(strings.TrimLeft(line, " ")); blanks < len(line) {
			least = min(least, blanks)
		}
	}
	for i, line := range lines {
		lines[i] = line[min(least, len(line)):]
	}
	return strings.Join(lines, "\n")
}
