// Package jsonschema checks a JSON document against a JSON Schema (draft 2020-12), for tests. It
// knows the keywords that this project's schemas use. It refuses a schema with any other, so that
// no rule is ignored silently.
package jsonschema

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/big"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

type object = map[string]any

// maxDepth bounds the nesting of rules, and with it a $ref that leads to itself.
const maxDepth = 64

// Validate returns nil if doc satisfies schema, else the first violation.
func Validate(schema, doc []byte) error {
	root, err := Decode(schema)
	if err != nil {
		return fmt.Errorf("schema: %w", err)
	}
	v := validator{root: root}
	if err := v.checkSchema(root, "#", true); err != nil {
		return fmt.Errorf("schema: %w", err)
	}
	value, err := Decode(doc)
	if err != nil {
		return fmt.Errorf("document: %w", err)
	}
	return v.validate(root, value, "$", 0)
}

type validator struct {
	root any
}

// validate applies one schema to one value. path is the value's place in the document.
func (v validator) validate(schema, value any, path string, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("%s: rules nested deeper than %d", path, maxDepth)
	}
	if allowed, isBool := schema.(bool); isBool {
		if !allowed {
			return fmt.Errorf("%s: not allowed", path)
		}
		return nil
	}
	s := schema.(object)
	if ref, ok := s["$ref"].(string); ok {
		if err := v.validate(v.resolve(ref), value, path, depth+1); err != nil {
			return err
		}
	}
	if err := checkValue(s, value, path); err != nil {
		return err
	}
	switch value := value.(type) {
	case object:
		return v.validateObject(s, value, path, depth)
	case []any:
		items, ok := s["items"]
		for i, element := range value {
			if !ok {
				break
			}
			if err := v.validate(items, element, fmt.Sprintf("%s[%d]", path, i),
				depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkValue applies the keywords that do not descend into the value.
func checkValue(s object, value any, path string) error {
	if types, ok := s["type"]; ok && !hasType(types, value) {
		return fmt.Errorf("%s: %v is not of type %v", path, value, types)
	}
	if want, ok := s["const"]; ok && !equal(want, value) {
		return fmt.Errorf("%s: %v is not %v", path, value, want)
	}
	if list, ok := s["enum"].([]any); ok {
		if !slices.ContainsFunc(list, func(want any) bool { return equal(want, value) }) {
			return fmt.Errorf("%s: %v is not among %v", path, value, list)
		}
	}
	if n, ok := value.(json.Number); ok {
		if low, ok := s["minimum"].(json.Number); ok && rat(n).Cmp(rat(low)) < 0 {
			return fmt.Errorf("%s: %v is less than %v", path, n, low)
		}
		if high, ok := s["maximum"].(json.Number); ok && rat(n).Cmp(rat(high)) > 0 {
			return fmt.Errorf("%s: %v is more than %v", path, n, high)
		}
	}
	if text, ok := value.(string); ok {
		if p, ok := s["pattern"].(string); ok && !regexp.MustCompile(p).MatchString(text) {
			return fmt.Errorf("%s: %q does not match %s", path, text, p)
		}
	}
	return nil
}

func (v validator) validateObject(s, value object, path string, depth int) error {
	required, _ := s["required"].([]any)
	for _, name := range required {
		if _, ok := value[name.(string)]; !ok {
			return fmt.Errorf("%s: %q is missing", path, name)
		}
	}
	properties, _ := s["properties"].(object)
	for _, name := range slices.Sorted(maps.Keys(value)) {
		at := path + "." + name
		if names, ok := s["propertyNames"]; ok {
			if err := v.validate(names, name, at+" (name)", depth+1); err != nil {
				return err
			}
		}
		rule, ok := properties[name]
		if !ok {
			rule, ok = s["additionalProperties"]
		}
		if !ok {
			continue
		}
		if err := v.validate(rule, value[name], at, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// resolve finds the schema that a checked $ref names.
func (v validator) resolve(ref string) any {
	if ref == "#" {
		return v.root
	}
	root, _ := v.root.(object)
	defs, _ := root["$defs"].(object)
	return defs[strings.TrimPrefix(ref, "#/$defs/")]
}

func hasType(types, value any) bool {
	if list, ok := types.([]any); ok {
		return slices.ContainsFunc(list, func(t any) bool { return hasType(t, value) })
	}
	switch value := value.(type) {
	case nil:
		return types == "null"
	case bool:
		return types == "boolean"
	case string:
		return types == "string"
	case json.Number:
		return types == "number" || types == "integer" && rat(value).IsInt()
	case []any:
		return types == "array"
	case object:
		return types == "object"
	}
	return false
}

// equal compares as JSON Schema does: numbers by value, so that 1 equals 1.0.
func equal(a, b any) bool {
	switch a := a.(type) {
	case json.Number:
		b, ok := b.(json.Number)
		return ok && rat(a).Cmp(rat(b)) == 0
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, equal)
	case object:
		b, ok := b.(object)
		return ok && maps.EqualFunc(a, b, equal)
	}
	return reflect.DeepEqual(a, b)
}

// rat is the exact value of a decoded number.
func rat(n json.Number) *big.Rat {
	r, _ := new(big.Rat).SetString(n.String())
	return r
}

// Decode reads exactly one JSON value, numbers as json.Number. Unlike
// encoding/json it refuses an object that has a key twice.
func Decode(text []byte) (any, error) {
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.UseNumber()
	value, err := decodeValue(d)
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("text after the value")
	}
	return value, nil
}

func decodeValue(d *json.Decoder) (any, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch token := token.(type) {
	case json.Number:
		// An exponent could ask rat for more digits than there is memory.
		if strings.ContainsAny(token.String(), "eE") {
			return nil, fmt.Errorf("number %s: exponents are not supported", token)
		}
		return token, nil
	case json.Delim:
		if token == '{' {
			return decodeObject(d)
		}
		return decodeArray(d)
	}
	return token, nil
}

func decodeObject(d *json.Decoder) (any, error) {
	result := object{}
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return nil, err
		}
		name := token.(string)
		if _, twice := result[name]; twice {
			return nil, fmt.Errorf("key %q occurs twice", name)
		}
		if result[name], err = decodeValue(d); err != nil {
			return nil, err
		}
	}
	_, err := d.Token()
	return result, err
}

func decodeArray(d *json.Decoder) (any, error) {
	result := []any{}
	for d.More() {
		value, err := decodeValue(d)
		if err != nil {
			return nil, err
		}
		result = append(result, value)
	}
	_, err := d.Token()
	return result, err
}
