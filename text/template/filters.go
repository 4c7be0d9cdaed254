package template

import (
	"math"
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// filterTable are the filters. The value is the first argument.
var filterTable map[string]func(r *run, c call) any

func init() {
	text := func(name string, f func(s string) string) func(r *run, c call) any {
		return func(r *run, c call) any {
			s := r.text(c.bind(r, name, "s")[0])
			r.alloc(2 * len(s))
			return f(s)
		}
	}
	length := func(r *run, c call) any { return int64(r.length(c.bind(r, "length", "value")[0])) }
	filterTable = map[string]func(r *run, c call) any{
		"tojson": filterJSON, "default": filterDefault, "d": filterDefault, "length": length, "count": length,
		"upper": text("upper", toUpper), "lower": text("lower", toLower), "capitalize": text("capitalize", capitalize),
		"title": text("title", titleFilter), "string": filterString,
		"safe": filterSafe, "escape": filterEscape, "e": filterEscape, "forceescape": filterForceEscape,
		"striptags": filterStripTags, "filesizeformat": filterFileSize, "xmlattr": filterAttributes,
		"trim": filterTrim, "replace": filterReplace,
		"join": filterJoin, "first": filterFirst, "last": filterLast, "list": filterList, "int": filterInt,
		"float": filterFloat, "abs": filterAbs, "round": filterRound, "reverse": filterReverse, "indent": filterIndent,
		"truncate": filterTruncate, "wordcount": filterWords, "center": filterCenter, "format": filterFormat,
		"urlencode": filterURL, "attr": filterAttr, "items": filterItems, "batch": filterBatch, "slice": filterSlice,
		"map": filterMap, "select": filterSelect(true, false), "reject": filterSelect(false, false),
		"selectattr": filterSelect(true, true), "rejectattr": filterSelect(false, true), "sort": filterSort,
		"unique": filterUnique, "min": filterExtreme(-1), "max": filterExtreme(1), "sum": filterSum,
		"dictsort": filterDictSort, "groupby": filterGroup,
	}
}

// orText is an argument that can be missing.
func orText(v any, missing string, r *run) string {
	if v == nil {
		return missing
	}
	return r.text(v)
}

func filterDefault(r *run, c call) any {
	a := c.bind(r, "default", "value", "default_value=", "boolean=")
	if isUndefined(a[0]) || a[2] != nil && r.truth(a[2]) && !r.truth(a[0]) {
		if a[1] == nil && len(c.args) < 2 && len(c.names) == 0 {
			return ""
		}
		return a[1]
	}
	return a[0]
}

func filterSafe(r *run, c call) any { return markup(r.text(c.bind(r, "safe", "value")[0])) }

func filterEscape(r *run, c call) any { return markup(r.escaped(c.bind(r, "escape", "value")[0])) }

func filterForceEscape(r *run, c call) any {
	return markup(r.escaped(plain(c.bind(r, "forceescape", "value")[0])))
}

func filterString(r *run, c call) any {
	v := c.bind(r, "string", "value")[0]
	if m, ok := v.(markup); ok {
		return m
	}
	return r.text(v)
}

// unbuilt are the filters of jinja2 that are not built: three for web pages and terminals, and a random one.
var unbuilt = map[string]bool{"pprint": true, "random": true, "urlize": true, "wordwrap": true}

// noFilter is the message for a filter that there is not.
func noFilter(name string) string {
	if unbuilt[name] {
		return "the filter '" + name + "' of jinja2 is not built"
	}
	return "there is no filter named '" + name + "'"
}

func filterFileSize(r *run, c call) any {
	a := c.bind(r, "filesizeformat", "value", "binary=")
	base, prefixes := 1000.0, []string{"kB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB"}
	if r.truth(a[1]) {
		base, prefixes = 1024, []string{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB", "YiB"}
	}
	var size float64
	if s, ok := a[0].(string); ok {
		f, err := strconv.ParseFloat(strings.TrimFunc(s, pySpace), 64)
		if err != nil {
			r.fail("could not convert string to float: %s", mustRepr(s))
		}
		size = f
	} else {
		size = r.number(a[0])
	}
	switch {
	case size == 1:
		return "1 Byte"
	case size < base:
		return strconv.FormatFloat(math.Trunc(size), 'f', 0, 64) + " Bytes"
	}
	unit := base
	for i, prefix := range prefixes {
		unit *= base
		if size < unit || i == len(prefixes)-1 {
			return strconv.FormatFloat(base*size/unit, 'f', 1, 64) + " " + prefix
		}
	}
	return ""
}

// filterAttributes writes a dict as the attributes of a tag.
func filterAttributes(r *run, c call) any {
	a := c.bind(r, "xmlattr", "d", "autospace=")
	d, ok := a[0].(*Dict)
	if !ok {
		r.fail("xmlattr wants a dict, not %s", typeName(a[0]))
	}
	var parts []string
	for i, k := range d.keys {
		if v := d.vals[i]; v != nil && !isUndefined(v) {
			if strings.ContainsAny(r.wantString("the key of an attribute", k), " \t\n\r\f\v/>=") {
				r.fail("Invalid character in attribute name: %s", mustRepr(k))
			}
			parts = append(parts, r.escaped(k)+`="`+r.escaped(v)+`"`)
		}
	}
	out := strings.Join(parts, " ")
	if out != "" && (len(c.args) < 2 && len(c.names) == 0 || r.truth(a[1])) {
		out = " " + out
	}
	r.alloc(len(out))
	return out
}

// titleFilter makes the first letter of each word a capital and the others small.
func titleFilter(s string) string {
	var b strings.Builder
	start := true
	for _, c := range s {
		between := strings.ContainsRune("-({[<", c) || pySpace(c)
		switch {
		case between:
			b.WriteRune(c)
		case start:
			b.WriteString(toUpper(string(c)))
		default:
			b.WriteRune(unicode.ToLower(c))
		}
		start = between
	}
	return b.String()
}

func filterTrim(r *run, c call) any {
	a := c.bind(r, "trim", "value", "chars=")
	return stripMethod("trim", strings.TrimFunc)(r, r.text(a[0]), call{args: a[1:]})
}

func filterReplace(r *run, c call) any {
	a := c.bind(r, "replace", "s", "old", "new", "count=")
	n := int64(-1)
	if a[3] != nil {
		n = r.toInt(a[3])
	}
	return r.replace(r.text(a[0]), r.text(a[1]), r.text(a[2]), n)
}

func filterJoin(r *run, c call) any {
	a := c.bind(r, "join", "value", "d=", "attribute=")
	sep := orText(a[1], "", r)
	var parts []string
	for _, x := range r.items(a[0]) {
		if a[2] != nil {
			x = r.path(x, a[2])
		}
		s := r.text(x)
		r.alloc(len(s) + len(sep))
		parts = append(parts, s)
	}
	return strings.Join(parts, sep)
}

func filterFirst(r *run, c call) any {
	v := c.bind(r, "first", "seq")[0]
	if g, ok := v.(*generator); ok && len(g.items) > 0 {
		x := g.items[0]
		g.items = g.items[1:]
		return x
	}
	if s, ok := v.(string); ok && s != "" {
		_, n := utf8.DecodeRuneInString(s)
		return s[:n]
	}
	if items := r.items(v); len(items) > 0 {
		return items[0]
	}
	return undefined{hint: "No first item, sequence was empty."}
}

func filterLast(r *run, c call) any {
	v := c.bind(r, "last", "seq")[0]
	if _, ok := v.(*generator); ok {
		r.fail("'generator' object is not reversible")
	}
	if s, ok := plain(v).(string); ok && s != "" {
		_, n := utf8.DecodeLastRuneInString(s)
		if _, is := v.(markup); is { // reversed() asks it for its parts
			return markup(s[len(s)-n:])
		}
		return s[len(s)-n:]
	}
	if items := r.items(v); len(items) > 0 {
		return items[len(items)-1]
	}
	return undefined{hint: "No last item, sequence was empty."}
}

func filterList(r *run, c call) any {
	items := r.items(c.bind(r, "list", "value")[0])
	r.alloc(itemBytes * len(items))
	return &List{Items: append([]any{}, items...)}
}

func filterInt(r *run, c call) any {
	a := c.bind(r, "int", "value", "default=", "base=")
	missing := any(int64(0))
	if a[1] != nil {
		missing = a[1]
	}
	whole := func(f float64) any {
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return missing
		}
		if math.Abs(f) >= 1<<63 {
			r.tooLarge()
		}
		return int64(f)
	}
	switch v := a[0].(type) {
	case string:
		base := int64(10)
		if a[2] != nil {
			base = r.toInt(a[2])
		}
		text := strings.ReplaceAll(strings.TrimFunc(v, pySpace), "_", "")
		if base == 16 || base == 8 || base == 2 {
			text = strings.TrimPrefix(strings.ToLower(text), map[int64]string{16: "0x", 8: "0o", 2: "0b"}[base])
		}
		if n, err := strconv.ParseInt(text, int(max(0, min(base, 36))), 64); err == nil {
			return n
		}
		if f, err := strconv.ParseFloat(text, 64); err == nil {
			return whole(f)
		}
	case bool, int64:
		n, _ := integer(v)
		return n
	case float64:
		return whole(v)
	case undefined:
		r.fail("%s", v.message())
	}
	return missing
}

func filterFloat(r *run, c call) any {
	a := c.bind(r, "float", "value", "default=")
	if s, ok := a[0].(string); ok {
		if f, err := strconv.ParseFloat(strings.TrimFunc(s, pySpace), 64); err == nil {
			return f
		}
	} else if isNumber(a[0]) || isUndefined(a[0]) {
		return r.number(a[0])
	}
	if a[1] == nil {
		return 0.0
	}
	return a[1]
}

func filterAbs(r *run, c call) any {
	v := c.bind(r, "abs", "x")[0]
	if n, ok := integer(v); ok {
		return max(n, -n)
	}
	return math.Abs(r.number(v))
}

func filterRound(r *run, c call) any {
	a := c.bind(r, "round", "value", "precision=", "method=")
	precision := int64(0)
	if a[1] != nil {
		precision = max(-400, min(r.toInt(a[1]), 400))
	}
	n, whole := integer(a[0])
	f := r.number(a[0])
	scale := math.Pow(10, float64(precision))
	switch how := orText(a[2], "common", r); {
	case how == "ceil":
		return math.Ceil(f*scale) / scale
	case how == "floor":
		return math.Floor(f*scale) / scale
	case how != "common":
		r.fail("method must be common, ceil or floor")
	case whole && precision >= 0:
		return n
	case whole:
		return int64(math.RoundToEven(f*scale) / scale)
	case precision < 0:
		return math.RoundToEven(f*scale) / scale
	}
	out, err := strconv.ParseFloat(strconv.FormatFloat(f, 'f', int(precision), 64), 64)
	if err != nil {
		return f
	}
	return out
}

func filterReverse(r *run, c call) any {
	v := c.bind(r, "reverse", "value")[0]
	if s, ok := v.(string); ok {
		chars := r.chars(s)
		for i, j := 0, len(chars)-1; i < j; i, j = i+1, j-1 {
			chars[i], chars[j] = chars[j], chars[i]
		}
		return string(chars)
	}
	items := r.items(v)
	r.alloc(itemBytes * len(items))
	out := make([]any, len(items))
	for i, x := range items {
		out[len(items)-1-i] = x
	}
	return &generator{out}
}

func filterIndent(r *run, c call) any {
	a := c.bind(r, "indent", "s", "width=", "first=", "blank=")
	if !isText(a[0]) {
		r.fail("indent wants a text, not %s", typeName(a[0]))
	}
	by := "    "
	if s, ok := a[1].(string); ok {
		by = s
	} else if a[1] != nil {
		by = r.times(" ", r.toInt(a[1]))
	}
	lines := splitLines(r, r.text(a[0])+"\n", call{}).(*List).Items
	var b strings.Builder
	for i, x := range lines {
		line := x.(string)
		if i > 0 {
			b.WriteByte('\n')
		}
		if i == 0 && r.truth(a[2]) || i > 0 && (line != "" || r.truth(a[3])) {
			r.alloc(len(by))
			b.WriteString(by)
		}
		b.WriteString(line)
	}
	r.alloc(b.Len())
	return b.String()
}

func filterTruncate(r *run, c call) any {
	a := c.bind(r, "truncate", "s", "length=", "killwords=", "end=", "leeway=")
	if a[3] == nil {
		a[3] = "..."
	}
	end := r.text(a[3])
	length, leeway := int64(255), int64(5)
	if a[1] != nil {
		length = r.toInt(a[1])
	}
	if a[4] != nil {
		leeway = r.toInt(a[4])
	}
	ends := int64(utf8.RuneCountInString(end))
	if length < ends || leeway < 0 {
		r.fail("truncate: expected length >= %d, got %d, and leeway >= 0, got %d", ends, length, leeway)
	}
	if int64(r.length(a[0])) <= length+leeway {
		return a[0]
	}
	_, ready := a[0].(markup)
	s := r.wantString("what is cut short", a[0])
	s = r.cut(s, int(length-ends))
	if i := strings.LastIndexByte(s, ' '); i >= 0 && !r.truth(a[2]) {
		s = s[:i]
	}
	if ready {
		return markup(s + r.escaped(a[3]))
	}
	return s + end
}

func filterWords(r *run, c call) any {
	n, inside := int64(0), false
	for _, c := range r.text(c.bind(r, "wordcount", "s")[0]) {
		is := c == '_' || unicode.IsLetter(c) || unicode.IsNumber(c)
		if is && !inside {
			n++
		}
		inside = is
	}
	return n
}

func filterCenter(r *run, c call) any {
	a := c.bind(r, "center", "value", "width=")
	width := int64(80)
	if a[1] != nil {
		width = r.toInt(a[1])
	}
	return r.pad(r.text(a[0]), width, " ", "center")
}

func filterFormat(r *run, c call) any {
	var format any = r.text(c.args[0])
	if _, is := c.args[0].(markup); is {
		format = c.args[0]
	}
	if len(c.args) > 1 && len(c.names) > 0 {
		r.fail("can't handle positional and keyword arguments at the same time")
	}
	if len(c.names) > 0 {
		d := NewDict()
		for i, n := range c.names {
			d.Set(n, c.values[i])
		}
		return r.binary("%", format, d)
	}
	return r.binary("%", format, tuple(c.args[1:]...))
}

func filterURL(r *run, c call) any {
	quote := func(v any, plain string) string {
		s := url.QueryEscape(r.text(v))
		r.alloc(len(s))
		s = strings.ReplaceAll(s, "+", plain)
		return strings.ReplaceAll(s, "%7E", "~")
	}
	v := c.bind(r, "urlencode", "value")[0]
	switch v.(type) {
	case *List, *Dict, *generator:
	default:
		return strings.ReplaceAll(quote(v, "%20"), "%2F", "/")
	}
	items := r.items(v)
	if d, ok := v.(*Dict); ok {
		items = r.pairs(d)
	}
	var parts []string
	for _, x := range items {
		pair := r.items(x)
		if len(pair) != 2 {
			r.fail("urlencode wants pairs")
		}
		parts = append(parts, quote(pair[0], "+")+"="+quote(pair[1], "+"))
	}
	return strings.Join(parts, "&")
}

func filterAttr(r *run, c call) any {
	a := c.bind(r, "attr", "obj", "name")
	name := r.text(a[1])
	if v, ok := r.field(a[0], name); ok {
		return v
	}
	return r.missing(a[0], name)
}

func filterItems(r *run, c call) any {
	switch v := c.bind(r, "items", "value")[0].(type) {
	case undefined:
		return &generator{}
	case *Dict:
		return &generator{r.pairs(v)}
	}
	r.fail("Can only get item pairs from a mapping.")
	return nil
}

func filterBatch(r *run, c call) any {
	a := c.bind(r, "batch", "value", "linecount", "fill_with=")
	n := r.toInt(a[1])
	if n < 1 {
		r.fail("batch: linecount is %d, at least 1", n)
	}
	out := &generator{}
	var row []any
	for _, x := range r.items(a[0]) {
		if int64(len(row)) == n {
			out.items = append(out.items, NewList(row...))
			row = nil
		}
		r.alloc(2 * itemBytes)
		row = append(row, x)
	}
	if row != nil {
		for a[2] != nil && int64(len(row)) < n {
			r.alloc(itemBytes)
			row = append(row, a[2])
		}
		out.items = append(out.items, NewList(row...))
	}
	return out
}

func filterSlice(r *run, c call) any {
	a := c.bind(r, "slice", "value", "slices", "fill_with=")
	n := int(min(r.toInt(a[1]), math.MaxInt32))
	if n < 1 {
		r.fail("slice: slices is %d, at least 1", n)
	}
	items := r.items(a[0])
	each, more, from := len(items)/n, len(items)%n, 0
	out := &generator{}
	for i := range n {
		to := from + each
		if i < more {
			to++
		}
		r.alloc(itemBytes * (to - from + 2))
		part := append([]any{}, items[from:to]...)
		if a[2] != nil && i >= more {
			part = append(part, a[2])
		}
		out.items = append(out.items, NewList(part...))
		from = to
	}
	return out
}
