package main

import "strings"

// writers returns stats/document/figures.go, the functions that write the figures as JSON.
func writers() []byte {
	var s source
	s.WriteString(header + "package document\n\nimport (\n" +
		"\"tieralloc/internal/config\"\n\"tieralloc/internal/version\"\n" +
		"\"tieralloc/stats\"\n)\n")
	for _, o := range objects {
		if o.method != "" {
			s.writer(o)
		}
	}
	return s.formatted()
}

// writer writes the method that writes the members of an object.
func (s *source) writer(o *object) {
	s.line("\nfunc (w *writer) %s {", o.method)
	if o.begin != "" {
		s.line("%s", o.begin)
	}
	for i := range o.figures {
		x := &o.figures[i]
		field := o.arg + "." + x.fieldName()
		switch {
		case x.isHidden || x.isElement && x.writes == nil:
		case x.writes != nil:
			for _, statement := range x.writes {
				s.line("%s", statement)
			}
		case x.codes != "" && x.mask == 0:
			s.line("w.word(%q, %s(uint32(%s)))", x.key, x.codes, field)
		case x.codes != "":
			s.line("w.word(%q, %s[%s&%d])", x.key, x.codes, field, x.mask)
		case x.unit == truth:
			s.line("w.truth(%q, %s != 0)", x.key, field)
		case x.parts != nil:
			s.line("w.key(%q)\nw.open('{')\nw.%s(&%s)\nw.close('}')", x.key, x.parts.call(), field)
		default:
			s.line("w.count(%q, %s)", x.key, field)
		}
	}
	s.line("}")
}

// call returns the name of the object's method.
func (o *object) call() string {
	name, _, _ := strings.Cut(o.method, "(")
	return name
}
