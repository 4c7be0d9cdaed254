package template

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// stringMethods are Python's methods of str.
var stringMethods map[string]func(r *run, s string, c call) any

func init() {
	plain := func(name string, f func(s string) any) func(r *run, s string, c call) any {
		return func(r *run, s string, c call) any {
			c.bind(r, name)
			r.alloc(2 * len(s))
			return f(s)
		}
	}
	all := func(name string, is func(rune) bool) func(r *run, s string, c call) any {
		return plain(name, func(s string) any {
			return s != "" && strings.IndexFunc(s, func(c rune) bool { return !is(c) }) < 0
		})
	}
	stringMethods = map[string]func(r *run, s string, c call) any{
		"upper":      plain("upper", func(s string) any { return toUpper(s) }),
		"lower":      plain("lower", func(s string) any { return toLower(s) }),
		"casefold":   plain("casefold", func(s string) any { return strings.ReplaceAll(toLower(s), "ß", "ss") }),
		"capitalize": plain("capitalize", func(s string) any { return capitalize(s) }),
		"title":      plain("title", func(s string) any { return titleWords(s) }),
		"swapcase":   plain("swapcase", func(s string) any { return strings.Map(swapCase, s) }),
		"isspace":    all("isspace", unicode.IsSpace),
		"isalpha":    all("isalpha", unicode.IsLetter),
		"isalnum":    all("isalnum", func(c rune) bool { return unicode.IsLetter(c) || unicode.IsNumber(c) }),
		"isdigit":    all("isdigit", func(c rune) bool { return unicode.IsDigit(c) || unicode.Is(otherDigits, c) }),
		"isdecimal":  all("isdecimal", unicode.IsDigit),
		"isnumeric":  all("isnumeric", unicode.IsNumber),
		"isascii": plain("isascii", func(s string) any {
			return strings.IndexFunc(s, func(c rune) bool { return c >= utf8.RuneSelf }) < 0
		}),
		"islower":      plain("islower", func(s string) any { return cased(s, unicode.IsLower, unicode.IsUpper) }),
		"isupper":      plain("isupper", func(s string) any { return cased(s, unicode.IsUpper, unicode.IsLower) }),
		"istitle":      plain("istitle", func(s string) any { return s == titleWords(s) && titleWords(s) != toLower(s) }),
		"strip":        stripMethod("strip", strings.TrimFunc),
		"lstrip":       stripMethod("lstrip", strings.TrimLeftFunc),
		"rstrip":       stripMethod("rstrip", strings.TrimRightFunc),
		"startswith":   affixMethod("startswith", strings.HasPrefix),
		"endswith":     affixMethod("endswith", strings.HasSuffix),
		"removeprefix": cutMethod("removeprefix", strings.TrimPrefix),
		"removesuffix": cutMethod("removesuffix", strings.TrimSuffix),
		"split":        func(r *run, s string, c call) any { return r.split(s, c, false) },
		"rsplit":       func(r *run, s string, c call) any { return r.split(s, c, true) },
		"splitlines":   splitLines,
		"partition":    partition("partition", strings.Index),
		"rpartition":   partition("rpartition", strings.LastIndex),
		"join":         joinMethod,
		"replace":      replaceMethod,
		"find":         findMethod("find", strings.Index),
		"rfind":        findMethod("rfind", strings.LastIndex),
		"index":        findMethod("index", strings.Index),
		"rindex":       findMethod("rindex", strings.LastIndex),
		"count":        countMethod,
		"center":       padMethod("center"),
		"ljust":        padMethod("ljust"),
		"rjust":        padMethod("rjust"),
		"zfill":        zfill,
		"format":       func(r *run, s string, c call) any { return r.format(s, c) },
		"expandtabs": func(r *run, s string, c call) any {
			a := c.bind(r, "expandtabs", "tabsize=")
			return r.expandTabs(s, a[0])
		},
	}
}

