package grammar

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// takes reports whether a schema takes a value, by the specification: of the keywords that are supported, and written
// without a look at how texts are made.
func takes(root, schema any, v any) bool {
	s, ok := schema.(map[string]any)
	if !ok {
		return schema == true
	}
	if to, ok := s["$ref"].(string); ok {
		at := root
		for _, step := range strings.Split(strings.TrimPrefix(to, "#"), "/")[1:] {
			at = at.(map[string]any)[step]
		}
		return takes(root, at, v)
	}
	count := func(k string, otherwise float64) float64 {
		if n, ok := s[k].(float64); ok {
			return n
		}
		return otherwise
	}
	matches := func(k string) (n int) {
		for _, one := range s[k].([]any) {
			if takes(root, one, v) {
				n++
			}
		}
		return n
	}
	kinds := map[string]bool{}
	switch t := s["type"].(type) {
	case string:
		kinds[t] = true
	case []any:
		for _, one := range t {
			kinds[one.(string)] = true
		}
	}
	is := func(t string) bool { return len(kinds) == 0 || kinds[t] }
	if c, ok := s["const"]; ok && !reflect.DeepEqual(c, v) {
		return false
	}
	if list, ok := s["enum"].([]any); ok {
		found := false
		for _, one := range list {
			found = found || reflect.DeepEqual(one, v)
		}
		if !found {
			return false
		}
	}
	if s["anyOf"] != nil && matches("anyOf") == 0 || s["oneOf"] != nil && matches("oneOf") != 1 ||
		s["allOf"] != nil && matches("allOf") != len(s["allOf"].([]any)) {
		return false
	}
	switch v := v.(type) {
	case nil:
		return is("null")
	case bool:
		return is("boolean")
	case float64:
		whole := v == float64(int64(v))
		return (is("number") || whole && is("integer")) && v >= count("minimum", -1e300) && v <= count("maximum", 1e300) &&
			v > count("exclusiveMinimum", -1e301) && v < count("exclusiveMaximum", 1e301)
	case string:
		n := float64(utf8.RuneCountInString(v))
		if p, ok := s["pattern"].(string); ok && !regexp.MustCompile(p).MatchString(v) {
			return false
		}
		return is("string") && n >= count("minLength", 0) && n <= count("maxLength", 1e9)
	case []any:
		prefix, _ := s["prefixItems"].([]any)
		for i, e := range v {
			switch {
			case i < len(prefix):
				if !takes(root, prefix[i], e) {
					return false
				}
			case s["items"] != nil && !takes(root, s["items"], e):
				return false
			}
		}
		return is("array") && float64(len(v)) >= count("minItems", 0) && float64(len(v)) <= count("maxItems", 1e9)
	case map[string]any:
		properties, _ := s["properties"].(map[string]any)
		required, _ := s["required"].([]any)
		for _, name := range required {
			if _, ok := v[name.(string)]; !ok {
				return false
			}
		}
		for name, e := range v {
			if p, ok := properties[name]; ok {
				if !takes(root, p, e) {
					return false
				}
			} else if more, ok := s["additionalProperties"]; ok && !takes(root, more, e) {
				return false
			}
		}
		return is("object")
	}
	return false
}

// bytewise is the vocabulary of all bytes, some pairs and longer texts, and an end.
func bytewise() *Words {
	texts := []string{""}
	for c := range 256 {
		texts = append(texts, string([]byte{byte(c)}))
	}
	texts = append(texts, `{"`, `":`, `", "`, `"}`, `]}`, "true", "null", " the", "日本", "\xe6\x97", `\n`, "12", "{}", "[]")
	return NewWords(len(texts), func(id int32) ([]byte, bool, bool) { return []byte(texts[id]), false, true }, []int32{0})
}

