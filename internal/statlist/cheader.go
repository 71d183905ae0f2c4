package main

import (
	"fmt"
	"strings"
)

// publicHeader returns interpose/tieralloc.h with its structures of figures replaced.
func publicHeader(old string) string {
	for i := range publics {
		p := &publics[i]
		const begin = "typedef struct {\n"
		before, after, found := strings.Cut(old, "} "+p.c+";\n")
		start := strings.LastIndex(before, begin)
		if !found || start < 0 {
			panic("tieralloc.h has no " + p.c)
		}
		old = before[:start] + begin + p.declaration() + "} " + p.c + ";\n" + after
	}
	return old
}

// declaration returns the fields of a structure in C, in clang-format's style: the comments of
// consecutive lines begin in one column.
func (p *public) declaration() string {
	var out strings.Builder
	for i := 0; i < len(p.lines); {
		end, width := i, 0
		for end < len(p.lines) && p.lines[end].comment != "" {
			width = max(width, len(p.code(&p.lines[end])))
			end++
		}
		for ; i < end; i++ {
			l := &p.lines[i]
			fmt.Fprintf(&out, "\t%-*s /* %s */\n", width, p.code(l), l.comment)
		}
		if i < len(p.lines) && p.lines[i].comment == "" {
			fmt.Fprintf(&out, "\t%s\n", p.code(&p.lines[i]))
			i++
		}
	}
	return out.String()
}

// code is the declaration of a line.
func (p *public) code(l *line) string {
	if l.text != "" {
		return l.text
	}
	var names []string
	for path := range strings.FieldsSeq(l.paths) {
		names = append(names, p.figure(path).key)
	}
	return "uint64_t " + strings.Join(names, ", ") + ";"
}