// otherDigits are what str.isdigit takes beside decimal digits: superscripts, digits in circles and the like.
var otherDigits = &unicode.RangeTable{
	R16: []unicode.Range16{
		{0xB2, 0xB3, 1}, {0xB9, 0xB9, 1}, {0x1369, 0x1371, 1}, {0x19DA, 0x19DA, 1}, {0x2070, 0x2070, 1}, {0x2074, 0x2079, 1},
		{0x2080, 0x2089, 1}, {0x2460, 0x2468, 1}, {0x2474, 0x247C, 1}, {0x2488, 0x2490, 1}, {0x24EA, 0x24EA, 1},
		{0x24F5, 0x24FD, 1}, {0x24FF, 0x24FF, 1}, {0x2776, 0x277E, 1}, {0x2780, 0x2788, 1}, {0x278A, 0x2792, 1},
	},
	R32: []unicode.Range32{
		{0x10A40, 0x10A43, 1}, {0x10E60, 0x10E68, 1}, {0x11052, 0x1105A, 1}, {0x1F100, 0x1F10A, 1},
	},
	LatinOffset: 2,
}

// toUpper and toLower know the letters that become several.
func toUpper(s string) string {
	return strings.NewReplacer("ß", "SS", "ﬁ", "FI", "ﬂ", "FL", "ﬀ", "FF", "ŉ", "ʼN").Replace(upperRunes(s))
}

func upperRunes(s string) string { return strings.ToUpper(s) }

func toLower(s string) string {
	if !strings.ContainsAny(s, "İΣ") {
		return strings.ToLower(s)
	}
	var b strings.Builder
	for i, c := range s {
		switch {
		case c == 'İ':
			b.WriteString("i\u0307")
		case c == 'Σ' && finalSigma(s, i):
			b.WriteRune('ς')
		default:
			b.WriteRune(unicode.ToLower(c))
		}
	}
	return b.String()
}

// finalSigma reports whether the Σ at s[i] ends a word.
func finalSigma(s string, i int) bool {
	before, _ := utf8.DecodeLastRuneInString(s[:i])
	after, _ := utf8.DecodeRuneInString(s[i+len("Σ"):])
	return unicode.IsLetter(before) && !unicode.IsLetter(after)
}

func capitalize(s string) string {
	c, n := utf8.DecodeRuneInString(s)
	if n == 0 {
		return s
	}
	return string(unicode.ToTitle(c)) + toLower(s[n:])
}

// titleWords is str.title: a capital after everything that is no letter.
func titleWords(s string) string {
	var b strings.Builder
	inside := false
	for _, c := range s {
		switch {
		case inside:
			b.WriteRune(unicode.ToLower(c))
		default:
			b.WriteRune(unicode.ToTitle(c))
		}
		inside = unicode.IsLetter(c)
	}
	return b.String()
}

func swapCase(c rune) rune {
	if unicode.IsUpper(c) {
		return unicode.ToLower(c)
	}
	return unicode.ToUpper(c)
}

func cased(s string, is, not func(rune) bool) bool {
	return strings.IndexFunc(s, is) >= 0 && strings.IndexFunc(s, not) < 0
}

// pySpace is Python's white space of str.strip and str.split: Unicode's, and the four separators of ASCII.
func pySpace(c rune) bool { return unicode.IsSpace(c) || c >= 0x1C && c <= 0x1F }

func stripMethod(name string, trim func(string, func(rune) bool) string) func(r *run, s string, c call) any {
	return func(r *run, s string, c call) any {
		a := c.bind(r, name, "chars=")
		r.work(len(s))
		if a[0] == nil {
			return trim(s, pySpace)
		}
		chars := r.wantString("the characters", a[0])
		return trim(s, func(c rune) bool { return strings.ContainsRune(chars, c) })
	}
}

func affixMethod(name string, has func(s, affix string) bool) func(r *run, s string, c call) any {
	return func(r *run, s string, c call) any {
		a := c.bind(r, name, "prefix", "start=", "end=")
		s, ok := r.within(s, a[1], a[2])
		if l, many := a[0].(*List); many && l.kind == "tuple" {
			for _, x := range l.Items {
				if ok && has(s, r.wantString("the prefix", x)) {
					return true
				}
			}
			return false
		}
		return has(s, r.wantString("the prefix", a[0])) && ok
	}
}

func cutMethod(name string, cut func(s, affix string) string) func(r *run, s string, c call) any {
	return func(r *run, s string, c call) any {
		return cut(s, r.wantString("the affix", c.bind(r, name, "affix")[0]))
	}
}

