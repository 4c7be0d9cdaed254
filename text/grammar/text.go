package grammar

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"
)

// formats are those of strings, as patterns.
var formats = map[string]string{
	"date": `(19|20)[0-9]{2}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|` +
		`02-(0[1-9]|1[0-9]|2[0-8]))`,
	"time":     `([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,6})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])`,
	"uuid":     `[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`,
	"ipv4":     `(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])(\.(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])){3}`,
	"email":    `[a-z0-9_]+([.+-][a-z0-9_]+)*@[a-z0-9]+(-[a-z0-9]+)*(\.[a-z0-9]+(-[a-z0-9]+)*)*\.[a-z]{2,8}`,
	"hostname": `[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?){0,3}`,
}

func init() { formats["date-time"] = "(" + formats["date"] + ")T(" + formats["time"] + ")" }

// text makes a string.
func (s *schemas) text(keys map[string]json.RawMessage, path string, next int32) int32 {
	low, high := s.count(keys, path, "minLength", 0), s.count(keys, path, "maxLength", -1)
	if high >= 0 && low > high {
		return s.fail(path, "minLength", "it is %d, and there are %d characters at most", low, high)
	}
	var pattern, format string
	hasPattern := s.read(path, "pattern", keys["pattern"], &pattern)
	if s.read(path, "format", keys["format"], &format) {
		known, ok := formats[format]
		switch {
		case !ok:
			return s.fail(path, "format", "the format %q; these are: %s", format,
				strings.Join(slices.Sorted(maps.Keys(formats)), ", "))
		case hasPattern:
			return s.fail(path, "format", "beside pattern")
		}
		pattern, hasPattern = "^("+known+")$", true
	}
	if !hasPattern {
		return s.b.text(next, low, high)
	}
	if keys["minLength"] != nil || keys["maxLength"] != nil {
		return s.fail(path, "minLength", "beside pattern or format")
	}
	p, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return s.fail(path, "pattern", "%v", err)
	}
	m := &patterns{s: s, path: path}
	body := m.whole(p, s.b.bytes(next, '"', '"'))
	return s.b.bytes(body, '"', '"')
}

// patterns makes strings of a pattern.
type patterns struct {
	s    *schemas
	path string
}

// whole makes a pattern that may begin and end anywhere, unless it says where.
func (m *patterns) whole(p *syntax.Regexp, next int32) int32 {
	parts := []*syntax.Regexp{p}
	if p.Op == syntax.OpConcat {
		parts = p.Sub
	}
	begins, ends := parts[0].Op == syntax.OpBeginText, parts[len(parts)-1].Op == syntax.OpEndText
	if begins {
		parts = parts[1:]
	}
	if ends && len(parts) > 0 {
		parts = parts[:len(parts)-1]
	}
	b := m.s.b
	if !ends {
		next = b.loop(next, b.character)
	}
	for i := len(parts) - 1; i >= 0; i-- {
		next = m.part(parts[i], next)
	}
	if !begins {
		next = b.loop(next, b.character)
	}
	return next
}

// part makes a part of a pattern.
func (m *patterns) part(p *syntax.Regexp, next int32) int32 {
	b := m.s.b
	if b.full || m.s.err != nil {
		return next
	}
	sub := func(next int32) int32 { return m.part(p.Sub[0], next) }
	switch p.Op {
	case syntax.OpEmptyMatch:
		return next
	case syntax.OpLiteral:
		if p.Flags&syntax.FoldCase != 0 {
			break
		}
		for i := len(p.Rune) - 1; i >= 0; i-- {
			next = m.runes([]rune{p.Rune[i], p.Rune[i]}, next)
		}
		return next
	case syntax.OpCharClass:
		return m.runes(p.Rune, next)
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return b.either(b.bytes(next, 0x20, 0x21, 0x23, 0x5b, 0x5d, 0x7e), b.wide(next), b.literal(`\"`, next),
			b.literal(`\\`, next))
	case syntax.OpCapture:
		return sub(next)
	case syntax.OpStar:
		return b.times(next, 0, -1, sub)
	case syntax.OpPlus:
		return b.times(next, 1, -1, sub)
	case syntax.OpQuest:
		return b.times(next, 0, 1, sub)
	case syntax.OpRepeat:
		return b.times(next, p.Min, p.Max, sub)
	case syntax.OpConcat:
		for i := len(p.Sub) - 1; i >= 0; i-- {
			next = m.part(p.Sub[i], next)
		}
		return next
	case syntax.OpAlternate:
		var out []int32
		for _, one := range p.Sub {
			out = append(out, m.part(one, next))
		}
		return b.either(out...)
	}
	return m.s.fail(m.path, "pattern", "%q has %v", p.String(), p.Op)
}

