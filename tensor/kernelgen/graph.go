package kernelgen

import (
	"fmt"
	"strconv"
	"strings"
)

// Graph is an element-wise computation: Nodes in order, each an MSL expression of operands and earlier nodes.
type Graph struct {
	Operands []Operand
	Nodes    []Node
}

// Operand is an input of a kernel.
type Operand struct {
	Type   string // of its elements, in MSL
	Scalar bool   // one element for all: bound as a constant reference
}

// Node is one operation. In Expr, $i is Args[i]; the value is converted to Type once.
type Node struct {
	Expr string
	Args []Ref
	Type string
	Out  bool // the value is stored as an output
}

// Ref is an operand (Index counts Operands) or a node (Index counts Nodes).
type Ref struct {
	Node  bool
	Index int
}

// Key is a text that two graphs share exactly if they print the same kernel.
func (g *Graph) Key() string {
	var b strings.Builder
	for _, o := range g.Operands {
		fmt.Fprintf(&b, "%s %t;", o.Type, o.Scalar)
	}
	for _, n := range g.Nodes {
		fmt.Fprintf(&b, "%q %v %s %t;", n.Expr, n.Args, n.Type, n.Out)
	}
	return b.String()
}

// Layout says how a kernel walks its elements.
type Layout struct {
	Rank int  // 0: all arrays are contiguous; else the number of collapsed dimensions that are walked by strides
	Long bool // indices may pass 2^31
}

// Entry is the name of the kernel in printed text.
const Entry = "generated"

// preamble begins every generated text: products and sums are never contracted, so that fused and unfused results are
// byte-equal.
const preamble = "#pragma clang fp contract(off)\n"

// printer collects a kernel's text and parameters.
type printer struct {
	params []string
	body   strings.Builder
}

func (p *printer) param(decl string) {
	p.params = append(p.params, fmt.Sprintf("    %s [[buffer(%d)]]", decl, len(p.params)))
}

func (p *printer) line(format string, args ...any) { fmt.Fprintf(&p.body, "  "+format+"\n", args...) }

func (p *printer) text(header, attributes string) string {
	return preamble + header + "[[kernel]] void " + Entry + "(\n" + strings.Join(p.params, ",\n") + ",\n    " + attributes +
		") {\n" + p.body.String() + "}\n"
}

// Elementwise prints a kernel of g. Parameters, in order: each operand (Scalar ones as constant references), each output, and for
// Rank > 0 `constant int* shape` and `constant long* strides` (of all array operands, in order; Rank each; in elements); for Rank 0
// and Long `constant ulong& size`. Threads: one for each element, x fastest. For Rank > 0, x is the last dimension and y counts the
// others' combinations; for Rank 0 the grid is the elements, folded at FoldedWidth if Long.
func Elementwise(g *Graph, l Layout) string {
	var p printer
	index := indexType(l.Long)
	var arrays []int
	for i, o := range g.Operands {
		if o.Scalar {
			p.param(fmt.Sprintf("constant %s& a%d", o.Type, i))
			continue
		}
		p.param(fmt.Sprintf("const device %s* a%d", o.Type, i))
		arrays = append(arrays, i)
	}
	for i, n := range g.Nodes {
		if n.Out {
			p.param(fmt.Sprintf("device %s* o%d", n.Type, i))
		}
	}
	at := make([]string, len(g.Operands))
	switch {
	case l.Rank > 0:
		p.param("constant int* shape")
		p.param("constant long* strides")
		p.strided(l, arrays, at)
	case l.Long:
		p.param("constant ulong& size")
		p.line("const ulong at = ulong(where.y) * %d + where.x;", FoldedWidth)
		p.line("if (at >= size) return;")
	default:
		p.line("const uint at = where.x;")
	}
	for _, i := range arrays {
		if at[i] == "" {
			at[i] = "at"
		}
	}
	names := p.compute(g, at)
	for i, n := range g.Nodes {
		if n.Out {
			p.line("o%d[at] = %s;", i, names[i])
		}
	}
	_ = index
	return p.text("", "uint3 where [[thread_position_in_grid]]")
}

// FoldedWidth is the grid's width for contiguous kernels of more than 2^31 elements.
const FoldedWidth = 1 << 30

func indexType(long bool) string {
	if long {
		return "long"
	}
	return "int"
}

// strided computes each array operand's index and the output's. Index arithmetic beyond the last dimension is once per row.
func (p *printer) strided(l Layout, arrays []int, at []string) {
	index := indexType(l.Long)
	last := l.Rank - 1
	p.line("uint row = where.y;")
	p.line("const %s at = %s(row) * shape[%d] + %s(where.x);", index, index, last, index)
	for k, i := range arrays {
		p.line("%s i%d = %s(where.x) * %s(strides[%d]);", index, i, index, index, k*l.Rank+last)
		at[i] = "i" + strconv.Itoa(i)
	}
	for d := last - 1; d >= 0; d-- {
		coordinate := "row"
		if d > 0 {
			p.line("const uint q%d = row / uint(shape[%d]);", d, d)
			p.line("const uint c%d = row - q%d * uint(shape[%d]);", d, d, d)
			coordinate = "c" + strconv.Itoa(d)
		}
		for k, i := range arrays {
			p.line("i%d += %s(%s) * %s(strides[%d]);", i, index, coordinate, index, k*l.Rank+d)
		}
		if d > 0 {
			p.line("row = q%d;", d)
		}
	}
}

// compute prints the loads and nodes, and gives the nodes' variables.
func (p *printer) compute(g *Graph, at []string) []string {
	operands := make([]string, len(g.Operands))
	for i, o := range g.Operands {
		if o.Scalar {
			operands[i] = "a" + strconv.Itoa(i)
			continue
		}
		operands[i] = "v" + strconv.Itoa(i)
		p.line("const %s v%d = a%d[%s];", o.Type, i, i, at[i])
	}
	names := make([]string, len(g.Nodes))
	for i, n := range g.Nodes {
		args := make([]string, len(n.Args))
		for k, r := range n.Args {
			if r.Node {
				args[k] = names[r.Index]
			} else {
				args[k] = operands[r.Index]
			}
		}
		names[i] = "t" + strconv.Itoa(i)
		p.line("const %s t%d = %s(%s);", n.Type, i, n.Type, Substitute(n.Expr, args, ""))
	}
	return names
}

// Substitute replaces $0, $1, ... in an expression by args, and $i by index.
func Substitute(expr string, args []string, index string) string {
	var b strings.Builder
	for i := 0; i < len(expr); i++ {
		if expr[i] != '$' || i+1 == len(expr) {
			b.WriteByte(expr[i])
			continue
		}
		j := i + 1
		for j < len(expr) && expr[j] >= '0' && expr[j] <= '9' {
			j++
		}
		if j == i+1 {
			if expr[j] == 'i' {
				b.WriteString(index)
				i = j
			} else {
				b.WriteByte('$')
			}
			continue
		}
		n, _ := strconv.Atoi(expr[i+1 : j])
		if n < len(args) {
			b.WriteString(args[n])
		}
		i = j - 1
	}
	return b.String()
}