// within is s[start:end], and whether the range is one.
func (r *values) within(s string, start, end any) (string, bool) {
	if start == nil && end == nil {
		return s, true
	}
	from, to := r.bounds(len(r.chars(s)), start, end)
	if from > to {
		return "", false
	}
	return string(r.chars(s)[from:to]), true
}

// bounds are start and end as Python counts them in n characters.
func (r *values) bounds(n int, start, end any) (from, to int) {
	at := func(v any, missing int) int {
		if v == nil {
			return missing
		}
		i := int(max(-1<<40, min(r.toInt(v), 1<<40)))
		if i < 0 {
			return max(0, i+n)
		}
		return i
	}
	return at(start, 0), min(n, at(end, n))
}

func findMethod(name string, find func(s, sub string) int) func(r *run, s string, c call) any {
	return func(r *run, s string, c call) any {
		a := c.bind(r, name, "sub", "start=", "end=")
		sub := r.wantString("the text", a[0])
		r.work(len(s))
		chars := 0
		inside, ok := s, true
		if a[1] != nil || a[2] != nil {
			chars, _ = r.bounds(len(r.chars(s)), a[1], a[2])
			inside, ok = r.within(s, a[1], a[2])
		}
		if i := find(inside, sub); ok && i >= 0 {
			return int64(chars + utf8.RuneCountInString(inside[:i]))
		}
		if name == "index" || name == "rindex" {
			r.fail("substring not found")
		}
		return int64(-1)
	}
}

func countMethod(r *run, s string, c call) any {
	a := c.bind(r, "count", "sub", "start=", "end=")
	sub := r.wantString("the text", a[0])
	s, ok := r.within(s, a[1], a[2])
	r.work(len(s))
	if !ok {
		return int64(0)
	}
	return int64(strings.Count(s, sub))
}

func replaceMethod(r *run, s string, c call) any {
	a := c.bind(r, "replace", "old", "new", "count=")
	n := int64(-1)
	if a[2] != nil {
		n = r.toInt(a[2])
	}
	return r.replace(s, r.wantString("replace() argument 1", a[0]), r.wantString("replace() argument 2", a[1]), n)
}

// replace is s.replace(old, by, n).
func (r *values) replace(s, old, by string, n int64) string {
	count := strings.Count(s, old)
	if n >= 0 && n < int64(count) {
		count = int(n)
	}
	if len(by) > 0 && count > r.limits.Memory/len(by) {
		count = r.limits.Memory
	}
	r.alloc(max(0, len(s)+count*(len(by)-len(old))))
	return strings.Replace(s, old, by, count)
}

func joinMethod(r *run, s string, c call) any {
	return r.joinItems(s, r.items(c.bind(r, "join", "iterable")[0]))
}

// joinItems is sep.join(items): all must be texts.
func (r *values) joinItems(sep string, items []any) string {
	parts := make([]string, len(items))
	for i, x := range items {
		s, ok := plain(x).(string)
		if !ok {
			r.fail("sequence item %d: expected str instance, %s found", i, typeName(x))
		}
		r.alloc(len(s) + len(sep))
		parts[i] = s
	}
	return strings.Join(parts, sep)
}

// split is s.split or s.rsplit.
func (r *run) split(s string, c call, right bool) any {
	a := c.bind(r, "split", "sep=", "maxsplit=")
	limit := int64(-1)
	if a[1] != nil {
		limit = r.toInt(a[1])
	}
	r.alloc(itemBytes + len(s))
	var parts []string
	if a[0] == nil {
		parts = splitSpace(s, limit, right)
	} else {
		sep := r.wantString("the separator", a[0])
		if sep == "" {
			r.fail("empty separator")
		}
		parts = splitBy(s, sep, limit, right)
	}
	r.alloc(itemBytes * len(parts))
	out := NewList()
	for _, p := range parts {
		out.Items = append(out.Items, p)
	}
	return out
}

func splitBy(s, sep string, limit int64, right bool) []string {
	switch n := int64(strings.Count(s, sep)); {
	case limit < 0 || limit >= n:
		return strings.Split(s, sep)
	case !right:
		return strings.SplitN(s, sep, int(limit)+1)
	}
	var out []string
	for ; limit > 0; limit-- {
		i := strings.LastIndex(s, sep)
		out = append(out, s[i+len(sep):])
		s = s[:i]
	}
	out = append(out, s)
	for i, j := 0, len(out)-1; i < j; i, j = i+1, j-1 {
		out[i], out[j] = out[j], out[i]
	}
	return out
}

