package tokenizer

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// An oniguruma reads a pattern as Oniguruma does, which is what Python's tokenizers search with, and writes it for
// Go's regexp and regexp2: classes of characters as ranges, since those know other Unicode versions, and (?i:...) as
// classes.
type oniguruma struct {
	in     string
	i      int
	out    strings.Builder
	fold   []bool // whether the groups that are open ignore case
	before rune   // the letter before, where case is ignored
	linear bool   // Go's regexp can search with it
	within int    // how many classes are open
}

// Bounds of a pattern: a file asks for it, and a search engine works on it.
const (
	maxPattern    = 1 << 16 // bytes
	maxTranslated = 1 << 22 // bytes: a \p{L} has 12,000
	maxNested     = 200     // groups within groups, and classes within classes
)

// translated is a pattern for Go's regexp if linear, else for regexp2.
func translated(text string) (out string, linear bool, err error) {
	if len(text) > maxPattern {
		return "", false, fmt.Errorf("it has %d bytes, at most %d are accepted", len(text), maxPattern)
	}
	o := &oniguruma{in: text, fold: []bool{false}, linear: true}
	for o.i < len(o.in) && o.out.Len() <= maxTranslated && err == nil {
		err = o.next()
	}
	switch {
	case err != nil:
		return "", false, err
	case o.out.Len() > maxTranslated:
		return "", false, fmt.Errorf("its classes of characters take more than %d bytes of ranges", maxTranslated)
	case len(o.fold) != 1:
		return "", false, fmt.Errorf("a parenthesis is not closed")
	}
	return o.out.String(), o.linear, nil
}

func unsupported(what string) error { return fmt.Errorf("%s is not supported", what) }

// char takes a character.
func (o *oniguruma) char() rune {
	r, n := utf8.DecodeRuneInString(o.in[o.i:])
	o.i += n
	return r
}

// skip takes a text, if it comes next.
func (o *oniguruma) skip(text string) bool {
	if !strings.HasPrefix(o.in[o.i:], text) {
		return false
	}
	o.i += len(text)
	return true
}

func (o *oniguruma) ignoresCase() bool { return o.fold[len(o.fold)-1] }

// next translates a character or group of characters that belong together.
func (o *oniguruma) next() error {
	before := o.before
	o.before = 0
	switch c := o.char(); c {
	case '\\':
		return o.escaped(before)
	case '[':
		set, err := o.class()
		if err == nil {
			o.out.WriteString(set.pattern())
		}
		return err
	case '.':
		o.out.WriteString(charset{{'\n', '\n'}}.not())
	case '(':
		return o.open()
	case ')':
		if len(o.fold) == 1 {
			return fmt.Errorf("a parenthesis is not opened")
		}
		o.fold = o.fold[:len(o.fold)-1]
		o.out.WriteByte(')')
	case '^', '$':
		o.linear = false
		o.out.WriteRune(c)
	case '|':
		o.out.WriteByte('|')
	case '*', '+', '?':
		o.out.WriteRune(c)
		if o.skip("+") {
			return unsupported(string(c) + "+")
		}
		if o.skip("?") {
			o.out.WriteByte('?')
		}
	case '{':
		return o.repeat()
	default:
		return o.literal(c, before)
	}
	return nil
}

var groups = []string{"(?:", "(?i:", "(?=", "(?!", "(?<=", "(?<!", "(?>"}

// open translates what begins a group.
func (o *oniguruma) open() error {
	fold := o.ignoresCase()
	if len(o.fold) > maxNested {
		return fmt.Errorf("groups are nested more than %d deep", maxNested)
	}
	o.i--
	for _, g := range groups {
		if o.skip(g) {
			o.linear = o.linear && g[len(g)-1] == ':'
			o.fold = append(o.fold, fold || g == "(?i:")
			o.out.WriteString(strings.Replace(g, "i", "", 1))
			return nil
		}
	}
	if strings.HasPrefix(o.in[o.i:], "(?") {
		return unsupported(o.in[o.i:min(o.i+3, len(o.in))])
	}
	o.skip("(")
	o.fold = append(o.fold, fold)
	o.out.WriteString("(?:")
	return nil
}

var repeats = regexp.MustCompile(`^(\d+)(,(\d*))?\}`)

// repeat translates what follows a {.
func (o *oniguruma) repeat() error {
	m := repeats.FindString(o.in[o.i:])
	if m == "" {
		return unsupported("a { that begins no number of repetitions")
	}
	o.i += len(m)
	o.out.WriteString("{" + m)
	if o.skip("+") {
		return unsupported("}+")
	}
	if o.skip("?") {
		if !strings.Contains(m, ",") { // to Oniguruma it means: or none
			return unsupported("}?")
		}
		o.out.WriteByte('?')
	}
	return nil
}

// joined are letters that are one in another case: ß is ss.
var joined = map[string]bool{"ss": true, "ff": true, "fi": true, "fl": true, "st": true}

// literal translates a character that stands for itself.
func (o *oniguruma) literal(c, before rune) error {
	set := charset{{c, c}}
	if o.ignoresCase() {
		folded, ok := set.folded()
		if !ok {
			return unsupported(fmt.Sprintf("%q in (?i:", c))
		}
		set, o.before = folded, asciiLower(c)
		if joined[string([]rune{before, o.before})] {
			return unsupported(fmt.Sprintf("%q in (?i:", string([]rune{before, o.before})))
		}
	}
	if len(set) > 1 {
		o.out.WriteString(set.pattern())
	} else {
		fmt.Fprintf(&o.out, `\x{%X}`, c)
	}
	return nil
}

