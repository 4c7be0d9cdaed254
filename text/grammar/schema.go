package grammar

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// schemas compiles a schema.
type schemas struct {
	b     *builder
	root  json.RawMessage
	rules map[string]int32 // of references, and of any value
	depth int
	err   error
}

// notes are keywords that hold a text to nothing.
var notes = []string{"title", "description", "default", "examples", "$schema", "$id", "$comment", "deprecated",
	"readOnly",
	"writeOnly", "$defs", "definitions", "discriminator", "strict"}

// applies are the keywords of each type.
var applies = map[string][]string{
	"object":  {"properties", "required", "additionalProperties"},
	"array":   {"items", "prefixItems", "minItems", "maxItems"},
	"string":  {"minLength", "maxLength", "pattern", "format"},
	"integer": {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"},
	"number":  {}, "boolean": {}, "null": {},
}

// types are those of JSON, in the order in which they are tried.
var types = []string{"object", "array", "string", "number", "integer", "boolean", "null"}

func (s *schemas) fail(path, keyword, why string, args ...any) int32 {
	if s.err == nil {
		s.err = &Unsupported{path, keyword, fmt.Sprintf(why, args...)}
	}
	return 0
}

// read reads what a schema's keyword says.
func (s *schemas) read(path, keyword string, raw json.RawMessage, into any) bool {
	if raw == nil {
		return false
	}
	if err := json.Unmarshal(raw, into); err != nil {
		s.fail(path, keyword, "its value is %.40s", raw)
		return false
	}
	return true
}

// compile makes the JSON of a schema.
func (s *schemas) compile(raw json.RawMessage, path string, next int32) int32 {
	if s.err != nil || s.b.full {
		return 0
	}
	if s.depth++; s.depth > 100 {
		return s.fail(path, "$ref", "the schema is nested more than 100 deep")
	}
	defer func() { s.depth-- }()
	switch string(bytes.TrimSpace(raw)) {
	case "true", "{}":
		return s.any(next)
	case "false":
		return s.fail(path, "false", "nothing is of such a schema")
	}
	var keys map[string]json.RawMessage
	if json.Unmarshal(raw, &keys) != nil || keys == nil {
		return s.fail(path, "schema", "want an object, not %.40s", raw)
	}
	for _, name := range notes {
		delete(keys, name)
	}
	only := func(keyword string, others ...string) bool {
		if keys[keyword] == nil {
			return false
		}
		for _, k := range slices.Sorted(maps.Keys(keys)) {
			if k != keyword && !slices.Contains(others, k) {
				s.fail(path, k, "beside %s", keyword)
			}
		}
		return true
	}
	switch {
	case len(keys) == 0:
		return s.any(next)
	case only("$ref"):
		return s.reference(keys["$ref"], path, next)
	case only("const", "type"):
		return s.constants([]json.RawMessage{keys["const"]}, keys["type"], path, "const", next)
	case only("enum", "type"):
		var list []json.RawMessage
		if !s.read(path, "enum", keys["enum"], &list) || len(list) == 0 {
			return s.fail(path, "enum", "it has no values")
		}
		return s.constants(list, keys["type"], path, "enum", next)
	case only("anyOf"):
		return s.anyOf(keys["anyOf"], path, "anyOf", next)
	case only("oneOf"):
		return s.oneOf(keys["oneOf"], path, next)
	case only("allOf"):
		var list []json.RawMessage
		if s.read(path, "allOf", keys["allOf"], &list) && len(list) == 1 {
			return s.compile(list[0], path+"/allOf/0", next)
		}
		return s.fail(path, "allOf", "of several schemas")
	}
	return s.typed(keys, path, next)
}

// typed makes the JSON of a schema that says its types.
func (s *schemas) typed(keys map[string]json.RawMessage, path string, next int32) int32 {
	var list []string
	var one string
	raw := keys["type"]
	delete(keys, "type")
	switch {
	case raw == nil:
		for _, t := range types { // those that a keyword is about; others would go past it
			for _, k := range applies[t] {
				if keys[k] != nil && !slices.Contains(list, t) {
					list = append(list, t)
				}
			}
		}
		if len(list) == 0 {
			list = types
		}
	case json.Unmarshal(raw, &one) == nil:
		list = []string{one}
	default:
		s.read(path, "type", raw, &list)
	}
	known := map[string]bool{}
	for _, t := range list {
		if applies[t] == nil {
			return s.fail(path, "type", "the type %q", t)
		}
		for _, k := range applies[t] {
			known[k] = true
		}
	}
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		if !known[k] {
			return s.fail(path, k, "")
		}
	}
	var out []int32
	for _, t := range list {
		out = append(out, s.one(t, keys, path, next))
	}
	if len(out) == 0 {
		return s.fail(path, "type", "there is none")
	}
	return s.b.either(out...)
}