var schemasThatAreHeldTo = []string{
	`{"type": "object"}`, `{}`, `true`, `{"type": "array"}`, `{"type": ["string", "null"]}`, `{"type": "integer"}`,
	`{"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}, "required": ["a", "b"],
		"additionalProperties": false}`,
	`{"type": "object", "properties": {"a": {"type": "boolean"}, "b": {"type": "null"}, "c": {"type": "number"}},
		"required": ["b"]}`,
	`{"type": "object", "properties": {"a": {"type": "boolean"}, "ab": {"type": "null"}, "é\"<": {"const": 1}},
		"additionalProperties": {"type": "integer"}}`,
	`{"type": "object", "additionalProperties": {"type": "array", "items": {"type": "boolean"}}, "required": ["x"]}`,
	`{"type": "array", "items": {"type": "integer", "minimum": -3, "maximum": 12}, "minItems": 2, "maxItems": 4}`,
	`{"type": "array", "prefixItems": [{"type": "string"}, {"type": "null"}], "items": {"type": "boolean"}}`,
	`{"type": "array", "prefixItems": [{"const": 1}, {"const": 2}], "items": false, "minItems": 1}`,
	`{"type": "integer", "minimum": 95, "exclusiveMaximum": 1203}`, `{"type": "integer", "maximum": -7}`,
	`{"type": "integer", "exclusiveMinimum": -1}`, `{"enum": ["a", 2, null, {"x": [1, "<&>"]}]}`,
	`{"type": "string", "enum": ["red", "green", 3]}`, `{"const": {"a": [true]}}`,
	`{"type": "string", "minLength": 2, "maxLength": 5}`, `{"type": "string", "pattern": "^[A-Z]{2}-\\d+(é|\\\"|日)?$"}`,
	`{"type": "string", "pattern": "^(a|[^\\x00-\\x7f])x?$"}`,
	`{"type": "string", "pattern": "^.{3}\\\\$"}`, `{"anyOf": [{"type": "integer"}, {"type": "string", "maxLength": 3}]}`,
	`{"oneOf": [{"type": "object", "properties": {"k": {"const": "a"}}, "required": ["k"]},
		{"type": "object", "properties": {"k": {"const": "b"}, "v": {"type": "number"}}, "required": ["k", "v"]}]}`,
	`{"$defs": {"n": {"type": "object", "properties": {"v": {"type": "integer"}, "next": {"anyOf": [{"$ref": "#/$defs/n"},
		{"type": "null"}]}}, "required": ["v", "next"]}}, "$ref": "#/$defs/n", "title": "list"}`,
	`{"allOf": [{"type": "boolean"}]}`, `{"properties": {"a": {"$ref": "#"}}, "additionalProperties": false}`,
}

// TestTextsAreOfTheirSchema: what comes of tokens that are drawn at random of those that are allowed, up to one that
// ends the text, is JSON, and the schema takes it. Some texts do not end in time; most do.
func TestTextsAreOfTheirSchema(t *testing.T) {
	words := bytewise()
	random := rand.New(rand.NewPCG(3, 4))
	for _, raw := range schemasThatAreHeldTo {
		raw = strings.TrimPrefix(raw, ",")
		if strings.HasPrefix(raw, `{"$defs"`) { // a reference beside other keywords is refused: it stands in anyOf
			raw = strings.Replace(raw, `"$ref": "#/$defs/n", "title": "list"`, `"anyOf": [{"$ref": "#/$defs/n"}]`, 1)
		}
		a, err := Compile(Form{Choices: [][]Part{{{Schema: json.RawMessage(raw)}}}}, words)
		require.NoError(t, err, raw)
		var schema any
		require.NoError(t, json.Unmarshal([]byte(raw), &schema))
		ended := 0
		for range 60 {
			text := drawn(t, a, "", random)
			if text == nil {
				continue
			}
			ended++
			var v any
			require.NoError(t, json.Unmarshal(text, &v), "%s: %q", raw, text)
			require.True(t, takes(schema, schema, v), "%s: %s", raw, text)
		}
		require.Greater(t, ended, 10, raw)
	}
}

// drawn is a text of tokens that are drawn at random; nil: it does not end in time. What closes comes oftener, so that
// many do.
func drawn(t *testing.T, a *Automaton, after string, random *rand.Rand) []byte {
	t.Helper()
	text := a.Begin(after)
	var out []byte
	for range 600 {
		mask := text.Allowed()
		var list []int32
		for id := range int32(a.words.size) {
			if mask[id/64]>>(id%64)&1 == 1 {
				list = append(list, id)
				if b := a.words.bytes(id); a.words.ends[id] || len(b) == 1 && strings.Contains(`"]}`, string(b)) {
					list = append(list, slicesOf(id, 20)...)
				}
			}
		}
		require.NotEmpty(t, list, "%q", out)
		id := list[random.IntN(len(list))]
		require.NoError(t, text.Accept(id))
		if a.words.ends[id] {
			return out
		}
		out = append(out, a.words.bytes(id)...)
	}
	return nil
}

func slicesOf(id int32, n int) []int32 {
	out := make([]int32, n)
	for i := range out {
		out[i] = id
	}
	return out
}

