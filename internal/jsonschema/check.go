package jsonschema

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// knownTypes are the names that "type" may give.
var knownTypes = []string{"null", "boolean", "string", "number", "integer", "array", "object"}

// checkSchema refuses a schema that has an unknown keyword, or a keyword whose value it cannot
// apply. It checks every part of the schema, including those that a given document does not reach.
func (v validator) checkSchema(schema any, path string, top bool) error {
	if _, ok := schema.(bool); ok {
		return nil
	}
	s, ok := schema.(object)
	if !ok {
		return fmt.Errorf("%s: %v is no schema", path, schema)
	}
	for _, keyword := range slices.Sorted(maps.Keys(s)) {
		at := path + "/" + keyword
		if !top && slices.Contains([]string{"$schema", "$id", "$defs"}, keyword) {
			return fmt.Errorf("%s: only supported at the top", at)
		}
		if err := v.checkKeyword(keyword, s[keyword], at); err != nil {
			return err
		}
	}
	return nil
}

func (v validator) checkKeyword(keyword string, value any, at string) error {
	ok := true
	switch keyword {
	case "$schema":
		ok = value == "https://json-schema.org/draft/2020-12/schema"
	case "$id", "$comment", "title", "description":
		_, ok = value.(string)
	case "const":
	case "enum":
		_, ok = value.([]any)
	case "minimum", "maximum":
		_, ok = value.(json.Number)
	case "type":
		ok = validType(value)
	case "pattern":
		text, isText := value.(string)
		_, err := regexp.Compile(text)
		ok = isText && err == nil
	case "required":
		ok = isStrings(value)
	case "$ref":
		ref, isText := value.(string)
		ok = isText && (ref == "#" || strings.HasPrefix(ref, "#/$defs/") && v.resolve(ref) != nil)
	case "items", "additionalProperties", "propertyNames":
		return v.checkSchema(value, at, false)
	case "properties", "$defs":
		return v.checkEach(value, at)
	default:
		return fmt.Errorf("%s: this keyword is not supported", at)
	}
	if !ok {
		return fmt.Errorf("%s: %v is not supported", at, value)
	}
	return nil
}

// checkEach checks an object whose values are schemas.
func (v validator) checkEach(value any, at string) error {
	schemas, ok := value.(object)
	if !ok {
		return fmt.Errorf("%s: %v is no object", at, value)
	}
	for _, name := range slices.Sorted(maps.Keys(schemas)) {
		if err := v.checkSchema(schemas[name], at+"/"+name, false); err != nil {
			return err
		}
	}
	return nil
}

func validType(value any) bool {
	if list, ok := value.([]any); ok {
		return !slices.ContainsFunc(list, func(t any) bool {
			name, isText := t.(string)
			return !isText || !slices.Contains(knownTypes, name)
		})
	}
	name, ok := value.(string)
	return ok && slices.Contains(knownTypes, name)
}

func isStrings(value any) bool {
	list, ok := value.([]any)
	return ok && !slices.ContainsFunc(list, func(e any) bool {
		_, isText := e.(string)
		return !isText
	})
}
