package main

import (
	"fmt"
	"strings"
)

// reader returns cmd/tierallocctl/figures.go: the tool's types for a report, and its tables.
func reader() []byte {
	var s source
	s.WriteString(header + "package main\n\nimport \"strconv\"\n")
	for _, o := range objects {
		if o.tool != "" {
			s.toolType(o)
		}
	}
	for i := range tables {
		s.table(&tables[i])
	}
	return s.formatted()
}

// toolType writes the tool's type of an object, with all figures of every object that has it.
func (s *source) toolType(o *object) {
	s.line("\n// %s is a part of a report (docs/statistics.md): %s.", o.tool, o.title)
	s.line("type %s struct {", o.tool)
	for i := range o.figures {
		x := &o.figures[i]
		if !x.isHidden && x.toolType != "-" {
			s.line("%s %s `json:%q`", camel(x.key), x.inTool(), x.key)
		}
	}
	s.line("}")
}

// inTool returns the type of a figure in the tool.
func (x *figure) inTool() string {
	switch {
	case x.toolType != "":
		return x.toolType
	case x.parts != nil:
		return x.parts.tool
	}
	switch x.unit {
	case ratio:
		return "float64"
	case truth:
		return "bool"
	case word, text:
		return "string"
	}
	return "uint64"
}

// shows lists the tool's functions that format a figure, by its unit.
var shows = map[unit]string{count: "count(%s)", bytes: "size(%s)", limit: "limit(%s)",
	ns: "duration(%s)", ratio: "ratio(%s)", word: "%s", text: "%s"}

func (s *source) table(t *table) {
	s.line("\n// %s shows %s.", t.variable, t.of.title)
	s.line("var %s = []figure[*%s]{", t.variable, t.of.tool)
	for _, r := range t.rows {
		x := t.of.find(r.path)
		if x == nil {
			panic(t.variable + ": there is no " + r.path)
		}
		text := r.text
		if text == "" {
			parts := strings.Split(r.path, ".")
			for i := range parts {
				parts[i] = camel(parts[i])
			}
			text = fmt.Sprintf(shows[x.unit], t.arg+"."+strings.Join(parts, "."))
		}
		row := fmt.Sprintf("{%q, func(%s *%s) string { return %s }},", r.label, t.arg, t.of.tool,
			text)
		if len(row) > columns-4 {
			row = strings.NewReplacer("{ return", "{\nreturn", " }},", "\n}},").Replace(row)
		}
		s.line("%s", row)
	}
	s.line("}")
}
