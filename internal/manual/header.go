package main

import (
	"regexp"
	"slices"
	"strings"
)

// A group is a part of the header below a title:
//
//	/* ---- Title ----
//	 *
//	 * Text. */
type group struct {
	title, text  string
	declarations []declaration
}

// A declaration is the text between two empty lines: a comment and code.
type declaration struct {
	text, code string
	functions  []string // the functions that it declares
}

var (
	groupTitle = regexp.MustCompile(`^---- (.*) ----\n?`)
	prototype  = regexp.MustCompile(`(?m)^[a-z][^;{}=]*?\b(ta_\w+)\([^;]*;$`)
	typeName   = regexp.MustCompile(`(?m)^(?:typedef enum .*)?\} (\w+);|\(\*(\w+)\)|` +
		`^typedef struct \w+ (\w+);`)
)

// parse splits a header into groups. It ignores the text before the first group.
func parse(header string) (groups []group) {
	for _, block := range strings.Split(header, "\n\n") {
		text, code := comment(block)
		if m := groupTitle.FindStringSubmatch(text); m != nil {
			title := strings.ToLower(m[1][:1]) + m[1][1:]
			text = strings.TrimSpace(text[len(m[0]):])
			groups = append(groups, group{title: title, text: text})
			if code == "" {
				continue
			}
			text = ""
		}
		code = strings.TrimSpace(strings.Split(code, "#ifdef __cplusplus")[0])
		if len(groups) == 0 || code == "" {
			continue
		}
		d := declaration{text: text, code: code}
		for _, m := range prototype.FindAllStringSubmatch(code, -1) {
			if !strings.HasPrefix(m[0], "typedef") {
				d.functions = append(d.functions, m[1])
			}
		}
		g := &groups[len(groups)-1]
		g.declarations = append(g.declarations, d)
	}
	return groups
}

// comment splits a block into the text of the comment at its beginning, and the rest.
func comment(block string) (text, code string) {
	block = strings.TrimSpace(block)
	inside, ok := strings.CutPrefix(block, "/*")
	if !ok {
		return "", block
	}
	inside, code, _ = strings.Cut(inside, "*/")
	var lines []string
	for line := range strings.Lines(inside) {
		line = strings.TrimPrefix(strings.TrimSpace(line), "*")
		lines = append(lines, strings.TrimPrefix(line, " "))
	}
	text = strings.TrimSpace(strings.Join(lines, "\n"))
	return apart(text), strings.TrimSpace(code)
}

// apart begins a new paragraph where a comment says what a function returns.
func apart(text string) string {
	return strings.ReplaceAll(text, "\nReturns ", "\n\nReturns ")
}

// functions returns the names of all functions that the group declares.
func (g group) functions() (names []string) {
	for _, d := range g.declarations {
		names = append(names, d.functions...)
	}
	return names
}

// prototypes returns the prototypes of the functions, without other declarations.
func (d declaration) prototypes() string {
	var list []string
	for _, m := range prototype.FindAllStringSubmatch(d.code, -1) {
		if slices.Contains(d.functions, m[1]) {
			list = append(list, m[0])
		}
	}
	return strings.Join(list, "\n")
}

// hasType reports whether other things than functions are declared.
func (d declaration) hasType() bool { return d.prototypes() != d.code }

// title names the declared functions, or the types if there are none.
func (d declaration) title() string {
	names := slices.Clone(d.functions)
	for i := range names {
		names[i] += "()"
	}
	if len(names) == 0 {
		for _, m := range typeName.FindAllStringSubmatch(d.code, -1) {
			names = append(names, strings.Join(m[1:], ""))
		}
	}
	if len(names) == 0 {
		return "Constants"
	}
	return strings.Join(names, ", ")
}
