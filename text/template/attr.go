package template

import "strings"

// attribute is of.name: a method or a field, and if there is none, of["name"].
func (r *run) attribute(of any, name string) any {
	if v, ok := r.field(of, name); ok {
		return v
	}
	if d, ok := of.(*Dict); ok {
		if v, ok := d.get(name); ok {
			return v
		}
	}
	return r.missing(of, name)
}

// subscript is of[index]; where there is nothing, it is of.index.
func (r *run) subscript(of, index any) any {
	if m, ok := of.(markup); ok {
		if _, number := integer(index); number {
			return ready(r.subscript(string(m), index))
		}
	}
	switch of := of.(type) {
	case *Dict:
		if v, ok := of.get(index); ok {
			return v
		}
	case *List:
		if n, ok := integer(index); ok && (of.kind == "" || of.kind == "tuple" || of.kind == "range") {
			if n < 0 {
				n += int64(len(of.Items))
			}
			if n >= 0 && n < int64(len(of.Items)) {
				return of.Items[n]
			}
		}
	case string:
		if n, ok := integer(index); ok {
			chars := r.chars(of)
			if n < 0 {
				n += int64(len(chars))
			}
			if n >= 0 && n < int64(len(chars)) {
				return string(chars[n])
			}
		}
	}
	if name, ok := plain(index).(string); ok {
		if v, ok := r.field(of, name); ok {
			return v
		}
	}
	return r.missing(of, index)
}

// missing is what stands for an attribute that is not there; of something undefined, it is an error.
func (r *run) missing(of, name any) any {
	if u, ok := of.(undefined); ok {
		r.fail("%s", u.message())
	}
	return undefined{name: name, of: of, has: true}
}

// field is a method or a field of a value.
func (r *run) field(of any, name string) (any, bool) {
	switch of := of.(type) {
	case string:
		return method(of, name, stringMethods)
	case markup:
		return r.markupField(of, name)
	case *Dict:
		return method(of, name, dictMethods)
	case *List:
		if of.kind == "" || of.kind == "tuple" {
			if of.kind == "" && changesLists[name] {
				r.fail("access to attribute '%s' of 'list' object is unsafe.", name)
			}
			return method(of, name, listMethods)
		}
	case *namespace:
		if strings.HasPrefix(name, "_") {
			return nil, false
		}
		return of.attrs.get(name)
	case *loop:
		return r.loopField(of, name)
	case *macro:
		if name == "name" {
			return of.name, true
		}
	case *cycler:
		return cyclerField(of, name)
	}
	return nil, false
}

// changesLists are methods that would change a list; the sandbox refuses them.
var changesLists = map[string]bool{
	"append": true, "clear": true, "pop": true, "reverse": true, "insert": true, "sort": true, "extend": true,
	"remove": true,
}

// method binds a method to its value.
func method[T any](of T, name string, table map[string]func(r *run, of T, c call) any) (any, bool) {
	f, ok := table[name]
	if !ok {
		return nil, false
	}
	return &function{name: name, call: func(r *run, c call) any { return f(r, of, c) }}, true
}

func (r *run) loopField(l *loop, name string) (any, bool) {
	n, i := len(l.items), l.index
	near := func(i int, hint string) any {
		if i < 0 || i >= n {
			return undefined{hint: hint}
		}
		return l.items[i]
	}
	switch name {
	case "index":
		return int64(i + 1), true
	case "index0":
		return int64(i), true
	case "revindex":
		return int64(n - i), true
	case "revindex0":
		return int64(n - i - 1), true
	case "first":
		return i == 0, true
	case "last":
		return i == n-1, true
	case "length":
		return int64(n), true
	case "depth":
		return int64(l.depth + 1), true
	case "depth0":
		return int64(l.depth), true
	case "previtem":
		return near(i-1, "there is no previous item"), true
	case "nextitem":
		return near(i+1, "there is no next item"), true
	case "cycle":
		return &function{"cycle", func(r *run, c call) any {
			if len(c.args) == 0 {
				r.fail("no items for cycling given")
			}
			return c.args[i%len(c.args)]
		}}, true
	case "changed":
		return &function{"changed", func(r *run, c call) any {
			now := tuple(c.args...)
			same := l.changed != nil && r.equal(l.changed, now, 0)
			l.changed = now
			return !same
		}}, true
	}
	return nil, false
}

var dictMethods = map[string]func(r *run, d *Dict, c call) any{
	"get": func(r *run, d *Dict, c call) any {
		if len(c.args) < 1 || len(c.args) > 2 || c.names != nil {
			r.fail("get expected 1 or 2 arguments, got %d", len(c.args))
		}
		if _, err := hashed(c.args[0]); err != nil {
			r.fail("%v", err)
		}
		if v, ok := d.get(c.args[0]); ok {
			return v
		}
		if len(c.args) == 2 {
			return c.args[1]
		}
		return nil
	},
	"items": func(r *run, d *Dict, c call) any {
		c.bind(r, "items")
		return &List{r.pairs(d), "dict_items"}
	},
	"keys": func(r *run, d *Dict, c call) any {
		c.bind(r, "keys")
		return &List{d.keys, "dict_keys"}
	},
	"values": func(r *run, d *Dict, c call) any {
		c.bind(r, "values")
		return &List{d.vals, "dict_values"}
	},
	"copy": func(r *run, d *Dict, c call) any {
		c.bind(r, "copy")
		r.alloc(4 * itemBytes * len(d.keys))
		return d.copy()
	},
	"update":     unsafeDict("update"),
	"pop":        unsafeDict("pop"),
	"popitem":    unsafeDict("popitem"),
	"clear":      unsafeDict("clear"),
	"setdefault": unsafeDict("setdefault"),
}

func unsafeDict(name string) func(*run, *Dict, call) any {
	return func(r *run, _ *Dict, _ call) any {
		r.fail("access to attribute '%s' of 'dict' object is unsafe.", name)
		return nil
	}
}

// pairs gives the keys and values of a dict as tuples.
func (r *values) pairs(d *Dict) []any {
	r.alloc(4 * itemBytes * len(d.keys))
	out := make([]any, len(d.keys))
	for i, k := range d.keys {
		out[i] = tuple(k, d.vals[i])
	}
	return out
}

var listMethods = map[string]func(r *run, l *List, c call) any{
	"index": func(r *run, l *List, c call) any {
		a := c.bind(r, "index", "value")
		for i, x := range l.Items {
			if r.equal(x, a[0], 0) {
				return int64(i)
			}
		}
		r.fail("%s is not in list", r.text(a[0]))
		return nil
	},
	"count": func(r *run, l *List, c call) any {
		a := c.bind(r, "count", "value")
		n := int64(0)
		for _, x := range l.Items {
			if r.equal(x, a[0], 0) {
				n++
			}
		}
		return n
	},
	"copy": func(r *run, l *List, c call) any {
		c.bind(r, "copy")
		r.alloc(itemBytes * len(l.Items))
		return &List{append([]any{}, l.Items...), l.kind}
	},
}
