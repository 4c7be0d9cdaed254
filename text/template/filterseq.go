package template

import (
	"slices"
	"sort"
	"strconv"
	"strings"
)

// path follows "a.b.0" from v on, as the attribute of a filter says it.
func (r *run) path(v, attribute any) any { return r.pathOr(v, attribute, nil) }

// pathOr is path, with what stands for a member that is not there, unless it is nil.
func (r *run) pathOr(v, attribute, missing any) any {
	or := func(v any) any {
		if isUndefined(v) && missing != nil {
			return missing
		}
		return v
	}
	if n, ok := integer(attribute); ok {
		return or(r.subscript(v, n))
	}
	for _, part := range strings.Split(r.text(attribute), ".") {
		r.step()
		if n, err := strconv.ParseInt(part, 10, 64); err == nil && part[0] != '-' && part[0] != '+' {
			v = or(r.subscript(v, n))
		} else {
			v = or(r.subscript(v, part))
		}
	}
	return v
}

// none is what a filter that may leave items out gives for what is false.
func none(r *run, c call) bool { return !r.truth(c.args[0]) }

// filterMap is map("filter", args...) and map(attribute="name", default=...).
func filterMap(r *run, c call) any {
	if none(r, c) {
		return &generator{}
	}
	items := r.items(c.args[0])
	r.alloc(itemBytes * len(items))
	out := &generator{}
	if at := slices.Index(c.names, "attribute"); at >= 0 && len(c.args) == 1 {
		var missing any
		if def := slices.Index(c.names, "default"); def >= 0 {
			missing = c.values[def]
		}
		for _, x := range items {
			out.items = append(out.items, r.pathOr(x, c.values[at], missing))
		}
		return out
	}
	if len(c.args) < 2 {
		r.fail("map requires a filter argument")
	}
	name := r.wantString("the name of a filter", c.args[1])
	f := filterTable[name]
	if f == nil {
		r.fail("%s", noFilter(name))
	}
	defer r.enter()()
	for _, x := range items {
		r.step()
		out.items = append(out.items, r.filter(name, f, call{append([]any{x}, c.args[2:]...), c.names, c.values}))
	}
	return out
}

// filterSelect is select, reject, selectattr and rejectattr.
func filterSelect(keep, attribute bool) func(r *run, c call) any {
	return func(r *run, c call) any {
		if none(r, c) {
			return &generator{}
		}
		items, rest := r.items(c.args[0]), c.args[1:]
		var path any
		if attribute {
			if len(rest) == 0 {
				r.fail("Missing parameter for attribute name")
			}
			path, rest = rest[0], rest[1:]
		}
		test := func(r *run, c call) bool { return r.truth(c.args[0]) }
		if len(rest) > 0 {
			name := r.wantString("the name of a test", rest[0])
			if test = testTable[name]; test == nil {
				r.fail("there is no test named '%s'", name)
			}
			rest = rest[1:]
		}
		out := &generator{}
		for _, x := range items {
			r.step()
			v := x
			if attribute {
				v = r.path(x, path)
			}
			if test(r, call{append([]any{v}, rest...), c.names, c.values}) == keep {
				r.alloc(itemBytes)
				out.items = append(out.items, x)
			}
		}
		return out
	}
}

// sortKey is what an item is ordered by: small letters, unless case counts.
func (r *run) sortKey(item, attribute any, caseCounts bool) any {
	if attribute != nil {
		item = r.path(item, attribute)
	}
	if s, ok := plain(item).(string); ok && !caseCounts {
		r.alloc(len(s))
		return toLower(s)
	}
	return item
}

// keyed is an item and what it is ordered by.
type keyed struct{ item, key any }

func (r *run) keys(items []any, attribute any, caseCounts bool) []keyed {
	r.alloc(4 * itemBytes * len(items))
	out := make([]keyed, len(items))
	for i, x := range items {
		out[i].item = x
		s, many := plain(attribute).(string)
		if !many || !strings.Contains(s, ",") {
			out[i].key = r.sortKey(x, attribute, caseCounts)
			continue
		}
		parts := tuple()
		for _, p := range strings.Split(s, ",") {
			parts.Items = append(parts.Items, r.sortKey(x, p, caseCounts))
		}
		out[i].key = parts
	}
	return out
}

