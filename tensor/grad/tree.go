package grad

import (
	"fmt"
	"strconv"
	"strings"
)

// Tree is nested, ordered structure with leaves of type T: parameters, gradients, optimizer states. A Tree without
// Kids and Keys is a leaf unless Branch says that it is an empty branch.
type Tree[T any] struct {
	Leaf   T
	Branch bool
	Keys   []string // names of the Kids, in their order; nil for a list
	Kids   []Tree[T]
}

// Leaves lists the leaves in order.
func (t Tree[T]) Leaves() []T {
	var out []T
	t.walk(func(leaf T) { out = append(out, leaf) })
	return out
}

func (t Tree[T]) walk(f func(T)) {
	if !t.Branch {
		f(t.Leaf)
		return
	}
	for _, k := range t.Kids {
		k.walk(f)
	}
}

// Structure is a text that two trees share exactly if they differ in their leaves only: for cache keys.
func (t Tree[T]) Structure() string {
	var b strings.Builder
	t.structure(&b)
	return b.String()
}

func (t Tree[T]) structure(b *strings.Builder) {
	if !t.Branch {
		b.WriteByte('*')
		return
	}
	b.WriteByte('{')
	for i, k := range t.Kids {
		if t.Keys != nil {
			b.WriteString(strconv.Quote(t.Keys[i]) + "=")
		}
		k.structure(b)
		b.WriteByte(',')
	}
	b.WriteByte('}')
}

// Rebuild gives a tree of t's structure with other leaves, which may have another type. Their number must be right.
func Rebuild[T, U any](t Tree[T], leaves []U) (Tree[U], error) {
	out, rest, err := rebuild(t, leaves)
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("%d leaves too many for the tree %s", len(rest), t.Structure())
	}
	return out, err
}

func rebuild[T, U any](t Tree[T], leaves []U) (Tree[U], []U, error) {
	var out Tree[U]
	if !t.Branch {
		if len(leaves) == 0 {
			return out, nil, fmt.Errorf("too few leaves for the tree")
		}
		out.Leaf = leaves[0]
		return out, leaves[1:], nil
	}
	out.Branch, out.Keys = true, t.Keys
	var err error
	for _, k := range t.Kids {
		var kid Tree[U]
		if kid, leaves, err = rebuild(k, leaves); err != nil {
			return out, nil, err
		}
		out.Kids = append(out.Kids, kid)
	}
	return out, leaves, nil
}
