package template

import (
	"math"
	"math/bits"
	"strings"
)

// truth is Python's bool(v).
func (r *values) truth(v any) bool {
	switch v := plain(v).(type) {
	case nil, undefined:
		return false
	case bool:
		return v
	case int64:
		return v != 0
	case float64:
		return v != 0
	case string:
		return v != ""
	case *List:
		return len(v.Items) > 0
	case *Dict:
		return len(v.keys) > 0
	}
	return true
}

// isNumber reports whether v is an int, a float or a bool.
func isNumber(v any) bool {
	switch v.(type) {
	case bool, int64, float64:
		return true
	}
	return false
}

// number is a number as a float64.
func (r *values) number(v any) float64 {
	switch v := v.(type) {
	case bool:
		if v {
			return 1
		}
		return 0
	case int64:
		return float64(v)
	case float64:
		return v
	case undefined:
		r.fail("%s", v.message())
	}
	r.fail("must be a number, not %s", typeName(v))
	return 0
}

// integer is an int or bool as an int64; not ok for others.
func integer(v any) (n int64, ok bool) {
	switch v := v.(type) {
	case bool:
		if v {
			return 1, true
		}
		return 0, true
	case int64:
		return v, true
	}
	return 0, false
}

// toInt is an argument that must be an integer.
func (r *values) toInt(v any) int64 {
	n, ok := integer(v)
	if u, is := v.(undefined); is {
		r.fail("%s", u.message())
	}
	if !ok {
		r.fail("'%s' object cannot be interpreted as an integer", typeName(v))
	}
	return n
}

// wantString is an argument that must be a string.
func (r *values) wantString(what string, v any) string {
	s, ok := plain(v).(string)
	if u, is := v.(undefined); is {
		r.fail("%s", u.message())
	}
	if !ok {
		r.fail("%s must be str, not %s", what, typeName(v))
	}
	return s
}

// items is what a loop over v walks. A generator is used up then.
func (r *values) items(v any) []any {
	switch v := plain(v).(type) {
	case *List:
		r.work(len(v.Items))
		return v.Items
	case *Dict:
		r.work(len(v.keys))
		return v.keys
	case string:
		var out []any
		r.alloc(itemBytes * len(v))
		for _, c := range v {
			out = append(out, string(c))
		}
		return out
	case undefined:
		return nil
	case *generator:
		items := v.items
		v.items = nil
		return items
	}
	r.fail("'%s' object is not iterable", typeName(v))
	return nil
}

// length is len(v).
func (r *values) length(v any) int {
	switch v := plain(v).(type) {
	case string:
		r.work(len(v))
		n := 0
		for range v {
			n++
		}
		return n
	case *List:
		return len(v.Items)
	case *Dict:
		return len(v.keys)
	case undefined:
		return 0
	case *loop:
		return len(v.items)
	}
	r.fail("object of type '%s' has no len()", typeName(v))
	return 0
}

// equal is a == b.
func (r *values) equal(a, b any, depth int) bool {
	r.step()
	if depth > maxNesting {
		r.fail("values are nested more than %d deep", maxNesting)
	}
	if isNumber(a) && isNumber(b) {
		x, okA := integer(a)
		y, okB := integer(b)
		if okA && okB {
			return x == y
		}
		return r.number(a) == r.number(b)
	}
	a, b = plain(a), plain(b)
	switch a := a.(type) {
	case undefined:
		_, ok := b.(undefined)
		return ok
	case string:
		s, ok := b.(string)
		r.work(len(a))
		return ok && s == a
	case *List:
		l, ok := b.(*List)
		if !ok || l.kind != a.kind || len(l.Items) != len(a.Items) {
			return false
		}
		for i, x := range a.Items {
			if !r.equal(x, l.Items[i], depth+1) {
				return false
			}
		}
		return true
	case *Dict:
		d, ok := b.(*Dict)
		if !ok || len(d.keys) != len(a.keys) {
			return false
		}
		for i, k := range a.keys {
			v, has := d.get(k)
			if !has || !r.equal(a.vals[i], v, depth+1) {
				return false
			}
		}
		return true
	}
	return a == b
}

