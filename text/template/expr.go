package template

import (
	"slices"
	"strings"
	"unicode/utf8"
)

func (e *constant) eval(*run) any { return e.value }

func (e *variable) eval(r *run) any { return r.look(e.name) }

func (e *listExpr) eval(r *run) any {
	out := &List{}
	if e.tuple {
		out.kind = "tuple"
	}
	r.alloc(itemBytes * len(e.items))
	for _, x := range e.items {
		out.Items = append(out.Items, r.eval(x))
	}
	return out
}

func (e *dictExpr) eval(r *run) any {
	out := NewDict()
	r.alloc(4 * itemBytes * len(e.keys))
	for i, k := range e.keys {
		key := r.eval(k)
		value := r.eval(e.values[i])
		r.put(out, key, value)
	}
	return out
}

// put sets a key of a new dict.
func (r *values) put(d *Dict, key, value any) {
	if err := d.set(key, value); err != nil {
		r.fail("%v", err)
	}
}

func (e *attribute) eval(r *run) any {
	of := r.eval(e.of)
	r.pos = e.at()
	return r.attribute(of, e.name)
}

func (e *subscript) eval(r *run) any {
	of := r.eval(e.of)
	if s, ok := e.index.(*sliceExpr); ok {
		return r.slice(of, s)
	}
	index := r.eval(e.index)
	r.pos = e.at()
	return r.subscript(of, index)
}

func (e *sliceExpr) eval(r *run) any {
	r.fail("a slice is no value")
	return nil
}

// slice is of[from:to:step].
func (r *run) slice(of any, s *sliceExpr) any {
	part := func(e expr) (int, bool) {
		if e == nil {
			return 0, false
		}
		v := r.eval(e)
		if v == nil {
			return 0, false
		}
		n, ok := v.(int64)
		if b, is := v.(bool); is {
			n, ok = int64(r.number(b)), true
		}
		if !ok {
			r.fail("slice indices must be integers or None, not %s", typeName(v))
		}
		return int(n), true
	}
	from, hasFrom := part(s.from)
	to, hasTo := part(s.to)
	step, hasStep := part(s.step)
	if !hasStep {
		step = 1
	}
	if step == 0 {
		r.fail("slice step cannot be zero")
	}
	r.pos = s.at()
	indexes := func(n int) []int {
		low, high := 0, n
		if step < 0 {
			low, high = -1, n-1
		}
		clip := func(i int, has bool, missing int) int {
			if !has {
				return missing
			}
			if i < 0 {
				i += n
			}
			return max(low, min(i, high))
		}
		first, last := clip(from, hasFrom, low), clip(to, hasTo, high)
		if step < 0 {
			first, last = clip(from, hasFrom, high), clip(to, hasTo, low)
		}
		var out []int
		for i := first; step > 0 && i < last || step < 0 && i > last; i += step {
			out = append(out, i)
			if step > n || step < -n {
				break
			}
		}
		return out
	}
	switch of := of.(type) {
	case markup, string:
		chars := r.chars(r.text(of))
		var b strings.Builder
		for _, i := range indexes(len(chars)) {
			b.WriteRune(chars[i])
		}
		if _, is := of.(markup); is {
			return markup(b.String())
		}
		return b.String()
	case *List:
		if of.kind == "" || of.kind == "tuple" || of.kind == "range" {
			out := &List{kind: of.kind}
			r.alloc(itemBytes * len(of.Items))
			for _, i := range indexes(len(of.Items)) {
				out.Items = append(out.Items, of.Items[i])
			}
			return out
		}
	case undefined:
		r.fail("%s", of.message())
	}
	return undefined{name: "slice", of: of, has: true, hint: ownerName(of) + " has no slices"}
}

// chars gives the characters of a string.
func (r *values) chars(s string) []rune {
	r.alloc(4 * utf8.RuneCountInString(s))
	return []rune(s)
}

func (e *callExpr) eval(r *run) any {
	f := r.eval(e.f)
	c := r.arguments(e.args)
	r.pos = e.at()
	return r.call(f, c)
}

func (e *filterExpr) eval(r *run) any {
	var of any
	if e.of == nil {
		of = r.piped
	} else {
		of = r.eval(e.of)
	}
	c := r.arguments(e.args)
	c.args = append([]any{of}, c.args...)
	r.pos = e.at()
	if e.f == nil {
		r.fail("%s", noFilter(e.name))
	}
	return r.filter(e.name, e.f, c)
}

