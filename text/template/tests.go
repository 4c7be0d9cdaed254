package template

import (
	"strings"
	"unicode"
)

// testTable are the tests: what follows "is". The value is the first argument.
var testTable map[string]func(r *run, c call) bool

func init() {
	compare := func(op string) func(r *run, c call) bool {
		return func(r *run, c call) bool {
			a := c.bind(r, op, "a", "b")
			return r.compare(op, a[0], a[1])
		}
	}
	kind := func(is func(v any) bool) func(r *run, c call) bool {
		return func(r *run, c call) bool { return is(c.bind(r, "the test", "value")[0]) }
	}
	testTable = map[string]func(r *run, c call) bool{
		"odd":         testRest(1),
		"even":        testRest(0),
		"divisibleby": testDivisible,
		"defined":     kind(func(v any) bool { return !isUndefined(v) }),
		"undefined":   kind(isUndefined),
		"none":        kind(func(v any) bool { return v == nil }),
		"boolean":     kind(func(v any) bool { return v == true || v == false }),
		"false":       kind(func(v any) bool { return v == false }),
		"true":        kind(func(v any) bool { return v == true }),
		"integer":     kind(func(v any) bool { _, ok := v.(int64); return ok }),
		"float":       kind(func(v any) bool { _, ok := v.(float64); return ok }),
		"number":      kind(isNumber),
		"string":      kind(isText),
		"mapping":     kind(func(v any) bool { _, ok := v.(*Dict); return ok }),
		"sequence":    kind(isSequence),
		"iterable":    kind(func(v any) bool { _, ok := v.(*generator); return ok || isSequence(v) || isLoop(v) }),
		"callable":    kind(isCallable),
		"escaped":     kind(func(v any) bool { _, ok := v.(markup); return ok }),
		"lower":       testCase(unicode.IsLower, unicode.IsUpper),
		"upper":       testCase(unicode.IsUpper, unicode.IsLower),
		"sameas":      testSame,
		"in":          func(r *run, c call) bool { a := c.bind(r, "in", "value", "seq"); return r.contains(a[1], a[0]) },
		"filter": func(r *run, c call) bool {
			name, ok := r.named("filter", c)
			return ok && (filterTable[name] != nil || unbuilt[name])
		},
		"test": func(r *run, c call) bool {
			name, ok := r.named("test", c)
			return ok && testTable[name] != nil
		},
	}
	for op, names := range map[string]string{"==": "eq equalto ==", "!=": "ne !=", ">": "gt greaterthan >", ">=": "ge >=",
		"<": "lt lessthan <", "<=": "le <="} {
		for _, n := range strings.Fields(names) {
			testTable[n] = compare(op)
		}
	}
}

// named is the name that the tests filter and test look up; not ok: it is no text.
func (r *run) named(test string, c call) (string, bool) {
	v := plain(c.bind(r, test, "value")[0])
	if _, err := hashed(v); err != nil {
		r.fail("%v", err)
	}
	name, ok := v.(string)
	return name, ok
}

// testRest asks for the rest of a division by two.
func testRest(want int64) func(r *run, c call) bool {
	return func(r *run, c call) bool {
		return r.equal(r.binary("%", c.bind(r, "the test", "value")[0], int64(2)), want, 0)
	}
}

func isUndefined(v any) bool {
	_, ok := v.(undefined)
	return ok
}

func isLoop(v any) bool {
	_, ok := v.(*loop)
	return ok
}

// isSequence reports whether v has a length and items, as Jinja asks.
func isSequence(v any) bool {
	switch v := v.(type) {
	case string, markup, *Dict, undefined:
		return true
	case *List:
		return v.kind == "" || v.kind == "tuple" || v.kind == "range"
	}
	return false
}

func isCallable(v any) bool {
	switch v.(type) {
	case *function, *macro, *loop, undefined:
		return true
	}
	return false
}

func testDivisible(r *run, c call) bool {
	a := c.bind(r, "divisibleby", "value", "num")
	return r.equal(r.binary("%", a[0], a[1]), int64(0), 0)
}

// testCase is str.islower or str.isupper: some letters, none of the other case.
func testCase(is, not func(rune) bool) func(r *run, c call) bool {
	return func(r *run, c call) bool {
		s := r.text(c.bind(r, "the test", "value")[0])
		r.work(len(s))
		return strings.IndexFunc(s, is) >= 0 && strings.IndexFunc(s, not) < 0
	}
}

// testSame is Python's is, as far as it says the same everywhere.
func testSame(r *run, c call) bool {
	a := c.bind(r, "sameas", "value", "other")
	switch a[0].(type) {
	case undefined:
		return false
	case markup:
		r.fail("sameas of a Markup is not built")
	}
	return typeName(a[0]) == typeName(a[1]) && a[0] == a[1]
}