// order is -1, 0 or 1; not ok where Python has no order, or there is a NaN.
func (r *values) order(op string, a, b any) (n int, ok bool) {
	r.step()
	switch x := plain(a).(type) {
	case string:
		if y, is := plain(b).(string); is {
			r.work(min(len(x), len(y)))
			return strings.Compare(x, y), true
		}
	case *List:
		if y, is := b.(*List); is && x.kind == y.kind && (x.kind == "" || x.kind == "tuple") {
			return r.orderLists(op, x.Items, y.Items)
		}
	case undefined:
		r.fail("%s", x.message())
	}
	if u, is := b.(undefined); is {
		r.fail("%s", u.message())
	}
	if !isNumber(a) || !isNumber(b) {
		r.fail("'%s' not supported between instances of '%s' and '%s'", op, typeName(a), typeName(b))
	}
	i, okA := integer(a)
	j, okB := integer(b)
	if okA && okB {
		switch {
		case i < j:
			return -1, true
		case i > j:
			return 1, true
		}
		return 0, true
	}
	switch f, g := r.number(a), r.number(b); {
	case f < g:
		return -1, true
	case f > g:
		return 1, true
	case f == g:
		return 0, true
	}
	return 0, false
}

func (r *values) orderLists(op string, a, b []any) (int, bool) {
	defer r.enter()()
	for i := range min(len(a), len(b)) {
		if !r.equal(a[i], b[i], 0) {
			return r.order(op, a[i], b[i])
		}
	}
	return r.order(op, int64(len(a)), int64(len(b)))
}

// less is a < b.
func (r *values) less(a, b any) bool {
	n, ok := r.order("<", a, b)
	return ok && n < 0
}

// compare is a op b.
func (r *values) compare(op string, a, b any) bool {
	switch op {
	case "==":
		return r.equal(a, b, 0)
	case "!=":
		return !r.equal(a, b, 0)
	case "in":
		return r.contains(b, a)
	case "not in":
		return !r.contains(b, a)
	}
	n, ok := r.order(op, a, b)
	switch op {
	case "<":
		return ok && n < 0
	case "<=":
		return ok && n <= 0
	case ">":
		return ok && n > 0
	}
	return ok && n >= 0
}

// contains is item in of.
func (r *values) contains(of, item any) bool {
	switch of := plain(of).(type) {
	case string:
		s, ok := plain(item).(string)
		if !ok {
			r.fail("'in <string>' requires string as left operand, not %s", typeName(item))
		}
		r.work(len(of))
		return strings.Contains(of, s)
	case *Dict:
		if _, err := hashed(item); err != nil {
			r.fail("%v", err)
		}
		_, ok := of.get(item)
		return ok
	case *List, *generator, undefined:
		for _, x := range r.items(of) {
			if r.equal(x, item, 0) {
				return true
			}
		}
		return false
	}
	r.fail("argument of type '%s' is not iterable", typeName(of))
	return false
}

func (e *signExpr) eval(r *run) any {
	v := r.eval(e.of)
	r.pos = e.at()
	if n, ok := integer(v); ok {
		if !e.minus {
			return n
		}
		if n == math.MinInt64 {
			r.tooLarge()
		}
		return -n
	}
	f := r.number(v)
	if e.minus {
		f = -f
	}
	return f
}

func (r *values) tooLarge() { r.fail("an integer does not fit into 64 bits") }

func (e *binaryExpr) eval(r *run) any {
	a := r.eval(e.left)
	b := r.eval(e.right)
	r.pos = e.at()
	return r.binary(e.op, a, b)
}

func (r *values) binary(op string, a, b any) any {
	for _, v := range []any{a, b} {
		if u, ok := v.(undefined); ok && (op != "%" || !isText(a)) {
			r.fail("%s", u.message())
		}
	}
	_, left := a.(markup)
	_, right := b.(markup)
	if left || right {
		if v, ok := r.markupBinary(op, a, b); ok {
			return v
		}
	}
	if v, ok := r.sequences(op, plain(a), plain(b)); ok {
		return v
	}
	if !isNumber(a) || !isNumber(b) {
		if isText(a) && op == "+" {
			r.fail("can only concatenate str (not \"%s\") to str", typeName(b))
		}
		r.fail("unsupported operand type(s) for %s: '%s' and '%s'", op, typeName(a), typeName(b))
	}
	x, okA := integer(a)
	y, okB := integer(b)
	if okA && okB && op != "/" {
		return r.integers(op, x, y)
	}
	return r.floats(op, r.number(a), r.number(b))
}