// runes makes a character of some ranges. Control characters come as escapes, where JSON has a short one.
func (m *patterns) runes(ranges []rune, next int32) int32 {
	b := m.s.b
	var out []int32
	escape := map[rune]string{'"': `\"`, '\\': `\\`, '\n': `\n`, '\t': `\t`, '\r': `\r`, '\b': `\b`, '\f': `\f`}
	plain := node{kind: byteNode}
	for i := 0; i < len(ranges); i += 2 {
		low, high := ranges[i], ranges[i+1]
		for c := low; c <= min(high, 0x7e); c++ {
			if text, ok := escape[c]; ok {
				out = append(out, b.literal(text, next))
			} else if c >= 0x20 {
				plain.spans = append(plain.spans, span{byte(c), byte(c), next})
			}
		}
		for _, r := range [][2]rune{{0x80, 0x7ff}, {0x800, 0xd7ff}, {0xe000, 0xffff}, {0x10000, 0x10ffff}} {
			if l, h := max(low, r[0]), min(high, r[1]); l <= h {
				out = append(out, m.wide(l, h, next))
			}
		}
	}
	if len(plain.spans) > 0 {
		out = append(out, b.add(plain))
	}
	if len(out) == 0 {
		return m.s.fail(m.path, "pattern", "a class has no character that JSON can write as it is")
	}
	return b.either(out...)
}

// wide makes a character from low to high, whose forms in UTF-8 have the same length.
func (m *patterns) wide(low, high rune, next int32) int32 {
	var l, h [utf8.UTFMax]byte
	n := utf8.EncodeRune(l[:], low)
	utf8.EncodeRune(h[:], high)
	return m.between(l[:n], h[:n], next)
}

// between makes the sequences of bytes from low to high, all but the first of which are those of UTF-8.
func (m *patterns) between(low, high []byte, next int32) int32 {
	b := m.s.b
	if len(low) == 1 {
		return b.bytes(next, low[0], high[0])
	}
	if low[0] == high[0] {
		return b.bytes(m.between(low[1:], high[1:], next), low[0], low[0])
	}
	least, most := slices.Repeat([]byte{0x80}, len(low)-1), slices.Repeat([]byte{0xbf}, len(low)-1)
	out := []int32{b.bytes(m.between(low[1:], most, next), low[0], low[0]),
		b.bytes(m.between(least, high[1:], next), high[0], high[0])}
	if low[0]+1 < high[0] {
		out = append(out, b.bytes(m.between(least, most, next), low[0]+1, high[0]-1))
	}
	return b.either(out...)
}

// integer makes a whole number, within bounds.
func (s *schemas) integer(keys map[string]json.RawMessage, path string, next int32) int32 {
	const largest = 999_999_999_999_999
	low, high := int64(-largest), int64(largest)
	bounded := false
	for _, k := range []string{"minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"} {
		var v float64
		if !s.read(path, k, keys[k], &v) {
			continue
		}
		if math.Abs(v) > largest {
			return s.fail(path, k, "its value is %v", v)
		}
		bounded = true
		switch k {
		case "minimum":
			low = max(low, int64(math.Ceil(v)))
		case "exclusiveMinimum":
			low = max(low, int64(math.Floor(v))+1)
		case "maximum":
			high = min(high, int64(math.Floor(v)))
		case "exclusiveMaximum":
			high = min(high, int64(math.Ceil(v))-1)
		}
	}
	if !bounded {
		return s.b.integer(next)
	}
	if low > high {
		return s.fail(path, "minimum", "no number is from %d to %d", low, high)
	}
	var out []int32
	if low < 0 {
		out = append(out, s.b.bytes(s.magnitudes(max(1, -min(high, -1)), -low, next), '-', '-'))
	}
	if high >= 0 {
		out = append(out, s.magnitudes(max(low, 0), high, next))
	}
	return s.b.either(out...)
}

// magnitudes makes the numbers from low to high, which are not negative.
func (s *schemas) magnitudes(low, high int64, next int32) int32 {
	var out []int32
	for digits := 1; digits <= 15; digits++ {
		least, most := int64(math.Pow10(digits-1)), int64(math.Pow10(digits))-1
		if digits == 1 {
			least = 0
		}
		if l, h := max(low, least), min(high, most); l <= h {
			out = append(out, s.digits(fmt.Sprintf("%0*d", digits, l), fmt.Sprintf("%0*d", digits, h), next))
		}
	}
	return s.b.either(out...)
}

// digits makes the numbers from low to high, of as many digits as they have.
func (s *schemas) digits(low, high string, next int32) int32 {
	b := s.b
	if low == "" {
		return next
	}
	n := len(low) - 1
	switch {
	case strings.Trim(low, "0") == "" && strings.Trim(high, "9") == "":
		return b.digits(next, n+1, n+1)
	case low[0] == high[0]:
		return b.bytes(s.digits(low[1:], high[1:], next), low[0], low[0])
	}
	zeros, nines := strings.Repeat("0", n), strings.Repeat("9", n)
	out := []int32{b.bytes(s.digits(low[1:], nines, next), low[0], low[0]),
		b.bytes(s.digits(zeros, high[1:], next), high[0], high[0])}
	if low[0]+1 < high[0] {
		out = append(out, b.bytes(b.digits(next, n, n), low[0]+1, high[0]-1))
	}
	return b.either(out...)
}
