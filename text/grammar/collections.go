package grammar

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
)

// order are the names of an object's members, as they stand in the text.
func order(raw json.RawMessage) (names []string) {
	d := json.NewDecoder(bytes.NewReader(raw))
	_, _ = d.Token() // the opening brace: raw was read before
	for d.More() {
		name, err := d.Token()
		var skip json.RawMessage
		if err != nil || d.Decode(&skip) != nil {
			return names
		}
		if text, ok := name.(string); ok && !slices.Contains(names, text) {
			names = append(names, text)
		}
	}
	return names
}

// object makes an object: the properties in their order, of which those that are not required may be left out, then
// others, where additionalProperties asks for them.
func (s *schemas) object(keys map[string]json.RawMessage, path string, next int32) int32 {
	var properties map[string]json.RawMessage
	var required []string
	s.read(path, "properties", keys["properties"], &properties)
	s.read(path, "required", keys["required"], &required)
	names := order(keys["properties"])
	more := keys["additionalProperties"]
	if string(more) == "false" || more == nil && len(names) > 0 {
		more = nil
	} else if more == nil {
		more = json.RawMessage("true")
	}
	for _, name := range required {
		if !slices.Contains(names, name) {
			if more == nil {
				return s.fail(path, "required", "%q is no property", name)
			}
			properties, names = withProperty(properties, name, more), append(names, name)
		}
	}
	b := s.b
	end := b.space(b.bytes(next, '}', '}'))
	// first and after are what follows where no member has come yet, and where one has
	first, after := end, end
	if more != nil {
		member := func(next int32) int32 {
			return b.without(names, b.space(b.bytes(b.space(s.shared(more, path+"/additionalProperties", next)), ':', ':')))
		}
		after = b.loop(end, func(n int32) int32 { return b.bytes(b.space(member(n)), ',', ',') })
		first = b.either(end, b.space(member(after)))
	}
	for i := len(names) - 1; i >= 0; i-- {
		name := names[i]
		value := s.compile(properties[name], path+"/properties/"+name, after)
		member := b.literal(quoted(name), b.space(b.bytes(b.space(value), ':', ':')))
		alone, behind := b.space(member), b.bytes(b.space(member), ',', ',')
		if slices.Contains(required, name) {
			first, after = alone, behind
		} else {
			first, after = b.either(alone, first), b.either(behind, after)
		}
	}
	return b.bytes(first, '{', '{')
}

func withProperty(properties map[string]json.RawMessage, name string,
	schema json.RawMessage) map[string]json.RawMessage {
	if properties == nil {
		properties = map[string]json.RawMessage{}
	}
	properties[name] = schema
	return properties
}

// quoted is a text as JSON, with <, > and & as they are.
func quoted(text string) string {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	_ = e.Encode(text) // a string can be written
	return string(bytes.TrimSuffix(out.Bytes(), []byte("\n")))
}

// shared makes the JSON of a schema that stands in several places, by a rule.
func (s *schemas) shared(raw json.RawMessage, path string, next int32) int32 {
	rule, ok := s.rules[path]
	if !ok {
		rule = s.rule(path)
		start := s.compile(raw, path, s.b.add(node{kind: popNode}))
		s.b.rules[rule] = start
	}
	return s.b.call(rule, next)
}

// count reads a keyword that is an integer from 0.
func (s *schemas) count(keys map[string]json.RawMessage, path, keyword string, otherwise int) int {
	var v float64
	if !s.read(path, keyword, keys[keyword], &v) {
		return otherwise
	}
	if v < 0 || v != float64(int(v)) {
		s.fail(path, keyword, "its value is %v", v)
	}
	if v > 10_000 {
		s.fail(path, keyword, "its value is more than 10000")
		return 0
	}
	return int(v)
}

// array makes a list.
func (s *schemas) array(keys map[string]json.RawMessage, path string, next int32) int32 {
	low, high := s.count(keys, path, "minItems", 0), s.count(keys, path, "maxItems", -1)
	var prefix []json.RawMessage
	s.read(path, "prefixItems", keys["prefixItems"], &prefix)
	items := keys["items"]
	if items == nil {
		items = json.RawMessage("true")
	}
	if string(items) == "false" && (high < 0 || high > len(prefix)) {
		high = len(prefix)
	}
	if high >= 0 && low > high {
		return s.fail(path, "minItems", "it is %d, and there are %d items at most", low, high)
	}
	b := s.b
	end := b.space(b.bytes(next, ']', ']'))
	item := func(i int, next int32) int32 {
		if i < len(prefix) {
			return b.space(s.compile(prefix[i], path+"/prefixItems/"+strconv.Itoa(i), next))
		}
		return b.space(s.shared(items, path+"/items", next))
	}
	// from is what follows the i-th item; counted from the end of those that differ
	last := max(len(prefix), low)
	if high >= 0 {
		last = high
	}
	after := end
	if high < 0 {
		after = b.loop(end, func(n int32) int32 { return b.bytes(item(last, n), ',', ',') })
	}
	for i := last - 1; i >= 0 && !b.full && s.err == nil; i-- {
		this := item(i, after)
		if i > 0 {
			this = b.bytes(this, ',', ',')
		}
		if i >= low {
			this = b.either(this, end)
		}
		after = this
	}
	if last == 0 && high < 0 {
		after = b.either(end, item(0, after))
	}
	return b.bytes(after, '[', '[')
}
