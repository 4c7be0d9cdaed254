package export

import (
	"bufio"
	"fmt"
	"io"
	"strconv"

	"github.com/mlxlua/mlxlua/tensor"
)

// Dot writes the graph that the arrays depend on in Graphviz's language: a rectangle for each call that is not
// evaluated, an ellipse for each array. Names are those of arrays; others have letters. It fails where a step of the
// call does: see tensor.Ctx.Step, which may be nil.
func Dot(c *tensor.Ctx, w io.Writer, arrays []*tensor.Array, names map[tensor.Value]string) error {
	order, err := c.Order(arrays, nil)
	if err != nil {
		return err
	}
	used, label := map[tensor.Value]bool{}, map[tensor.Value]string{}
	for _, n := range order {
		for _, v := range n.Inputs() {
			used[v] = true
		}
	}
	taken := map[string]bool{}
	for v, name := range names {
		label[v], taken[name] = name, true
	}
	next := 0
	name := func(v tensor.Value) string {
		for label[v] == "" {
			text := letters(next)
			if next++; !taken[text] {
				label[v] = text
			}
		}
		return strconv.Quote(label[v])
	}
	out := bufio.NewWriter(w)
	fmt.Fprintln(out, "digraph {")
	for _, n := range order {
		if err := c.Step(); err != nil {
			return err
		}
		call := n.State() == tensor.Lazy && !n.IsConstant() && !n.IsPlaceholder()
		if !call {
			for i := range n.NumOut() {
				if v := (tensor.Value{Node: n, Out: i}); used[v] || n.NumOut() == 1 {
					fmt.Fprintf(out, "{ rank=source; %s; }\n", name(v))
				}
			}
			continue
		}
		fmt.Fprintf(out, "{ %d [label =%q, shape=rectangle]; }\n", n.ID(), n.Op().Name())
		for _, v := range n.Inputs() {
			fmt.Fprintf(out, "%s -> %d\n", name(v), n.ID())
		}
		for i := range n.NumOut() {
			v, sink := tensor.Value{Node: n, Out: i}, ""
			if !used[v] {
				sink = "rank=sink; "
			}
			fmt.Fprintf(out, "{ %s%s; }\n%d -> %s\n", sink, name(v), n.ID(), name(v))
		}
	}
	fmt.Fprint(out, "}")
	return out.Flush()
}

// letters are the names A, B, ..., Z, AA, AB, ...
func letters(i int) string {
	name := ""
	for i++; i > 0; i = (i - 1) / 26 {
		name = string(rune('A'+(i-1)%26)) + name
	}
	return name
}
