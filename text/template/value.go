package template

import (
	"fmt"
	"math"
	"sort"
)

// A value is what Python would have: nil (None), bool, int64, float64, string, *List, *Dict, or one of the kinds that
// only templates make: undefined, markup, *generator, *namespace, *macro, *loop, *function.

// List is a list, a tuple, or a view of a dict.
type List struct {
	Items []any
	kind  string // "" for a list, else "tuple", "dict_keys", "dict_values", "dict_items" or "range"
}

// NewList makes a list of values; see FromGo.
func NewList(items ...any) *List { return &List{Items: items} }

func tuple(items ...any) *List { return &List{Items: items, kind: "tuple"} }

// Dict is a dict: it keeps the order of its keys.
type Dict struct {
	keys  []any
	index map[any]int
	vals  []any
}

// NewDict makes an empty dict.
func NewDict() *Dict { return &Dict{index: map[any]int{}} }

// hashed is the form of a key that equal keys share: 1, 1.0 and True are one key.
func hashed(key any) (any, error) {
	switch k := key.(type) {
	case bool:
		if k {
			return int64(1), nil
		}
		return int64(0), nil
	case float64:
		if k == math.Trunc(k) && math.Abs(k) < 1<<62 {
			return int64(k), nil
		}
		return k, nil
	case *List:
		if k.kind == "tuple" {
			return "\x00tuple" + mustRepr(k), nil
		}
		return nil, fmt.Errorf("unhashable type: '%s'", typeName(key))
	case *Dict:
		return nil, fmt.Errorf("unhashable type: '%s'", typeName(key))
	case markup:
		return string(k), nil
	case undefined:
		return undefined{}, nil // all are one key
	}
	return key, nil
}

// Set puts a value under a key. Keys are strings, as JSON has them; see FromGo for values.
func (d *Dict) Set(key string, value any) { d.set(key, value) }

// Get is the value under a key.
func (d *Dict) Get(key string) (value any, ok bool) { return d.get(key) }

// Len is how many keys there are.
func (d *Dict) Len() int { return len(d.keys) }

// Keys gives the keys that are strings, in order.
func (d *Dict) Keys() (out []string) {
	for _, k := range d.keys {
		if s, ok := k.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

func (d *Dict) set(key, value any) error {
	h, err := hashed(key)
	if err != nil {
		return err
	}
	if i, ok := d.index[h]; ok {
		d.vals[i] = value
		return nil
	}
	d.index[h] = len(d.keys)
	d.keys, d.vals = append(d.keys, key), append(d.vals, value)
	return nil
}

func (d *Dict) get(key any) (any, bool) {
	h, err := hashed(key)
	if err != nil {
		return nil, false
	}
	if i, ok := d.index[h]; ok {
		return d.vals[i], true
	}
	return nil, false
}

// copy makes a dict with the same keys and values.
func (d *Dict) copy() *Dict {
	out := NewDict()
	for i, k := range d.keys {
		out.set(k, d.vals[i])
	}
	return out
}

// undefined is what a name or an attribute stands for that is not there. It prints as nothing, is false and empty, and
// anything else that is done with it is an error.
type undefined struct {
	name any // what was asked for
	of   any // in what, if it has an owner
	has  bool
	hint string
}

func (u undefined) message() string {
	switch name, text := u.name.(string); {
	case u.hint != "":
		return u.hint
	case !u.has:
		return fmt.Sprintf("%s is undefined", mustRepr(u.name))
	case !text:
		return fmt.Sprintf("%s has no element %s", ownerName(u.of), mustRepr(u.name))
	default:
		return fmt.Sprintf("%s has no attribute %s", mustRepr(ownerName(u.of)), mustRepr(name))
	}
}

// ownerName is how messages call a value.
func ownerName(v any) string {
	if v == nil {
		return "None"
	}
	return typeName(v) + " object"
}

// typeName is the name of a value's type in Python.
func typeName(v any) string {
	switch v := v.(type) {
	case nil:
		return "NoneType"
	case bool:
		return "bool"
	case int64:
		return "int"
	case float64:
		return "float"
	case string:
		return "str"
	case markup:
		return "Markup"
	case *Dict:
		return "dict"
	case *List:
		if v.kind == "" {
			return "list"
		}
		return v.kind
	case *generator:
		return "generator"
	case undefined:
		return "Undefined"
	case *namespace:
		return "Namespace"
	case *macro:
		return "Macro"
	case *loop:
		return "LoopContext"
	case *function:
		return "function"
	}
	return fmt.Sprintf("%T", v)
}

// generator is a sequence that can be walked once. It is true even if it is empty, and has no length.
type generator struct {
	items []any
}

// namespace is what namespace() makes: the one thing whose attributes set can change.
type namespace struct{ attrs *Dict }

// function is something of ours that templates can call.
type function struct {
	name string
	call func(r *run, c call) any
}

// FromGo turns Go's values into a template's: booleans, all kinds of integers and floats, strings, []any, []string,
// map[string]any (in the order of its keys, because Go has none) and what is a template's value already.
func FromGo(v any) (any, error) {
	switch v := v.(type) {
	case nil, bool, int64, float64, string, *List, *Dict:
		return v, nil
	case int:
		return int64(v), nil
	case int32:
		return int64(v), nil
	case uint32:
		return int64(v), nil
	case float32:
		return float64(v), nil
	case []string:
		out := NewList()
		for _, s := range v {
			out.Items = append(out.Items, s)
		}
		return out, nil
	case []any:
		out := NewList()
		for _, item := range v {
			x, err := FromGo(item)
			if err != nil {
				return nil, err
			}
			out.Items = append(out.Items, x)
		}
		return out, nil
	case map[string]any:
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		sort.Strings(keys)
		out := NewDict()
		for _, k := range keys {
			x, err := FromGo(v[k])
			if err != nil {
				return nil, err
			}
			out.Set(k, x)
		}
		return out, nil
	}
	return nil, fmt.Errorf("[template] a template has no values of Go's type %T", v)
}