// sorted orders stably; with reverse, equal items keep their order too.
func (r *run) sorted(list []keyed, reverse bool) []any {
	sort.SliceStable(list, func(i, j int) bool {
		if reverse {
			return r.less(list[j].key, list[i].key)
		}
		return r.less(list[i].key, list[j].key)
	})
	out := make([]any, len(list))
	for i, k := range list {
		out[i] = k.item
	}
	return out
}

func filterSort(r *run, c call) any {
	a := c.bind(r, "sort", "value", "reverse=", "case_sensitive=", "attribute=")
	list := r.keys(r.items(a[0]), a[3], r.truth(a[2]))
	for i, k := range list {
		if a[3] != nil { // Python compares lists of keys, of which those that are not there are equal
			list[i].key = tuple(k.key)
		}
	}
	return &List{Items: r.sorted(list, r.truth(a[1]))}
}

func filterDictSort(r *run, c call) any {
	a := c.bind(r, "dictsort", "value", "case_sensitive=", "by=", "reverse=")
	d, ok := a[0].(*Dict)
	if !ok {
		r.fail("dictsort wants a dict, not %s", typeName(a[0]))
	}
	at := int64(0)
	switch by := orText(a[2], "key", r); by {
	case "key":
	case "value":
		at = 1
	default:
		r.fail("You can only sort by either \"key\" or \"value\"")
	}
	return &List{Items: r.sorted(r.keys(r.pairs(d), at, r.truth(a[1])), r.truth(a[3]))}
}

func filterUnique(r *run, c call) any {
	a := c.bind(r, "unique", "value", "case_sensitive=", "attribute=")
	seen := NewDict()
	out := &generator{}
	for _, k := range r.keys(r.items(a[0]), a[2], r.truth(a[1])) {
		if _, ok := seen.get(k.key); !ok {
			r.put(seen, k.key, true)
			out.items = append(out.items, k.item)
		}
	}
	return out
}

// filterExtreme is min (-1) and max (1).
func filterExtreme(want int) func(r *run, c call) any {
	return func(r *run, c call) any {
		a := c.bind(r, "min or max", "value", "case_sensitive=", "attribute=")
		list := r.keys(r.items(a[0]), a[2], r.truth(a[1]))
		if len(list) == 0 {
			return undefined{hint: "No aggregated item, sequence was empty."}
		}
		best := list[0]
		for _, k := range list[1:] {
			if n, ok := r.order("<", k.key, best.key); ok && n == want {
				best = k
			}
		}
		return best.item
	}
}

func filterSum(r *run, c call) any {
	a := c.bind(r, "sum", "iterable", "attribute=", "start=")
	total := a[2]
	if total == nil {
		total = int64(0)
	}
	for _, x := range r.items(a[0]) {
		if a[1] != nil {
			x = r.path(x, a[1])
		}
		if isText(total) {
			r.fail("sum() can't sum strings")
		}
		total = r.binary("+", total, x)
	}
	return total
}

// filterGroup gives pairs of a value and the items that have it, in the order of the values.
func filterGroup(r *run, c call) any {
	a := c.bind(r, "groupby", "value", "attribute", "default=", "case_sensitive=")
	list := r.keys(r.items(a[0]), nil, true)
	for i := range list {
		list[i].key = r.pathOr(list[i].item, a[1], a[2])
		list[i] = keyed{list[i], r.sortKey(list[i].key, nil, r.truth(a[3]))}
	}
	out := NewList()
	var last any
	for i, x := range r.sorted(slices.Clone(list), false) {
		k := x.(keyed)
		key := r.sortKey(k.key, nil, r.truth(a[3]))
		if i == 0 || !r.equal(key, last, 0) {
			out.Items = append(out.Items, tuple(k.key, NewList()))
		}
		last = key
		group := out.Items[len(out.Items)-1].(*List).Items[1].(*List)
		group.Items = append(group.Items, k.item)
	}
	return out
}