func asciiLower(c rune) rune {
	if c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// escaped translates what follows a \ outside of classes.
func (o *oniguruma) escaped(before rune) error {
	anchors := map[byte]string{'A': `\A`, 'z': `\z`, 'b': `(?:(?<=W)(?!W)|(?<!W)(?=W))`,
		'B': `(?:(?<=W)(?=W)|(?<!W)(?!W))`}
	if o.i < len(o.in) {
		if a, ok := anchors[o.in[o.i]]; ok {
			set, _ := namedSet("w")
			o.out.WriteString(strings.ReplaceAll(a, "W", set.pattern()))
			o.i++
			o.linear = false
			return nil
		}
	}
	set, c, err := o.escape()
	switch {
	case err != nil:
		return err
	case set == nil:
		return o.literal(c, before)
	}
	o.out.WriteString(set.pattern())
	return nil
}

var escapes = map[rune]rune{'n': '\n', 'r': '\r', 't': '\t', 'f': '\f', 'v': '\v', 'a': '\a', 'e': 0x1B}

var codes = regexp.MustCompile(`^(?:x\{([0-9A-Fa-f]{1,6})\}|x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4}))`)

// escape reads what follows a \: a set of characters, or one.
func (o *oniguruma) escape() (charset, rune, error) {
	if m := codes.FindStringSubmatch(o.in[o.i:]); m != nil {
		o.i += len(m[0])
		n, err := strconv.ParseUint(m[1]+m[2]+m[3], 16, 32)
		if err != nil || n > utf8.MaxRune {
			return nil, 0, unsupported(`\` + m[0])
		}
		return nil, rune(n), nil
	}
	if o.i == len(o.in) {
		return nil, 0, fmt.Errorf(`\ is the end`)
	}
	switch c := o.char(); c {
	case 'p', 'P':
		name, ok := o.property()
		set, known := namedSet(strings.TrimPrefix(name, "^"))
		if !ok || !known || strings.ContainsAny(name, "wds") && len(name) == 1 {
			return nil, 0, unsupported(`\p{` + name + `}`)
		}
		if o.ignoresCase() {
			return nil, 0, unsupported(`\p{` + name + `} in (?i:`)
		}
		if strings.HasPrefix(name, "^") != (c == 'P') {
			set = set.complement()
		}
		return set, 0, nil
	case 'w', 'd', 's':
		return o.perl(c), 0, nil
	case 'W', 'D', 'S':
		return o.perl(asciiLower(c)).complement(), 0, nil
	default:
		if e, ok := escapes[c]; ok {
			return nil, e, nil
		}
		if c >= 128 || c >= '0' && c <= '9' || asciiLower(c) >= 'a' && asciiLower(c) <= 'z' {
			return nil, 0, unsupported(`\` + string(c))
		}
		return nil, c, nil
	}
}

// perl is \w, \d or \s.
func (o *oniguruma) perl(name rune) charset {
	if name == 'w' && o.within > 0 {
		return wordsInClasses()
	}
	set, _ := namedSet(string(name))
	return set
}

// property reads {name}.
func (o *oniguruma) property() (string, bool) {
	rest, ok := strings.CutPrefix(o.in[o.i:], "{")
	name, _, closed := strings.Cut(rest, "}")
	if !ok || !closed {
		return "", false
	}
	o.i += len(name) + 2
	return name, true
}

// class reads what follows a [: classes within it are united with it, and && has what is on both sides.
func (o *oniguruma) class() (charset, error) {
	not := o.skip("^")
	if o.within++; o.within > maxNested {
		return nil, fmt.Errorf("classes are nested more than %d deep", maxNested)
	}
	defer func() { o.within-- }()
	var both, set charset // of what is before the last &&, and of what comes after it, in any order
	halves, tidy := false, 0
	side := func() charset {
		set = set.tidied()
		if halves {
			set = both.intersection(set)
		}
		return set
	}
	for first := true; ; first = false {
		if len(set) > 2*tidy+1024 { // so that many sets take the room of one
			set = set.tidied()
			tidy = len(set)
		}
		var more charset
		var err error
		switch {
		case o.i == len(o.in):
			err = fmt.Errorf("a [ is not closed")
		case !first && o.skip("]"):
			if set = side(); not {
				set = set.complement()
			}
			return set, nil
		case o.skip("[:"):
			err = unsupported("[:")
		case o.skip("["):
			more, err = o.class()
		case o.skip("&&"):
			both, set, halves, tidy = side(), nil, true, 0
		default:
			more, err = o.member()
		}
		if err != nil {
			return nil, err
		}
		set = append(set, more...)
	}
}

// member reads a character of a class, a range, or a set such as \s.
func (o *oniguruma) member() (charset, error) {
	one := func() (charset, rune, error) {
		if o.skip(`\`) {
			return o.escape()
		}
		return nil, o.char(), nil
	}
	set, from, err := one()
	if err != nil {
		return nil, err
	}
	rest := o.in[o.i:]
	isRange := len(rest) > 1 && rest[0] == '-' && rest[1] != ']'
	if set != nil {
		if isRange {
			return nil, unsupported("a range from a class")
		}
		return set, nil
	}
	to := from
	if isRange {
		o.skip("-")
		if strings.HasPrefix(o.in[o.i:], "[") || strings.HasPrefix(o.in[o.i:], "&&") {
			return nil, unsupported("a range to a class")
		}
		if set, to, err = one(); err != nil {
			return nil, err
		}
		if set != nil || to < from {
			return nil, unsupported("a range to " + strconv.QuoteRune(to))
		}
	}
	set = charset{{from, to}}
	if o.ignoresCase() {
		folded, ok := set.folded()
		if !ok {
			return nil, unsupported(fmt.Sprintf("%q in (?i:", from))
		}
		return folded, nil
	}
	return set, nil
}