func isString(v any) bool {
	_, ok := v.(string)
	return ok
}

// sequences are the operators of texts and lists.
func (r *values) sequences(op string, a, b any) (any, bool) {
	switch op {
	case "+":
		if s, ok := a.(string); ok && isString(b) {
			r.alloc(len(s) + len(b.(string)))
			return s + b.(string), true
		}
		x, okA := a.(*List)
		y, okB := b.(*List)
		if okA && okB && x.kind == y.kind && (x.kind == "" || x.kind == "tuple") {
			r.alloc(itemBytes * (len(x.Items) + len(y.Items)))
			return &List{append(append([]any{}, x.Items...), y.Items...), x.kind}, true
		}
	case "%":
		if s, ok := a.(string); ok {
			return r.percent(s, b), true
		}
	case "*":
		n, ok := integer(b)
		of := a
		if !ok {
			n, ok = integer(a)
			of = b
		}
		if !ok {
			return nil, false
		}
		switch of := of.(type) {
		case string:
			return r.times(of, n), true
		case *List:
			if n > 0 && len(of.Items) > 0 && n > int64(r.limits.Memory/itemBytes/len(of.Items)) {
				r.alloc(math.MaxInt)
			}
			out := &List{kind: of.kind}
			for range max(0, n) {
				r.alloc(itemBytes * len(of.Items))
				out.Items = append(out.Items, of.Items...)
			}
			return out, true
		}
	}
	return nil, false
}

// times is s * n.
func (r *values) times(s string, n int64) string {
	if n <= 0 || s == "" {
		return ""
	}
	if n > int64(r.limits.Memory/len(s)) {
		r.alloc(math.MaxInt)
	}
	r.alloc(len(s) * int(n))
	return strings.Repeat(s, int(n))
}

func (r *values) integers(op string, a, b int64) any {
	switch op {
	case "+":
		if s := a + b; (s > a) == (b > 0) {
			return s
		}
		r.tooLarge()
	case "-":
		if s := a - b; (s < a) == (b > 0) {
			return s
		}
		r.tooLarge()
	case "*":
		return r.product(a, b)
	case "**":
		return r.powerOf(a, b)
	}
	if b == 0 {
		r.fail("integer division or modulo by zero")
	}
	if a == math.MinInt64 && b == -1 {
		r.tooLarge()
	}
	q, rest := a/b, a%b
	if rest != 0 && (rest < 0) != (b < 0) { // Python rounds down
		q, rest = q-1, rest+b
	}
	if op == "//" {
		return q
	}
	return rest
}

func (r *values) product(a, b int64) int64 {
	high, low := bits.Mul64(magnitude(a), magnitude(b))
	if high != 0 || low > math.MaxInt64 {
		r.tooLarge()
	}
	return a * b
}

func magnitude(a int64) uint64 {
	if a < 0 {
		return uint64(-a)
	}
	return uint64(a)
}

func (r *values) powerOf(a, b int64) any {
	if b < 0 {
		if a == 0 {
			r.fail("0.0 cannot be raised to a negative power")
		}
		return math.Pow(float64(a), float64(b))
	}
	out := int64(1)
	for ; b > 0; b >>= 1 {
		if b&1 == 1 {
			out = r.product(out, a)
		}
		if b > 1 {
			a = r.product(a, a)
		}
	}
	return out
}

func (r *values) floats(op string, a, b float64) any {
	switch op {
	case "+":
		return a + b
	case "-":
		return a - b
	case "*":
		return a * b
	case "**":
		if a == 0 && b < 0 {
			r.fail("0.0 cannot be raised to a negative power")
		}
		if a < 0 && b != math.Trunc(b) {
			r.fail("a negative number to a power that is no integer is complex")
		}
		return math.Pow(a, b)
	}
	if b == 0 {
		r.fail("division by zero")
	}
	if op == "/" {
		return a / b
	}
	rest := math.Mod(a, b)
	if rest != 0 && (rest < 0) != (b < 0) {
		rest += b
	}
	if op == "%" {
		return rest
	}
	return math.Round((a - rest) / b)
}
