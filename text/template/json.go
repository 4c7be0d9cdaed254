package template

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"sort"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/mlxlua/mlxlua/internal/jsonfault"
)

// ParseJSON makes a value of the text of a JSON document. Objects become dicts, which keep their order; integers must
// fit into 64 bits.
func ParseJSON(raw []byte) (any, error) { return ReadJSON(string(raw), nil) }

// ReadJSON is ParseJSON for a caller who counts what that takes: take is told of bytes before they are made, and its
// error ends the reading. It may be nil.
func ReadJSON(text string, take func(bytes int) error) (any, error) {
	if take == nil {
		take = func(int) error { return nil }
	}
	r := &jsonReader{json.NewDecoder(strings.NewReader(text)), text, take}
	r.UseNumber()
	v, err := r.value(0)
	if err == nil {
		if _, err = r.Token(); err == io.EOF {
			return v, nil
		}
		if err == nil {
			err = jsonfault.Find(text) // there is more after the value
		}
	}
	return nil, fmt.Errorf("[template] JSON: %w", jsonfault.Explain(text, err))
}

type jsonReader struct {
	*json.Decoder
	text string
	take func(bytes int) error
}

// What values take that are read, at most, with the room that lists keep.
const (
	valueBytes = 64
	dictBytes  = 384 // an object with a few keys
	keyBytes   = 160
)

func (r *jsonReader) value(depth int) (any, error) {
	if depth > maxNesting {
		return nil, fmt.Errorf("values are nested more than %d deep", maxNesting)
	}
	if err := r.take(valueBytes); err != nil {
		return nil, err
	}
	t, err := r.Token()
	if err != nil {
		return nil, err
	}
	switch t := t.(type) {
	case string:
		return t, r.take(2 * len(t)) // the decoder's copy too
	case json.Number:
		return r.number(t)
	case json.Delim:
		if t == '[' {
			return r.list(depth)
		}
		return r.dict(depth)
	}
	return t, nil
}

func (r *jsonReader) number(n json.Number) (v any, err error) {
	if strings.ContainsAny(n.String(), ".eE") {
		v, err = n.Float64()
	} else {
		v, err = n.Int64()
	}
	if err != nil {
		at := int(r.InputOffset()) - len(n)
		err = jsonfault.At(r.text, at, fmt.Sprintf("the number %.20s does not fit into 64 bits", n))
	}
	return v, err
}

func (r *jsonReader) list(depth int) (any, error) {
	out := NewList()
	for r.More() {
		v, err := r.value(depth + 1)
		if err != nil {
			return nil, err
		}
		out.Items = append(out.Items, v)
	}
	_, err := r.Token()
	return out, err
}

func (r *jsonReader) dict(depth int) (any, error) {
	if err := r.take(dictBytes); err != nil {
		return nil, err
	}
	out := NewDict()
	for r.More() {
		key, err := r.Token()
		if err != nil {
			return nil, err
		}
		if err := r.take(keyBytes + len(key.(string))); err != nil {
			return nil, err
		}
		v, err := r.value(depth + 1)
		if err != nil {
			return nil, err
		}
		out.Set(key.(string), v)
	}
	_, err := r.Token()
	return out, err
}

// dumper is Python's json.dumps.
type dumper struct {
	r         *run
	b         strings.Builder
	ascii     bool
	indent    string
	indented  bool
	item, key string // separators
	sort      bool
}

func (d *dumper) value(v any, depth int) {
	if depth > maxNesting {
		d.r.fail("values are nested more than %d deep", maxNesting)
	}
	d.r.step()
	switch v := v.(type) {
	case nil:
		d.b.WriteString("null")
	case bool:
		d.b.WriteString(strconv.FormatBool(v))
	case int64:
		d.b.WriteString(strconv.FormatInt(v, 10))
	case float64:
		d.b.WriteString(jsonFloat(v))
	case string:
		d.string(v)
	case markup:
		d.string(string(v))
	case *List:
		if v.kind != "" && v.kind != "tuple" {
			d.r.fail("Object of type %s is not JSON serializable", typeName(v))
		}
		d.list(v, depth)
	case *Dict:
		d.dict(v, depth)
	default:
		d.r.fail("Object of type %s is not JSON serializable", typeName(v))
	}
	if d.b.Len() > d.r.limits.Memory {
		d.r.alloc(d.b.Len())
	}
}

