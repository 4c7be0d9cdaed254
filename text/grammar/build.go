package grammar

import (
	"unicode/utf8"
)

// nodeKind says how a text goes on from a node.
type nodeKind uint8

const (
	byteNode nodeKind = iota // by one of the ranges of bytes
	anyNode                  // by one of the nodes in to, without a byte
	callNode                 // by the rule, then to[0]
	popNode                  // the rule ends
	endNode                  // the text ends
)

// span is a range of bytes that lead to a node.
type span struct {
	low, high byte
	to        int32
}

type node struct {
	kind  nodeKind
	spans []span
	to    []int32
	rule  int32
}

// mostNodes bounds an automaton.
const mostNodes = 300_000

// builder makes nodes from the end of a text to its beginning: each method gives the node from which a piece of text
// leads to next.
type builder struct {
	nodes []node
	rules []int32 // where they begin
	memo  map[string]int32
	full  bool
}

func newBuilder() *builder { return &builder{memo: map[string]int32{}} }

func (b *builder) add(n node) int32 {
	if len(b.nodes) >= mostNodes {
		b.full = true
		return 0
	}
	b.nodes = append(b.nodes, n)
	return int32(len(b.nodes) - 1)
}

func (b *builder) bytes(next int32, ranges ...byte) int32 {
	n := node{kind: byteNode}
	for i := 0; i < len(ranges); i += 2 {
		n.spans = append(n.spans, span{ranges[i], ranges[i+1], next})
	}
	return b.add(n)
}

func (b *builder) either(nodes ...int32) int32 {
	if len(nodes) == 1 {
		return nodes[0]
	}
	return b.add(node{kind: anyNode, to: nodes})
}

func (b *builder) literal(text string, next int32) int32 {
	for i := len(text) - 1; i >= 0; i-- {
		next = b.bytes(next, text[i], text[i])
	}
	return next
}

func (b *builder) call(rule, next int32) int32 {
	return b.add(node{kind: callNode, rule: rule, to: []int32{next}})
}

// loop is piece any number of times.
func (b *builder) loop(next int32, piece func(next int32) int32) int32 {
	at := b.add(node{kind: anyNode})
	b.nodes[at].to = []int32{piece(at), next}
	return at
}

// times is piece from low to high times; high < 0: any number.
func (b *builder) times(next int32, low, high int, piece func(next int32) int32) int32 {
	if high < 0 {
		next = b.loop(next, piece)
	} else {
		end := next
		for i := low; i < high && !b.full; i++ {
			next = b.either(piece(next), end)
		}
	}
	for i := 0; i < low && !b.full; i++ {
		next = piece(next)
	}
	return next
}

// space is white space between two parts: none, a space, or a line end with up to 20 spaces.
func (b *builder) space(next int32) int32 {
	line := b.bytes(b.times(next, 0, 20, func(n int32) int32 { return b.bytes(n, ' ', ' ') }), '\n', '\n')
	return b.either(next, b.bytes(next, ' ', ' '), line)
}

// digits are from low to high digits.
func (b *builder) digits(next int32, low, high int) int32 {
	return b.times(next, low, high, func(n int32) int32 { return b.bytes(n, '0', '9') })
}

// integer is a whole number.
func (b *builder) integer(next int32) int32 {
	plain := b.either(b.bytes(next, '0', '0'), b.bytes(b.digits(next, 0, 14), '1', '9'))
	return b.either(plain, b.bytes(plain, '-', '-'))
}

// number is a number.
func (b *builder) number(next int32) int32 {
	exponent := b.digits(next, 1, 2)
	exponent = b.bytes(b.either(exponent, b.bytes(exponent, '+', '+', '-', '-')), 'e', 'e', 'E', 'E')
	tail := b.either(next, exponent)
	return b.integer(b.either(tail, b.bytes(b.digits(tail, 1, 15), '.', '.')))
}

// rest is the end of a character of UTF-8: n bytes.
func (b *builder) rest(n int, next int32) int32 {
	for range n {
		next = b.bytes(next, 0x80, 0xbf)
	}
	return next
}

// wide is a character of several bytes.
func (b *builder) wide(next int32) int32 {
	one, two, three := b.rest(1, next), b.rest(2, next), b.rest(3, next)
	n := node{kind: byteNode, spans: []span{{0xc2, 0xdf, one}, {0xe0, 0xe0, b.bytes(one, 0xa0, 0xbf)}, {0xe1, 0xec, two},
		{0xed, 0xed, b.bytes(one, 0x80, 0x9f)}, {0xee, 0xef, two}, {0xf0, 0xf0, b.bytes(two, 0x90, 0xbf)},
		{0xf1, 0xf3, three}, {0xf4, 0xf4, b.bytes(two, 0x80, 0x8f)}}}
	return b.add(n)
}

// character is a character of a JSON string, as it is or escaped.
func (b *builder) character(next int32) int32 {
	hex := func(n int32) int32 { return b.bytes(n, '0', '9', 'a', 'f', 'A', 'F') }
	two, one := hex(hex(next)), hex(next)
	three := hex(two)
	_ = one
	unicode := b.either(b.bytes(three, '0', '9', 'a', 'c', 'A', 'C', 'e', 'f', 'E', 'F'),
		b.bytes(b.bytes(two, '0', '7'), 'd', 'd', 'D', 'D'))
	escape := b.either(b.bytes(next, '"', '"', '\\', '\\', '/', '/', 'b', 'b', 'f', 'f', 'n', 'n', 'r', 'r', 't', 't'),
		b.bytes(unicode, 'u', 'u'))
	return b.either(b.bytes(next, 0x20, 0x21, 0x23, 0x5b, 0x5d, 0x7f), b.wide(next), b.bytes(escape, '\\', '\\'))
}

// text is a JSON string from low to high characters long.
func (b *builder) text(next int32, low, high int) int32 {
	end := b.bytes(next, '"', '"')
	return b.bytes(b.times(end, low, high, b.character), '"', '"')
}

// without is a JSON string that is none of the names, and the rest of the text.
func (b *builder) without(names []string, next int32) int32 {
	end := b.bytes(next, '"', '"')
	free := b.loop(end, b.character)
	return b.bytes(b.other(names, free, end), '"', '"')
}

// other are the characters of a text that is none of the names, of which those before are gone.
func (b *builder) other(names []string, free, end int32) int32 {
	after, ends := map[rune][]string{}, false
	var order []rune
	for _, name := range names {
		if name == "" {
			ends = true
			continue
		}
		c, n := utf8.DecodeRuneInString(name)
		if after[c] == nil {
			order = append(order, c)
		}
		after[c] = append(after[c], name[n:])
	}
	to := []int32{}
	if !ends {
		to = append(to, end)
	}
	// a character that none of them has here, of ASCII and without an escape, and the names' own
	n := node{kind: byteNode}
	for c := byte(0x20); c < 0x7f; c++ {
		if c != '"' && c != '\\' && after[rune(c)] == nil {
			n.spans = append(n.spans, span{c, c, free})
		}
	}
	to = append(to, b.add(n))
	for _, c := range order {
		if c >= 0x20 && c < 0x7f && c != '"' && c != '\\' {
			to = append(to, b.literal(string(c), b.other(after[c], free, end)))
		}
	}
	return b.either(to...)
}