// splitSpace splits at runs of white space.
func splitSpace(s string, limit int64, right bool) []string {
	var out []string
	if right {
		s = strings.TrimRightFunc(s, pySpace)
		for ; s != "" && limit != 0; limit-- {
			i := strings.LastIndexFunc(s, pySpace)
			if i < 0 {
				break
			}
			_, n := utf8.DecodeRuneInString(s[i:])
			out = append(out, s[i+n:])
			s = strings.TrimRightFunc(s[:i], pySpace)
		}
		if s != "" {
			out = append(out, s)
		}
		for i, j := 0, len(out)-1; i < j; i, j = i+1, j-1 {
			out[i], out[j] = out[j], out[i]
		}
		return out
	}
	s = strings.TrimLeftFunc(s, pySpace)
	for ; s != "" && limit != 0; limit-- {
		i := strings.IndexFunc(s, pySpace)
		if i < 0 {
			break
		}
		out = append(out, s[:i])
		s = strings.TrimLeftFunc(s[i:], pySpace)
	}
	if s != "" {
		out = append(out, s)
	}
	return out
}

func splitLines(r *run, s string, c call) any {
	a := c.bind(r, "splitlines", "keepends=")
	keep := a[0] != nil && r.truth(a[0])
	out := NewList()
	r.alloc(len(s))
	for s != "" {
		i := strings.IndexAny(s, "\n\r\v\f\x1c\x1d\x1e\u0085\u2028\u2029")
		end, next := len(s), len(s)
		if i >= 0 {
			_, n := utf8.DecodeRuneInString(s[i:])
			if strings.HasPrefix(s[i:], "\r\n") {
				n = 2
			}
			end, next = i, i+n
		}
		if keep {
			end = next
		}
		r.alloc(itemBytes)
		out.Items = append(out.Items, s[:end])
		s = s[next:]
	}
	return out
}

func partition(name string, find func(s, sep string) int) func(r *run, s string, c call) any {
	return func(r *run, s string, c call) any {
		sep := r.wantString("the separator", c.bind(r, name, "sep")[0])
		if sep == "" {
			r.fail("empty separator")
		}
		r.work(len(s))
		i := find(s, sep)
		switch {
		case i >= 0:
			return tuple(s[:i], sep, s[i+len(sep):])
		case name == "partition":
			return tuple(s, "", "")
		}
		return tuple("", "", s)
	}
}

func padMethod(name string) func(r *run, s string, c call) any {
	return func(r *run, s string, c call) any {
		a := c.bind(r, name, "width", "fillchar=")
		fill := " "
		if a[1] != nil {
			if fill = r.wantString("the fill character", a[1]); utf8.RuneCountInString(fill) != 1 {
				r.fail("The fill character must be exactly one character long")
			}
		}
		return r.pad(s, r.toInt(a[0]), fill, name)
	}
}

// pad fills s up to a width.
func (r *values) pad(s string, width int64, fill, how string) string {
	n := width - int64(utf8.RuneCountInString(s))
	if n <= 0 {
		return s
	}
	left, right := int64(0), n
	switch how {
	case "rjust":
		left, right = n, 0
	case "center":
		left = n/2 + n&width&1
		right = n - left
	}
	return r.times(fill, left) + s + r.times(fill, right)
}

func zfill(r *run, s string, c call) any {
	width := r.toInt(c.bind(r, "zfill", "width")[0])
	n := width - int64(utf8.RuneCountInString(s))
	sign := ""
	if strings.HasPrefix(s, "-") || strings.HasPrefix(s, "+") {
		sign, s = s[:1], s[1:]
	}
	return sign + r.times("0", n) + s
}

func (r *values) expandTabs(s string, size any) string {
	tab := int64(8)
	if size != nil {
		tab = r.toInt(size)
	}
	var b strings.Builder
	column := int64(0)
	for _, c := range s {
		switch {
		case c == '\t' && tab > 0:
			b.WriteString(r.times(" ", tab-column%tab))
			column += tab - column%tab
		case c == '\t':
		default:
			b.WriteRune(c)
			if column++; c == '\n' || c == '\r' {
				column = 0
			}
		}
	}
	r.alloc(b.Len())
	return b.String()
}