func (e *testExpr) eval(r *run) any {
	of := r.eval(e.of)
	c := r.arguments(e.args)
	c.args = append([]any{of}, c.args...)
	r.pos = e.at()
	if e.f == nil {
		r.fail("there is no test named '%s'", e.name)
	}
	return e.f(r, c)
}

func (e *condExpr) eval(r *run) any {
	if r.truth(r.eval(e.test)) {
		return r.eval(e.then)
	}
	if e.other == nil {
		return undefined{hint: "the inline if-expression evaluated to false and no else section was defined."}
	}
	return r.eval(e.other)
}

func (e *logicExpr) eval(r *run) any {
	left := r.eval(e.left)
	if r.truth(left) == e.or {
		return left
	}
	return r.eval(e.right)
}

func (e *notExpr) eval(r *run) any { return !r.truth(r.eval(e.of)) }

func (e *concatExpr) eval(r *run) any {
	var parts []string
	for _, p := range e.parts {
		s := r.text(r.eval(p))
		r.alloc(len(s))
		parts = append(parts, s)
	}
	return strings.Join(parts, "")
}

func (e *compareExpr) eval(r *run) any {
	left := r.eval(e.first)
	for i, op := range e.ops {
		right := r.eval(e.rest[i])
		r.pos = e.at()
		if !r.compare(op, left, right) {
			return false
		}
		left = right
	}
	return true
}

// call holds the arguments of a call.
type call struct {
	args   []any
	names  []string
	values []any // of the names
}

func (r *run) arguments(a arguments) call {
	c := call{args: make([]any, 0, len(a.args)+1)}
	for _, e := range a.args {
		c.args = append(c.args, r.eval(e))
	}
	if a.star != nil {
		c.args = append(c.args, r.items(r.eval(a.star))...)
	}
	for i, e := range a.values {
		c.names = append(c.names, a.names[i])
		c.values = append(c.values, r.eval(e))
	}
	if a.stars != nil {
		d, ok := r.eval(a.stars).(*Dict)
		if !ok {
			r.fail("what follows ** is no dict")
		}
		for i, k := range d.keys {
			s := r.wantString("a keyword", k)
			if slices.Contains(c.names, s) {
				r.fail("got multiple values for keyword argument '%s'", s)
			}
			c.names, c.values = append(c.names, s), append(c.values, d.vals[i])
		}
	}
	return c
}

// call calls a value.
func (r *run) call(f any, c call) any {
	r.step()
	switch f := f.(type) {
	case *function:
		return f.call(r, c)
	case *macro:
		return f.invoke(r, c)
	case *loop:
		if !f.stmt.recursive {
			r.fail("The loop must have the 'recursive' marker to be called recursively.")
		}
		if len(c.args) != 1 || c.names != nil {
			r.fail("loop() takes one argument")
		}
		return r.loop(f.stmt, c.args[0], f.depth+1, f.scope)
	case undefined:
		r.fail("%s", f.message())
	}
	r.fail("'%s' object is not callable", typeName(f))
	return nil
}

// bind puts the arguments into the order of params. "name=" is a parameter that can be missing, and nil then; a last
// "name=value" gives a default text.
func (c call) bind(r *run, what string, params ...string) []any {
	out := make([]any, len(params))
	given := make([]bool, len(params))
	if len(c.args) > len(params) {
		r.fail("%s() takes at most %d arguments (%d given)", what, len(params), len(c.args))
	}
	for i, v := range c.args {
		out[i], given[i] = v, true
	}
	for i, n := range c.names {
		at := slices.IndexFunc(params, func(p string) bool { return strings.TrimSuffix(p, "=") == n })
		if at < 0 {
			r.fail("%s() got an unexpected keyword argument '%s'", what, n)
		}
		if given[at] {
			r.fail("%s() got multiple values for argument '%s'", what, n)
		}
		out[at], given[at] = c.values[i], true
	}
	for i, p := range params {
		if !given[i] && !strings.HasSuffix(p, "=") {
			r.fail("%s() is missing the argument '%s'", what, p)
		}
	}
	return out
}
