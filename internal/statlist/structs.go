package main

import (
	"fmt"
	"strings"
)

// structs returns stats/figures.go, the structures of package stats.
func structs() []byte {
	var s source
	s.WriteString(header + "package stats\n")
	for _, o := range objects {
		if o.names != "" {
			s.names(o)
		}
		if o.goType != "" {
			s.structure(o)
		}
	}
	for i := range publics {
		s.public(&publics[i])
	}
	return s.formatted()
}

// names writes the constants that count an object's keys, and the table of the keys.
func (s *source) names(o *object) {
	const room = 32 // in the table, a power of two; Figures has as many fields
	if len(o.figures) > room {
		panic("no room for more keys of " + o.names)
	}
	s.line("\n// The functions whose calls are counted. A call is counted once, under the name the")
	s.line("// program used.\nconst (")
	for i := range o.figures {
		x := &o.figures[i]
		s.WriteString(o.names + x.fieldName())
		if i == 0 {
			s.WriteString(" uint = iota")
		}
		s.line("")
	}
	s.line("%sCount\n)", o.names)
	table := strings.ToLower(o.names) + "Names"
	s.line("\n// %s are the keys; the rest is padding to a power of two.", table)
	s.line("var %s = [%d]string{", table, room)
	for i := range o.figures {
		x := &o.figures[i]
		s.line("%s%s: %q,", o.names, x.fieldName(), x.key)
	}
	s.line("}")
}

// structure writes the type of an object.
func (s *source) structure(o *object) {
	s.line("")
	s.remarks(o.comment)
	s.line("type %s struct {", o.goType)
	for _, x := range o.fields() {
		s.remark("\t", strings.TrimSpace(x.description()+" "+x.noted))
		if x.embed {
			s.line("%s", x.fieldType())
			continue
		}
		s.line("%s %s", x.fieldName(), x.fieldType())
	}
	s.line("}")
}

// fields returns the fields of the object's type, in their order.
func (o *object) fields() (list []*figure) {
	named := map[string]*figure{}
	for _, from := range []*object{o, o.with} {
		for i := 0; from != nil && i < len(from.figures); i++ {
			if x := &from.figures[i]; x.fieldType() != "" {
				list = append(list, x)
				named[x.fieldName()] = x
			}
		}
	}
	if o.layout == "" {
		return list
	}
	names := strings.Fields(o.layout)
	if len(names) != len(list) {
		panic(fmt.Sprintf("the layout of %s has %d of %d fields", o.goType, len(names), len(list)))
	}
	for i, name := range names {
		if named[name] == nil {
			panic("the layout of " + o.goType + " names " + name +
				" twice, or there is no such field")
		}
		list[i] = named[name]
		delete(named, name)
	}
	return list
}

// public writes the Go type of a structure of tieralloc.h, and the function that fills it.
func (s *source) public(p *public) {
	s.line("")
	s.remark("", p.comment)
	s.line("type %s struct {", p.goType)
	for _, l := range p.lines {
		if l.fields != "" {
			s.line("%s", l.fields)
			continue
		}
		var names []string
		for path := range strings.FieldsSeq(l.paths) {
			names = append(names, p.figure(path).fieldName())
		}
		s.line("%s uint64", strings.Join(names, ", "))
	}
	s.line("}\n\n// From copies what a %s has of it.", p.from)
	s.line("func (p *%s) From(r *%s) {", p.goType, p.from)
	for _, l := range p.lines {
		for path := range strings.FieldsSeq(l.paths) {
			s.line("p.%s = r.%s", p.figure(path).fieldName(), p.expression(path))
		}
		if strings.Contains(l.fields, "Tiers ") {
			s.line("for i := range p.Tiers {\np.Tiers[i].From(&r.Tiers[i])\n}")
		}
	}
	s.line("}")
}

// figure returns the figure that a path of the list names.
func (p *public) figure(path string) *figure {
	if x := p.of.find(path); x != nil {
		return x
	}
	panic(p.c + ": there is no " + path)
}

// expression returns the Go expression for a figure in package stats.
func (p *public) expression(path string) string {
	path = strings.Replace(path, "tiers.fast.", "Tiers[DeviceFast].", 1)
	parts := strings.Split(path, ".")
	for i, key := range parts {
		if i == len(parts)-1 {
			parts[i] = p.figure(strings.Replace(path, "Tiers[DeviceFast].", "tiers.fast.",
				1)).fieldName()
		} else if !strings.HasPrefix(key, "Tiers[") {
			parts[i] = camel(key)
		}
	}
	return strings.Join(parts, ".")
}