// one makes the JSON of one type.
func (s *schemas) one(t string, keys map[string]json.RawMessage, path string, next int32) int32 {
	switch t {
	case "object":
		return s.object(keys, path, next)
	case "array":
		return s.array(keys, path, next)
	case "string":
		return s.text(keys, path, next)
	case "integer":
		return s.integer(keys, path, next)
	case "number":
		for _, k := range applies["integer"] {
			if keys[k] != nil {
				return s.fail(path, k, "of a number that is no integer")
			}
		}
		return s.b.number(next)
	case "boolean":
		return s.b.either(s.b.literal("true", next), s.b.literal("false", next))
	}
	return s.b.literal("null", next)
}

// any is any JSON.
func (s *schemas) any(next int32) int32 {
	const name = "any value"
	rule, ok := s.rules[name]
	if !ok {
		rule = s.rule(name)
		pop := s.b.add(node{kind: popNode})
		var all []int32
		for _, t := range types {
			if t != "integer" {
				all = append(all, s.one(t, map[string]json.RawMessage{"additionalProperties": []byte("true")}, "", pop))
			}
		}
		s.b.rules[rule] = s.b.either(all...)
	}
	return s.b.call(rule, next)
}

// rule is a new rule, whose beginning is not known yet.
func (s *schemas) rule(name string) int32 {
	rule := int32(len(s.b.rules))
	s.rules[name] = rule
	s.b.rules = append(s.b.rules, 0)
	return rule
}

// reference makes what a reference within the schema points to.
func (s *schemas) reference(raw json.RawMessage, path string, next int32) int32 {
	var to string
	if !s.read(path, "$ref", raw, &to) {
		return 0
	}
	if to != "#" && !strings.HasPrefix(to, "#/") {
		return s.fail(path, "$ref", "%q is not within the schema", to)
	}
	rule, ok := s.rules[to]
	if !ok {
		at := s.root
		for _, step := range strings.Split(strings.TrimPrefix(to, "#"), "/") {
			if step == "" {
				continue
			}
			step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
			var keys map[string]json.RawMessage
			if json.Unmarshal(at, &keys) != nil || keys[step] == nil {
				return s.fail(path, "$ref", "there is no %s", to)
			}
			at = keys[step]
		}
		rule = s.rule(to)
		start := s.compile(at, to, s.b.add(node{kind: popNode}))
		s.b.rules[rule] = start
	}
	return s.b.call(rule, next)
}

// constants are values as they are, of those that have the type.
func (s *schemas) constants(list []json.RawMessage, kind json.RawMessage, path, keyword string, next int32) int32 {
	var want []string
	var one string
	if kind != nil {
		if json.Unmarshal(kind, &one) == nil {
			want = []string{one}
		} else {
			s.read(path, "type", kind, &want)
		}
	}
	var out []int32
	for _, raw := range list {
		var text bytes.Buffer
		if json.Compact(&text, raw) != nil {
			return s.fail(path, keyword, "its value is %.40s", raw)
		}
		if kind == nil || slices.ContainsFunc(want, func(t string) bool { return isOf(raw, t) }) {
			out = append(out, s.b.literal(text.String(), next))
		}
	}
	if len(out) == 0 {
		return s.fail(path, keyword, "no value has the type")
	}
	return s.b.either(out...)
}

