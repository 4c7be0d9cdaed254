package template

// maxRange is how many items range can have, as in the sandbox.
const maxRange = 100_000

var globalTable map[string]*function

func init() {
	globalTable = map[string]*function{
		"range":           {"range", globalRange},
		"dict":            {"dict", globalDict},
		"namespace":       {"namespace", globalNamespace},
		"raise_exception": {"raise_exception", globalRaise},
		"strftime_now":    {"strftime_now", globalNow},
		"joiner":          {"joiner", globalJoiner},
		"cycler":          {"cycler", globalCycler},
	}
}

func globalRange(r *run, c call) any {
	from, to, step := int64(0), int64(0), int64(1)
	switch {
	case c.names != nil || len(c.args) < 1 || len(c.args) > 3:
		r.fail("range expected 1 to 3 arguments, got %d", len(c.args))
	case len(c.args) == 1:
		to = r.toInt(c.args[0])
	default:
		from, to = r.toInt(c.args[0]), r.toInt(c.args[1])
		if len(c.args) == 3 {
			step = r.toInt(c.args[2])
		}
	}
	if step == 0 {
		r.fail("range() arg 3 must not be zero")
	}
	out := &List{kind: "range"}
	for i := from; step > 0 && i < to || step < 0 && i > to; i += step {
		if len(out.Items) == maxRange {
			r.fail("Range too big. The sandbox blocks ranges larger than MAX_RANGE (%d).", maxRange)
		}
		out.Items = append(out.Items, i)
		if next := i + step; (next > i) != (step > 0) {
			break
		}
	}
	r.alloc(itemBytes * len(out.Items))
	return out
}

func globalDict(r *run, c call) any {
	out := NewDict()
	if len(c.args) > 1 {
		r.fail("dict expected at most 1 argument, got %d", len(c.args))
	}
	for _, a := range c.args {
		if d, ok := a.(*Dict); ok {
			out = d.copy()
			r.alloc(4 * itemBytes * len(d.keys))
			continue
		}
		for _, pair := range r.items(a) {
			kv := r.items(pair)
			if len(kv) != 2 {
				r.fail("dictionary update sequence element has length %d; 2 is required", len(kv))
			}
			r.put(out, kv[0], kv[1])
		}
	}
	r.alloc(4 * itemBytes * len(c.names))
	for i, n := range c.names {
		out.Set(n, c.values[i])
	}
	return out
}

func globalNamespace(r *run, c call) any {
	d := globalDict(r, c).(*Dict)
	for _, k := range d.Keys() {
		r.checkAttribute(k)
	}
	return &namespace{d}
}

func globalRaise(r *run, c call) any {
	a := c.bind(r, "raise_exception", "message")
	e := errorAt(r.source, r.pos, "%s", r.text(a[0]))
	e.Raised = true
	panic(e)
}

func globalNow(r *run, c call) any {
	a := c.bind(r, "strftime_now", "format")
	return r.strftime(r.wantString("the format", a[0]))
}

func globalJoiner(r *run, c call) any {
	a := c.bind(r, "joiner", "sep=")
	sep := any(", ")
	if a[0] != nil {
		sep = a[0]
	}
	used := false
	return &function{"joiner", func(*run, call) any {
		if !used {
			used = true
			return ""
		}
		return sep
	}}
}

// cycler is what cycler() makes.
type cycler struct {
	items []any
	at    int
}

func globalCycler(r *run, c call) any {
	if len(c.args) == 0 || c.names != nil {
		r.fail("at least one item has to be provided")
	}
	return &cycler{items: c.args}
}

func cyclerField(c *cycler, name string) (any, bool) {
	switch name {
	case "current":
		return c.items[c.at], true
	case "next":
		return &function{"next", func(*run, call) any {
			v := c.items[c.at]
			c.at = (c.at + 1) % len(c.items)
			return v
		}}, true
	case "reset":
		return &function{"reset", func(*run, call) any {
			c.at = 0
			return nil
		}}, true
	}
	return nil, false
}
