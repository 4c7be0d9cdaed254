package kerneltest

import (
	"fmt"
	"strings"
)

// vectorBuffers are the buffers that are read as vectors of a type.
var vectorBuffers = map[string]string{"half4": "gh", "uchar4": "gb", "bfloat4": "gz", "half2": "gh", "ulong2": "gw"}

// vector is an expression of a vector type.
func (g *generator) vector(t, e string, n, depth int) string {
	if e == "" {
		e, _ = vecOf(t)
	}
	if v := g.variable(t); v != "" && (depth <= 0 || g.chance(30)) {
		return v
	}
	k := g.n(9)
	if depth <= 0 {
		k = g.n(2)
	}
	sub := func() string { return g.vector(t, e, n, depth-1) }
	switch k {
	case 0:
		return fmt.Sprintf("%s(%s)", t, g.expr(e, depth-1))
	case 1, 2:
		parts := make([]string, n)
		for i := range parts {
			parts[i] = g.expr(e, min(depth-1, 1))
		}
		return t + "(" + strings.Join(parts, ", ") + ")"
	case 3:
		if from := vectorBuffers[t]; from != "" && !g.inFunc {
			return fmt.Sprintf("((device const %s *)%s)[%s]", t, from, g.pick("gid & 63", "lane", "3", g.index(64)))
		}
		if !g.inFunc && (t == "float4" || t == "int4") {
			return fmt.Sprintf("((device const %s *)g%c)[%s]", t, e[0], g.pick("gid & 63", "lane", "3", g.index(64)))
		}
	}
	if e == "bool" || k == 3 {
		return fmt.Sprintf("(%s %s %s)", sub(), g.pick("+", "-", "*"), sub())
	}
	switch {
	case k == 4:
		return fmt.Sprintf("%s(%s)", t, g.vector(g.vectorLike(n), "", n, depth-1))
	case k == 5:
		return fmt.Sprintf("select(%s, %s, %s %s %s)", sub(), sub(), sub(), g.pick("<", "<=", "==", "!=", ">", ">="), sub())
	case isInt(e):
		return g.narrow(t, sub)
	}
	if e == "bfloat" {
		return fmt.Sprintf("(%s %s %s)", sub(), g.pick("+", "-", "*", "/"), sub())
	}
	switch g.n(4) {
	case 0:
		return fmt.Sprintf("%s(%s)", g.pick("floor", "ceil", "trunc", "rint", "fabs", "sqrt"), sub())
	case 1:
		return fmt.Sprintf("%s(%s, %s)", g.pick("min", "max", "fmin", "fmax"), sub(), sub())
	case 2:
		return fmt.Sprintf("fma(%s, %s, %s)", sub(), sub(), sub())
	}
	return fmt.Sprintf("(%s %s %s)", sub(), g.pick("+", "-", "*", "/"), sub())
}

// vectorLike picks a vector type of a length.
func (g *generator) vectorLike(n int) string {
	for {
		t := g.pick(vecTypes...)
		if _, m := vecOf(t); m == n {
			return t
		}
	}
}

// narrow is an operation on vectors of integers: unlike scalars, those of char and short stay what they are.
func (g *generator) narrow(t string, sub func() string) string {
	switch g.n(6) {
	case 0:
		return fmt.Sprintf("(%s %s %s)", sub(), g.pick("<<", ">>"), sub())
	case 1:
		return fmt.Sprintf("(%s %s %s)", sub(), g.pick("/", "%"), sub())
	case 2:
		return fmt.Sprintf("%s(%s(%s, %s))", t, g.pick("min", "max", "mulhi", "absdiff", "addsat", "rotate"), sub(), sub())
	case 3:
		return fmt.Sprintf("%s(%s(%s))", t, g.pick("popcount", "clz", "ctz", "reverse_bits", "abs"), sub())
	case 4:
		return fmt.Sprintf("(%s%s)", g.pick("~", "-"), sub())
	}
	return fmt.Sprintf("(%s %s %s)", sub(), g.pick("+", "-", "*", "&", "|", "^"), sub())
}