// isOf reports whether a value has a type.
func isOf(raw json.RawMessage, t string) bool {
	var v any
	_ = json.Unmarshal(raw, &v) // it was read before
	switch v := v.(type) {
	case map[string]any:
		return t == "object"
	case []any:
		return t == "array"
	case string:
		return t == "string"
	case bool:
		return t == "boolean"
	case float64:
		return t == "number" || t == "integer" && v == math.Trunc(v)
	}
	return t == "null"
}

func (s *schemas) anyOf(raw json.RawMessage, path, keyword string, next int32) int32 {
	var list []json.RawMessage
	if !s.read(path, keyword, raw, &list) || len(list) == 0 {
		return s.fail(path, keyword, "it has no schemas")
	}
	var out []int32
	for i, one := range list {
		out = append(out, s.compile(one, fmt.Sprintf("%s/%s/%d", path, keyword, i), next))
	}
	return s.b.either(out...)
}

// oneOf is anyOf where no value is of two of the schemas: they have different types, or a property whose constants
// differ.
func (s *schemas) oneOf(raw json.RawMessage, path string, next int32) int32 {
	var list []json.RawMessage
	if !s.read(path, "oneOf", raw, &list) {
		return 0
	}
	for i := range list {
		for j := range i {
			if !s.apart(list[i], list[j]) {
				return s.fail(path, "oneOf", "a value may be of two of its schemas; these are told apart by their types, or by "+
					"a required property with different constants")
			}
		}
	}
	return s.anyOf(raw, path, "oneOf", next)
}

// resolved is a schema, or what it refers to.
func (s *schemas) resolved(raw json.RawMessage) map[string]json.RawMessage {
	var keys map[string]json.RawMessage
	for range 20 {
		keys = nil
		if json.Unmarshal(raw, &keys) != nil || keys["$ref"] == nil {
			break
		}
		var to string
		_ = json.Unmarshal(keys["$ref"], &to)
		raw = s.root
		for _, step := range strings.Split(strings.TrimPrefix(to, "#"), "/") {
			var at map[string]json.RawMessage
			if step != "" && json.Unmarshal(raw, &at) == nil {
				raw = at[step]
			}
		}
	}
	return keys
}

// apart reports whether no value is of both schemas.
func (s *schemas) apart(a, b json.RawMessage) bool {
	x, y := s.resolved(a), s.resolved(b)
	kind := func(keys map[string]json.RawMessage) (t string) {
		_ = json.Unmarshal(keys["type"], &t)
		if t == "integer" {
			t = "number"
		}
		return t
	}
	if kx, ky := kind(x), kind(y); kx != "" && ky != "" && kx != ky {
		return true
	}
	values := func(keys map[string]json.RawMessage) map[string][]string {
		var properties map[string]json.RawMessage
		var required []string
		_ = json.Unmarshal(keys["properties"], &properties)
		_ = json.Unmarshal(keys["required"], &required)
		out := map[string][]string{}
		for _, name := range required {
			p := s.resolved(properties[name])
			var list []json.RawMessage
			if p["const"] != nil {
				list = []json.RawMessage{p["const"]}
			} else if json.Unmarshal(p["enum"], &list) != nil {
				continue
			}
			for _, v := range list {
				out[name] = append(out[name], string(v))
			}
		}
		return out
	}
	vx, vy := values(x), values(y)
	for name, list := range vx {
		if other := vy[name]; len(list) > 0 && len(other) > 0 &&
			!slices.ContainsFunc(list, func(v string) bool { return slices.Contains(other, v) }) {
			return true
		}
	}
	if x["const"] != nil && y["const"] != nil {
		return string(x["const"]) != string(y["const"])
	}
	return false
}