// TestTextsThatMayCome: texts of a schema come to an end by their bytes, and others do not.
func TestTextsThatMayCome(t *testing.T) {
	person := `{"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}, "required":
		["name"], "additionalProperties": false}`
	for _, c := range []struct {
		schema, text string
		want         bool
	}{
		{person, `{"name": "A", "age": 3}`, true}, {person, `{"name":"A"}`, true}, {person, "{\n  \"name\": \"é\\u00e9\"\n}",
			true},
		{person, `{"age": 3}`, false}, {person, `{"name": 3}`, false}, {person, `{"name": "A", "x": 1}`, false},
		{person, `{"name": "A"`, false}, {person, `{"name": "A", }`, false}, {person, `{"name": "\x"}`, false},
		{`{"type": "number"}`, `-0.5e-3`, true}, {`{"type": "number"}`, `01`, false}, {`{"type": "number"}`, `1.`, false},
		{`{"type": "integer"}`, `-12`, true}, {`{"type": "integer"}`, `1.5`, false},
		{`{"type": "string"}`, "\"\x80\"", false}, {`{"type": "string"}`, "\"\n\"", false},
		{`{"type": "string"}`, `"\ud83d"`, false}, {`{"type": "string"}`, "\"\xed\xa0\x80\"", false},
		{`{"type": "string", "format": "date-time"}`, `"2024-02-28T23:59:59Z"`, true},
		{`{"type": "string", "format": "date"}`, `"2024-13-01"`, false},
		{`{"type": "string", "format": "ipv4"}`, `"255.1.0.10"`, true}, {`{"type": "string", "format": "ipv4"}`,
			`"256.1.0.1"`, false},
	} {
		a, err := Compile(Form{Choices: [][]Part{{{Schema: json.RawMessage(c.schema)}}}}, bytewise())
		require.NoError(t, err, c.schema)
		text, ok := a.Begin(""), true
		for i := range len(c.text) {
			if ok = text.Accept(int32(c.text[i])+1) == nil; !ok {
				break
			}
		}
		require.Equal(t, c.want, ok && text.Done(), "%s: %s", c.schema, c.text)
	}
}

// TestUnsupportedKeywords are errors that name them.
func TestUnsupportedKeywords(t *testing.T) {
	for raw, keyword := range map[string]string{
		`{"type": "object", "patternProperties": {}}`:                             "patternProperties",
		`{"not": {"type": "string"}}`:                                             "not",
		`{"type": "array", "uniqueItems": true}`:                                  "uniqueItems",
		`{"type": "number", "minimum": 3}`:                                        "minimum",
		`{"type": ["integer", "number"], "maximum": 3}`:                           "maximum",
		`{"type": "integer", "multipleOf": 3}`:                                    "multipleOf",
		`{"type": "string", "format": "color"}`:                                   "format",
		`{"type": "string", "pattern": "(?=x)"}`:                                  "pattern",
		`{"type": "string", "pattern": "a\\b"}`:                                   "pattern",
		`{"type": "king"}`:                                                        "type",
		`{"allOf": [{"type": "object"}, {"type": "object"}]}`:                     "allOf",
		`{"oneOf": [{"type": "integer"}, {"type": "number"}]}`:                    "oneOf",
		`{"$ref": "#/$defs/none"}`:                                                "$ref",
		`{"$ref": "http://x/y"}`:                                                  "$ref",
		`{"type": "object", "properties": {"a": {"type": "object", "if": true}}}`: "if",
		`{"type": "object", "required": ["a"], "properties": {"b": true}}`:        "required",
		`{"enum": []}`: "enum",
	} {
		_, err := Compile(Form{Choices: [][]Part{{{Schema: json.RawMessage(raw)}}}}, nil)
		var u *Unsupported
		require.ErrorAs(t, err, &u, raw)
		require.Equal(t, keyword, u.Keyword, raw)
		require.Contains(t, err.Error(), fmt.Sprintf("%q", keyword))
	}
	_, err := Compile(Form{Choices: [][]Part{{{Schema: json.RawMessage(`{"anyOf": [{"$ref": "#"}]}`)}}}}, nil)
	require.Error(t, err, "a schema that is only itself")
}

// TestForms: texts around JSON, choices, and a form that begins later.
func TestForms(t *testing.T) {
	words := bytewise()
	one := Part{Schema: json.RawMessage(`{"const": 1}`)}
	form := Form{Choices: [][]Part{{{Text: "<a>"}, one, {Text: "</a>"}}, {one}}}
	a, err := Compile(form, words)
	require.NoError(t, err)
	random := rand.New(rand.NewPCG(5, 6))
	seen := map[string]bool{}
	for range 40 {
		seen[string(drawn(t, a, "", random))] = true
	}
	require.Equal(t, map[string]bool{"1": true, "<a>1</a>": true}, seen)
	text := a.Begin("</think>")
	for _, c := range "so </think>\n<a>1</a>" {
		require.False(t, text.Done())
		require.NoError(t, text.Accept(c+1))
	}
	require.True(t, text.Done())
	require.Error(t, text.Accept('x'+1))
	form.Optional, form.After = true, "["
	a, err = Compile(form, words)
	require.NoError(t, err)
	require.EqualValues(t, 1, a.Begin("").Allowed()[0]&1, "the text may end before its form begins")
}
