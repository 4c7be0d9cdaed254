package products

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mlxlua/mlxlua/tensor"
)

// term are the dimensions of an operand, or of a result, by their names: letters, and for those that an ellipsis stands
// for -1 for the last one, -2 for the one before it.
type term []int

func (t term) has(name int) bool { return slices.Contains(t, name) }

// equation is a text of subscripts beside the shapes of its operands.
type equation struct {
	in    []term
	out   term
	sizes map[int]int // by name: 1 is broadcast
}

// subscript is a term as it is written: the letters before its ellipsis, and those behind it.
type subscript struct {
	before, after term
	ellipsis      bool
}

// letters are all letters of a subscript.
func (s subscript) letters() term { return append(slices.Clone(s.before), s.after...) }

// expand puts n names in the place of the ellipsis.
func (s subscript) expand(n int) term {
	t := slices.Clone(s.before)
	if s.ellipsis {
		for i := range n {
			t = append(t, i-n)
		}
	}
	return append(t, s.after...)
}

func parseSubscript(text string) (s subscript, err error) {
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
			if s.ellipsis {
				s.after = append(s.after, int(c))
			} else {
				s.before = append(s.before, int(c))
			}
		case strings.HasPrefix(text[i:], "..."):
			if s.ellipsis {
				return s, fmt.Errorf("a subscript has one ellipsis at most: %q", text)
			}
			s.ellipsis = true
			i += 2
		default:
			return s, fmt.Errorf("subscripts are letters and ellipses, but %q has %q", text, string(c))
		}
	}
	return s, nil
}

// parse reads subscripts as NumPy does: without an arrow the result has the ellipsis' dimensions and the letters that
// stand once, sorted.
func parse(text string, shapes []tensor.Shape) (e equation, err error) {
	left, right, explicit := strings.Cut(strings.ReplaceAll(text, " ", ""), "->")
	operands := strings.Split(left, ",")
	if len(operands) != len(shapes) {
		return e, fmt.Errorf("%q has subscripts for %s, there are %d", text, tensor.Count(len(operands), "operand"),
			len(shapes))
	}
	e.sizes = map[int]int{}
	count, hidden, ellipsis := map[int]int{}, 0, false
	for i, operand := range operands {
		s, err := parseSubscript(operand)
		if err != nil {
			return e, err
		}
		n := len(shapes[i]) - len(s.before) - len(s.after)
		if n < 0 || n > 0 && !s.ellipsis {
			return e, fmt.Errorf("subscripts %q are for %s, operand %d has shape %v", operand,
				tensor.Count(len(s.before)+len(s.after), "dimension"), i, shapes[i])
		}
		for _, name := range s.letters() {
			count[name]++
		}
		hidden, ellipsis = max(hidden, n), ellipsis || s.ellipsis
		e.in = append(e.in, s.expand(n))
		if err := e.measure(i, shapes[i]); err != nil {
			return e, err
		}
	}
	var out subscript
	if explicit {
		if out, err = parseSubscript(right); err != nil {
			return e, err
		}
	} else {
		out.ellipsis = ellipsis
		for name, n := range count {
			if n == 1 {
				out.after = append(out.after, name)
			}
		}
		slices.Sort(out.after)
	}
	e.out = out.expand(hidden)
	for i, name := range e.out {
		switch {
		case e.out[:i].has(name):
			return e, fmt.Errorf("the result of %q has %q twice", text, string(rune(name)))
		case name > 0 && count[name] == 0:
			return e, fmt.Errorf("the result of %q has %q, which no operand has", text, string(rune(name)))
		}
	}
	return e, nil
}

// measure notes the sizes of operand i's dimensions.
func (e *equation) measure(i int, shape tensor.Shape) error {
	own := map[int]int{}
	for k, name := range e.in[i] {
		n := shape[k]
		if before, ok := own[name]; ok && before != n {
			return fmt.Errorf("dimensions of operand %d, of shape %v, have one name, %q, and sizes %d and %d", i, shape,
				string(rune(name)), before, n)
		}
		own[name] = n
		all, ok := e.sizes[name]
		if ok && all != n && all != 1 && n != 1 {
			return fmt.Errorf("dimension %d of operand %d, of shape %v, cannot be broadcast to %d", k, i, shape, all)
		}
		if !ok || all == 1 {
			e.sizes[name] = n
		}
	}
	return nil
}
