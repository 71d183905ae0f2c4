package main

import (
	"encoding/json"
	"strings"
)

// member is a member of a JSON object. The order of members is kept.
type member struct {
	key   string
	value any // a string, a bool, a fragment of JSON, a list of strings, or members
}

type members []member

// schema returns docs/stats.schema.json.
func schema() []byte {
	top := members{
		{"$schema", "https://json-schema.org/draft/2020-12/schema"},
		{"title", "tieralloc statistics"},
		{"description", aboutReport},
		{"$comment", aboutExactness},
	}
	top = append(top, report.schema("")...)
	most := func(description string) members {
		return members{{"type", "integer"}, {"minimum", json.RawMessage("0")},
			{"maximum", json.RawMessage("18446744073709551615")}, {"description", description}}
	}
	defs := members{
		{"count", most("A number of things, without unit.")},
		{"bytes", most("A number of bytes.")},
		{"node", members{{"type", "integer"}, {"minimum", json.RawMessage("0")},
			{"maximum", json.RawMessage("1023")}, {"description", "Number of a NUMA node."}}},
		{"ns", most("Nanoseconds.")},
	}
	for _, o := range objects {
		if o.def != "" {
			defs = append(defs, member{o.def, o.schema(o.meaning)})
		}
	}
	var out strings.Builder
	writeJSON(&out, append(top, member{"$defs", defs}), 0)
	return []byte(out.String() + "\n")
}

// schema returns the schema of an object.
func (o *object) schema(description string) (m members) {
	m = append(m, member{"type", "object"})
	if description != "" {
		m = append(m, member{"description", description})
	}
	var required []string
	var properties members
	for i := range o.figures {
		x := &o.figures[i]
		if x.isHidden {
			continue
		}
		if !x.absent() {
			required = append(required, x.key)
		}
		properties = append(properties, member{x.key, x.schemaOf()})
	}
	return append(m, member{"additionalProperties", false}, member{"required", required},
		member{"properties", properties})
}

// absent reports whether a report may lack the key.
func (x *figure) absent() bool { return strings.Contains(x.meaning, "The key is absent when") }

// refs are the definitions of plain numbers.
var refs = map[unit]string{count: "count", bytes: "bytes", limit: "bytes", rate: "bytes", ns: "ns"}

func (x *figure) schemaOf() members {
	description := member{"description", x.description()}
	ref := func(name string) members { return members{{"$ref", "#/$defs/" + name}} }
	switch {
	case x.fragment != "":
		return append(fragment(x.fragment), description)
	case x.isElement && x.parts.def != "":
		return members{{"type", "array"}, description, {"items", ref(x.parts.def)}}
	case x.shared:
		return append(ref(x.parts.def), description)
	case x.parts != nil:
		return x.parts.schema(x.meaning)
	case x.enum != nil:
		return members{{"enum", x.enum}, description}
	case x.unit == ratio:
		return members{{"type", "number"}, {"minimum", json.RawMessage("0")},
			{"maximum", json.RawMessage("1")}, description}
	case x.unit == truth:
		return members{{"type", "boolean"}, description}
	case x.unit == text:
		return members{{"type", "string"}, description}
	}
	return append(ref(refs[x.unit]), description)
}

// fragment parses a flat JSON object and keeps the order of its keys.
func fragment(text string) (m members) {
	d := json.NewDecoder(strings.NewReader(text))
	if _, err := d.Token(); err != nil {
		panic(err)
	}
	for d.More() {
		key, _ := d.Token()
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			panic(err)
		}
		m = append(m, member{key.(string), value})
	}
	return m
}

// writeJSON writes a value, on one line if it fits and is not an object of objects.
func writeJSON(out *strings.Builder, v any, depth int) {
	indent := strings.Repeat("  ", depth+1)
	switch v := v.(type) {
	case members:
		if line, ok := oneLine(v, columns-2*depth-30); ok {
			out.WriteString(line)
			return
		}
		out.WriteString("{\n")
		for i, m := range v {
			out.WriteString(indent + encode(m.key) + ": ")
			writeJSON(out, m.value, depth+1)
			out.WriteString(comma(i, len(v)) + "\n")
		}
		out.WriteString(indent[2:] + "}")
	case []string:
		quoted := make([]string, len(v))
		for i, s := range v {
			quoted[i] = encode(s) + comma(i, len(v))
		}
		line := strings.Join(quoted, " ")
		if len(line) < columns-2*depth-30 {
			out.WriteString("[" + line + "]")
			return
		}
		// A key with a blank in it stays whole.
		for i := range quoted {
			quoted[i] = strings.ReplaceAll(quoted[i], " ", "\x00")
		}
		lines := wrap(strings.Join(quoted, " "), columns-len(indent))
		all := strings.Join(lines, "\n"+indent)
		out.WriteString("[\n" + indent + strings.ReplaceAll(all, "\x00", " ") + "\n" + indent[2:] +
			"]")
	default:
		out.WriteString(encode(v))
	}
}

// oneLine returns an object of plain values on one line, if it fits in so many columns.
func oneLine(v members, width int) (line string, ok bool) {
	line = "{ "
	for i, m := range v {
		switch m.value.(type) {
		case members, []string:
			return "", false
		}
		line += encode(m.key) + ": " + encode(m.value) + comma(i, len(v)) + " "
	}
	return line + "}", len(line) < width
}

func comma(i, n int) string {
	if i+1 < n {
		return ","
	}
	return ""
}

// encode returns a plain value as JSON, without escapes of <, > and &.
func encode(v any) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err)
	}
	return strings.TrimSuffix(b.String(), "\n")
}
