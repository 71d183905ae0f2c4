package main

import "strings"

// unit is the unit of a figure, or the type of a value that is not a number.
type unit int

const (
	count unit = iota // a number of things
	bytes             // a number of bytes
	limit             // a number of bytes, 0 for no limit
	rate              // bytes per second, 0 for no limit
	ns                // nanoseconds
	ratio             // a fraction of 1, computed from other figures
	word              // one of a few words
	text              // a string
	truth             // true or false
	group             // an object with other figures
	list              // an array
)

var unitNames = [...]string{"number", "bytes", "bytes, 0: no limit", "bytes/s, 0: no limit", "ns",
	"0 to 1", "word", "text", "true or false", "object", "array"}

// kind is how a figure changes over time.
type kind int

const (
	gauge   kind = iota // a current value: it rises and falls
	counter             // it never falls
	peak                // the largest value of a gauge
	derived             // computed from other figures when the report is written
	setting             // a setting, or an identification
	nested              // it holds other figures
)

// kindNames are the headings of the kinds on the page.
var kindNames = [...]string{"Gauges", "Counters", "Peaks", "Derived", "Settings", "Parts"}

// The exactness of a figure. Its description begins with it.
const (
	plain        = ""
	exact        = "Exact."
	inSpans      = "Exact, in whole spans."
	inClasses    = "Exact, in class-rounded bytes."
	inPages      = "Exact, in whole pages."
	ofParts      = "As exact as its parts, cut to four decimals."
	spanGranular = "Span-granular."
	sampled      = "Sampled."
)

// exactMarks are the marks on the page of what is not plainly exact.
var exactMarks = map[string]string{inSpans: "whole spans", inClasses: "class-rounded",
	inPages: "whole pages", spanGranular: "span-granular", sampled: "sampled"}

// figure is one key of the report.
type figure struct {
	key     string
	unit    unit
	kind    kind
	exact   string
	meaning string

	name      string   // of the field in package stats; "": the key's, in Go's spelling
	goType    string   // of that field; "": uint64, and none where write is set
	noted     string   // a note on the field, for the code that fills it in
	writes    []string // Go statements that write it; none: as its unit asks for
	codes     string   // table of words that the field is an index of, or function of config
	mask      int      // of that index, 0 for a function
	enum      []string // those words
	fragment  string   // its schema, as JSON; "": as its unit asks for
	parts     *object  // the figures that it holds, of an array those of each element
	shared    bool     // the schema refers to the parts, which several figures have
	embed     bool     // the field is embedded
	toolType  string   // of the field in the tool; "-": none
	isHidden  bool     // a field without a key
	isObvious bool     // the page gives no meaning, because the key says it
	isElement bool     // the parts are those of an array's elements
}

// object is a group of figures.
type object struct {
	title   string // in docs/statistics.md
	figures []figure
	def     string  // name in the schema's $defs; "": the object occurs once
	meaning string  // of such an object
	like    *object // an earlier object on the page, whose figures of the same meaning it repeats
	each    string  // how each meaning begins, where the page shows the keys in one sentence

	goType  string   // in package stats; "": it has no structure of its own
	comment []string // of that type, by lines; long ones are wrapped
	layout  string   // order of its fields where it is not that of the keys
	with    *object  // whose fields the structure has too
	method  string   // of document's writer, that writes the members
	arg     string   // its argument
	begin   string   // its first statement
	names   string   // prefix of the constants that count its keys, which have no fields
	tool    string   // type in the tool; "": none
}

// f returns a figure. The methods below set properties that differ from the usual.
func f(key string, u unit, k kind, exact, meaning string) figure {
	return figure{key: key, unit: u, kind: k, exact: exact, meaning: meaning}
}

// hidden returns a field that is not in the report.
func hidden(name, goType, note string) figure {
	return figure{name: name, goType: goType, noted: note, isHidden: true}
}

// field sets a name of the field in package stats that differs from the key.
func (x figure) field(name, goType string) figure { x.name, x.goType = name, goType; return x }

// typed sets a type of the field other than uint64.
func (x figure) typed(goType string) figure { x.goType = goType; return x }

// embedded embeds the field.
func (x figure) embedded(goType string) figure {
	x.name, x.goType, x.embed = goType, goType, true
	return x
}

// named sets a name of the constant that differs from the key.
func (x figure) named(name string) figure { x.name = name; return x }

// obvious leaves the meaning out of the page.
func (x figure) obvious() figure { x.isObvious = true; return x }

// note adds to the field's comment.
func (x figure) note(text string) figure { x.noted = text; return x }

// write sets the Go statements that write the figure.
func (x figure) write(statements ...string) figure { x.writes = statements; return x }

// coded writes the field as a word of a table in package document.
func (x figure) coded(table string, mask int) figure { x.codes, x.mask = table, mask; return x }

// words sets the words that a figure may be.
func (x figure) words(words ...string) figure { x.enum = words; return x }

// config writes the field as a word, by a function of package config that has count words.
func (x figure) config(name string, word func(uint32) string, count uint32) figure {
	x.codes = "config." + name
	for code := range count {
		x.enum = append(x.enum, word(code))
	}
	return x
}

// schema sets the figure's schema, without the description.
func (x figure) schema(json string) figure { x.fragment = json; return x }

// of sets the figures of an object that occurs once.
func (x figure) of(o *object) figure { x.parts = o; return x }

// ref sets the figures of an object that occurs several times.
func (x figure) ref(o *object) figure { x.parts, x.shared = o, true; return x }

// list sets the figures of the elements of an array.
func (x figure) list(o *object) figure { x.parts, x.isElement = o, true; return x }

// tool sets the type of the tool's field. Without a type the tool does not read the figure.
func (x figure) tool(goType string) figure {
	x.toolType = goType
	if goType == "" {
		x.toolType = "-"
	}
	return x
}

// description returns the figure's description in the schema.
func (x *figure) description() string { return strings.TrimSpace(x.exact + " " + x.meaning) }

// fieldName returns the name of the figure's field in package stats.
func (x *figure) fieldName() string {
	if x.name != "" {
		return x.name
	}
	return camel(x.key)
}

// fieldType returns the type of that field, "" if there is none.
func (x *figure) fieldType() string {
	switch {
	case x.goType != "":
		return x.goType
	case x.writes != nil || x.parts != nil:
		return ""
	}
	return "uint64"
}

// camel returns a key in Go's spelling.
func camel(key string) string {
	var b strings.Builder
	for _, part := range strings.FieldsFunc(key,
		func(r rune) bool { return r == '_' || r == ' ' }) {
		if part == "bw" {
			part = "BW"
		}
		b.WriteString(strings.ToUpper(part[:1]) + part[1:])
	}
	return b.String()
}

// find returns the figure that a path of keys, separated by dots, names.
func (o *object) find(path string) *figure {
	key, rest, more := strings.Cut(path, ".")
	for i := range o.figures {
		switch x := &o.figures[i]; {
		case x.key != key || x.isHidden:
		case more:
			return x.parts.find(rest)
		default:
			return x
		}
	}
	return nil
}