func jsonFloat(f float64) string {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	}
	return floatText(f)
}

func (d *dumper) newline(depth int) {
	if d.indented {
		d.r.alloc(len(d.indent) * depth)
		d.b.WriteString("\n" + strings.Repeat(d.indent, depth))
	}
}

func (d *dumper) list(l *List, depth int) {
	if len(l.Items) == 0 {
		d.b.WriteString("[]")
		return
	}
	d.b.WriteString("[")
	for i, x := range l.Items {
		if i > 0 {
			d.b.WriteString(d.item)
		}
		d.newline(depth + 1)
		d.value(x, depth+1)
	}
	d.newline(depth)
	d.b.WriteString("]")
}

func (d *dumper) dict(m *Dict, depth int) {
	if len(m.keys) == 0 {
		d.b.WriteString("{}")
		return
	}
	order := make([]int, len(m.keys))
	for i := range order {
		order[i] = i
	}
	if d.sort {
		sort.SliceStable(order, func(i, j int) bool { return d.r.less(m.keys[order[i]], m.keys[order[j]]) })
	}
	d.b.WriteString("{")
	for n, i := range order {
		if n > 0 {
			d.b.WriteString(d.item)
		}
		d.newline(depth + 1)
		switch k := plain(m.keys[i]).(type) {
		case string:
			d.string(k)
		case float64:
			d.string(jsonFloat(k))
		case nil:
			d.string("null")
		case bool:
			d.string(strconv.FormatBool(k))
		case int64:
			d.string(strconv.FormatInt(k, 10))
		default:
			d.r.fail("keys must be str, int, float, bool or None, not %s", typeName(k))
		}
		d.b.WriteString(d.key)
		d.value(m.vals[i], depth+1)
	}
	d.newline(depth)
	d.b.WriteString("}")
}

func (d *dumper) string(s string) {
	d.r.alloc(len(s))
	d.b.WriteByte('"')
	for _, c := range s {
		switch {
		case c == '"' || c == '\\':
			d.b.WriteByte('\\')
			d.b.WriteRune(c)
		case c == '\n':
			d.b.WriteString(`\n`)
		case c == '\r':
			d.b.WriteString(`\r`)
		case c == '\t':
			d.b.WriteString(`\t`)
		case c == '\f':
			d.b.WriteString(`\f`)
		case c == '\b':
			d.b.WriteString(`\b`)
		case c < ' ' || d.ascii && c >= 0x7F && c < 0x10000:
			fmt.Fprintf(&d.b, `\u%04x`, c)
		case d.ascii && c >= 0x10000:
			a, b := utf16.EncodeRune(c)
			fmt.Fprintf(&d.b, `\u%04x\u%04x`, a, b)
		default:
			d.b.WriteRune(c)
		}
	}
	d.b.WriteByte('"')
}

// filterJSON is tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False).
func filterJSON(r *run, c call) any {
	a := c.bind(r, "tojson", "x", "ensure_ascii=", "indent=", "separators=", "sort_keys=")
	d := dumper{r: r, ascii: r.truth(a[1]), item: ", ", key: ": ", sort: r.truth(a[4])}
	switch indent := a[2].(type) {
	case nil:
	case string:
		d.indent, d.indented = indent, true
	default:
		n := r.toInt(indent)
		if n > 1000 {
			r.fail("tojson: indent is %d, at most 1000", n)
		}
		d.indent, d.indented = strings.Repeat(" ", int(max(0, n))), true
	}
	if d.indented {
		d.item = ","
	}
	if a[3] != nil {
		pair := r.items(a[3])
		if len(pair) != 2 {
			r.fail("tojson: separators are two texts, not %d", len(pair))
		}
		d.item, d.key = r.wantString("separators", pair[0]), r.wantString("separators", pair[1])
	}
	d.value(a[0], 0)
	return d.b.String()
}
