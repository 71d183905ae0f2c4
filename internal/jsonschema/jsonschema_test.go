package jsonschema

import (
	"strings"
	"testing"
)

// TestValidate has for each keyword a document that passes and one that fails.
func TestValidate(t *testing.T) {
	for _, c := range []struct{ schema, good, bad string }{
		{`false`, ``, `1`},
		{`true`, `1`, ``},
		{`{"type":"integer"}`, `3`, `3.5`},
		{`{"type":"integer"}`, `3.0`, `"3"`},
		{`{"type":"integer"}`, `18446744073709551615`, `null`},
		{`{"type":"number"}`, `0.25`, `true`},
		{`{"type":"boolean"}`, `true`, `1`},
		{`{"type":"null"}`, `null`, `0`},
		{`{"type":"array"}`, `[]`, `{}`},
		{`{"type":"object"}`, `{}`, `[]`},
		{`{"type":["string","null"]}`, `null`, `1`},
		{`{"const":1}`, `1.0`, `2`},
		{`{"const":{"a":[1]}}`, `{"a":[1]}`, `{"a":[2]}`},
		{`{"enum":["a",2]}`, `2`, `"b"`},
		{`{"minimum":0}`, `0`, `-1`},
		{`{"minimum":18446744073709551615}`, `18446744073709551615`, `18446744073709551614`},
		{`{"maximum":1}`, `1`, `1.0001`},
		{`{"pattern":"^[0-9]+$"}`, `"12"`, `"1a"`},
		{`{"required":["a"]}`, `{"a":1}`, `{"b":1}`},
		{`{"properties":{"a":{"type":"string"}}}`, `{"a":"","b":1}`, `{"a":1}`},
		{`{"properties":{"a":true},"additionalProperties":false}`, `{"a":1}`, `{"b":1}`},
		{`{"additionalProperties":{"type":"integer"}}`, `{"b":1}`, `{"b":""}`},
		{`{"propertyNames":{"pattern":"^x"}}`, `{"x1":1}`, `{"y":1}`},
		{`{"items":{"minimum":3}}`, `[3,4]`, `[3,2]`},
		{`{"$defs":{"n":{"minimum":1}},"items":{"$ref":"#/$defs/n"}}`, `[1]`, `[0]`},
		{`{"$defs":{"n":{"minimum":1}},"$ref":"#/$defs/n","maximum":2}`, `2`, `3`},
		{`{"properties":{"next":{"$ref":"#"}},"additionalProperties":false}`,
			`{"next":{"next":{}}}`, `{"next":{"other":{}}}`},
		{`{"$ref":"#"}`, ``, `1`},
		{`{}`, `{"a":1,"b":1}`, `{"a":1,"a":1}`},
		{`{}`, `1`, `1 2`},
		{`{}`, `1`, `1 }`},
		{`{}`, `1`, `1e9`},
		{`{}`, `[1]`, `[1`},
		{`{}`, `[1]`, ` `},
	} {
		if err := Validate([]byte(c.schema), []byte(c.good)); c.good != "" && err != nil {
			t.Errorf("%s refuses %s: %v", c.schema, c.good, err)
		}
		if c.bad != "" && Validate([]byte(c.schema), []byte(c.bad)) == nil {
			t.Errorf("%s accepts %s", c.schema, c.bad)
		}
	}
}

// TestSchemaRefused has schemas that this package must not pretend to apply, each
// with a document that reaches none of the bad part.
func TestSchemaRefused(t *testing.T) {
	for _, schema := range []string{
		`{"minLength":1}`,
		`{"properties":{"a":{"oneOf":[]}}}`,
		`{"$defs":{"a":{"format":"date"}}}`,
		`{"additionalProperties":{"items":{"not":true}}}`,
		`{"items":[true]}`,
		`{"type":"int"}`,
		`{"type":["int"]}`,
		`{"required":"a"}`,
		`{"pattern":"("}`,
		`{"$ref":"#/$defs/none"}`,
		`{"$ref":"other.json"}`,
		`{"properties":{"a":{"$defs":{}}}}`,
		`{"$schema":"http://json-schema.org/draft-07/schema#"}`,
		`{"type":"object","type":"array"}`,
		`1`,
		`{`,
	} {
		err := Validate([]byte(schema), []byte(`null`))
		if err == nil || !strings.HasPrefix(err.Error(), "schema:") {
			t.Errorf("%s: %v", schema, err)
		}
	}
}
