package kerneltest

import (
	"fmt"
	"slices"
	"strings"
)

// index is an expression from 0 to n-1; n is a power of two.
func (g *generator) index(n int) string {
	if g.nest >= 2 || g.chance(30) {
		return fmt.Sprint(g.n(n))
	}
	g.nest++
	defer func() { g.nest-- }()
	return fmt.Sprintf("(0 + %s) & %d", g.expr("int", 1), n-1)
}

// variable returns a variable of the type, "" if there is none.
func (g *generator) variable(t string) string {
	var have []string
	for _, l := range g.scope {
		if l.typ == t {
			have = append(have, l.name)
		}
		if e, n := vecOf(l.typ); n > 1 && e == t {
			have = append(have, l.name+"."+g.pick("x", "y"))
		}
	}
	if len(have) == 0 {
		return ""
	}
	return g.pick(have...)
}

func (g *generator) literal(t string) string {
	switch {
	case t == "bool":
		return g.pick("true", "false")
	case t == "P":
		return "P{1, 2, 3, 4}"
	case isInt(t) && g.chance(30):
		return fmt.Sprintf("%s(%s)", t, g.pick("0x7fffffff", "-1", "255", "128", "65535", "-32768",
			"0x80000000u", "1l << 40"))
	case isInt(t):
		return fmt.Sprintf("%s(%d)", t, g.n(40)-8)
	case g.chance(20):
		return fmt.Sprintf("%s(%s)", t, g.pick("INFINITY", "-INFINITY", "0.0f", "-0.0f", "1e-40f", "65519.0f",
			"3e38f", "NAN"))
	}
	return fmt.Sprintf("%s(%.3ef)", t, g.r.NormFloat64()*4+0.001)
}

// load reads an input.
func (g *generator) load(t string) string {
	if g.chance(g.tables()) {
		return g.table(t)
	}
	if g.inFunc {
		return g.literal(t)
	}
	i := g.index(inputs)
	switch g.n(5) {
	case 0, 1: // next to each other
		i = fmt.Sprintf("(gid %s) & %d", g.pick("", "* 2", "* 4 + 1", "+ 17", "* 3", "/ 2", "^ 1", "/ 8",
			"+ 255"), inputs-1)
	case 2:
		i = fmt.Sprint(g.n(inputs))
	}
	switch g.n(15) {
	case 13:
		return fmt.Sprintf("%s(gz[%s])", t, i)
	case 0, 1, 2:
		return fmt.Sprintf("%s(gi[%s])", t, i)
	case 3, 4, 5:
		return fmt.Sprintf("%s(gf[%s])", t, i)
	case 6:
		return fmt.Sprintf("%s(ci[%s])", t, g.index(constants))
	case 7:
		return fmt.Sprintf("%s(cf[%s])", t, g.index(constants))
	case 8:
		return fmt.Sprintf("%s(gs[%s].%s)", t, g.index(structs), g.pick("a", "b", "c", "d", "e", "g[1]",
			"g[gid & 3]"))
	case 9:
		return fmt.Sprintf("%s(gh[%s])", t, i)
	case 10:
		return fmt.Sprintf("%s(gb[%s])", t, i)
	case 11:
		return fmt.Sprintf("%s(((device const %s *)gb)[%s])", t, g.pick("ushort", "char", "short", "uint",
			"ulong"), g.index(32))
	case 12:
		c := g.expr("bool", 0)
		return fmt.Sprintf("%s((%s ? gi + 5 : gi + (gid & 31))[%s])", t, c, g.index(128))
	}
	return fmt.Sprintf("%s((gf + (%s))[%s])", t, g.index(64), g.index(128))
}

// tables is how often, of 100 loads, one is from a table of the program.
func (g *generator) tables() int {
	if g.inFunc {
		return 40
	}
	return 7
}

// table reads a table of the program.
func (g *generator) table(t string) string {
	switch g.n(5) {
	case 0:
		return fmt.Sprintf("%s(tableFloats[%s])", t, g.index(8))
	case 1:
		return fmt.Sprintf("%s(tableHalves[%s])", t, g.index(4))
	case 2:
		return fmt.Sprintf("%s(tableRows[%s].%s)", t, g.index(4), g.pick("at", "by[1]", "scale", "by[2]"))
	}
	return fmt.Sprintf("%s(tableInts[%s])", t, g.index(16))
}

// expr is an expression of the type.
func (g *generator) expr(t string, depth int) string {
	if e, n := vecOf(t); n > 1 {
		return g.vector(t, e, n, depth)
	}
	if t == "P" {
		return g.literal(t)
	}
	if depth <= 0 || g.nest >= 2 || g.chance(15) {
		if v := g.variable(t); v != "" && g.chance(75) {
			return v
		}
		if g.chance(50) {
			return g.load(t)
		}
		return g.literal(t)
	}
	switch k := g.n(100); {
	case k < 8:
		return g.load(t)
	case k < 14:
		return fmt.Sprintf("(%s ? %s : %s)", g.expr("bool", depth-1), g.expr(t, depth-1), g.expr(t, depth-1))
	case k < 18 && len(g.arrays) > 0:
		a := g.arrays[g.n(len(g.arrays))]
		return fmt.Sprintf("%s(%s[%s])", t, a.name, g.index(a.len))
	case k < 22 && len(g.funcs) > 0:
		if c := g.call(depth); c != "" {
			return fmt.Sprintf("%s(%s)", t, c)
		}
	case k < 26 && g.reach > Threads:
		return g.collective(t, depth)
	case k < 36 && t != "bool":
		from := g.scalarType()
		if g.chance(30) {
			from = g.pick(append(floatTypes, intTypes...)...)
		}
		return fmt.Sprintf("%s(%s)", t, g.expr(from, depth-1))
	}
	switch {
	case t == "bool":
		return g.boolean(depth)
	case isInt(t):
		return g.integer(t, depth)
	}
	return g.float(t, depth)
}

func (g *generator) call(depth int) string {
	f := g.funcs[g.n(len(g.funcs))]
	if _, n := vecOf(f.result); n > 1 {
		return ""
	}
	var args []string
	for _, p := range f.params {
		t, ref := strings.CutPrefix(p, "&")
		if !ref {
			args = append(args, g.expr(t, depth-1))
			continue
		}
		v := ""
		for _, l := range g.scope {
			if l.typ == t && !l.fixed && !strings.Contains(l.name, ".") {
				v = l.name
			}
		}
		if v == "" {
			return ""
		}
		for _, a := range args {
			if strings.Contains(a, v) { // the order of arguments would matter
				return ""
			}
		}
		args = append(args, v)
	}
	return f.name + "(" + strings.Join(args, ", ") + ")"
}

func (g *generator) boolean(depth int) string {
	t := g.scalarType()
	a, b := g.expr(t, depth-1), g.expr(t, depth-1)
	switch g.n(10) {
	case 0, 3:
		return fmt.Sprintf("(%s %s %s)", g.expr("bool", depth-1), g.pick("&&", "||", "!=", "==", "^", "&", "|"),
			g.expr("bool", depth-1))
	case 4:
		return fmt.Sprintf("(%s ? %s : %s)", g.expr("bool", depth-1), g.expr("bool", depth-1), g.expr("bool", 0))
	case 1:
		return fmt.Sprintf("!(%s)", g.expr("bool", depth-1))
	case 2:
		return fmt.Sprintf("%s(%s)", g.pick("isnan", "isinf", "isfinite"), g.expr("float", depth-1))
	}
	return fmt.Sprintf("(%s %s %s)", a, g.pick("<", "<=", ">", ">=", "==", "!="), b)
}

// divisors are numbers that divisions by are done in ways of their own.
var divisors = []string{"2", "8", "10", "7", "3", "-3", "100", "1", "16", "64", "641", "32767", "65535", "-1",
	"1000000007", "0x7fffffff", "0x80000001u"}

func (g *generator) integer(t string, depth int) string {
	a, b := g.expr(t, depth-1), g.expr(t, depth-1)
	switch g.n(28) {
	case 0, 1, 2:
		return fmt.Sprintf("%s(%s + %s)", t, a, b)
	case 3, 4:
		return fmt.Sprintf("%s(%s - %s)", t, a, b)
	case 5, 6:
		return fmt.Sprintf("%s(%s * %s)", t, a, b)
	case 7:
		return fmt.Sprintf("%s(%s %s %s)", t, a, g.pick("/", "%"), b)
	case 8:
		return fmt.Sprintf("%s(%s %s (%s | %s(1)))", t, a, g.pick("/", "%"), b, t)
	case 9, 10:
		return fmt.Sprintf("%s(%s %s %s(%s))", t, a, g.pick("/", "%"), g.pick(t, t, "int", "uint"), g.pick(divisors...))
	case 11, 12:
		return fmt.Sprintf("%s(%s %s %s)", t, a, g.pick("&", "|", "^"), b)
	case 13:
		return fmt.Sprintf("%s(%s %s %d)", t, a, g.pick("<<", ">>"), g.n(8))
	case 14:
		return fmt.Sprintf("%s(%s %s (%s & %s(7)))", t, a, g.pick("<<", ">>"), b, t)
	case 15:
		return fmt.Sprintf("%s(%s %s %s)", t, a, g.pick("<<", ">>"), b)
	case 16:
		return fmt.Sprintf("%s(%s(%s, %s))", t, g.pick("min", "max", "absdiff", "addsat", "subsat", "rotate",
			"mulhi", "hadd", "rhadd"), a, b)
	case 17:
		return fmt.Sprintf("%s(%s(%s))", t, g.pick("popcount", "clz", "ctz", "reverse_bits", "abs"), a)
	case 18:
		return fmt.Sprintf("%s(%s%s)", t, g.pick("~", "-", "- -", "~~", "-~"), a)
	case 19:
		return fmt.Sprintf("clamp(%s, %s(-3), %s(100))", a, t, t)
	case 20, 21:
		return g.bits(t, depth)
	case 22:
		return fmt.Sprintf("poly<%s, %d>(%s, %s)", t, 1+g.n(4), a, b)
	case 23, 24: // constants, one after the other
		op, x := g.pick("+", "-", "*", "&", "|", "^", "<<", ">>"), fmt.Sprintf("%s(%s)", t, g.constant())
		if g.chance(50) {
			a = fmt.Sprintf("%s(%s %s %s(%s))", t, a, g.pick(op, "+", "*"), t, g.constant())
		}
		return fmt.Sprintf("%s(%s %s %s)", t, a, op, x)
	case 25: // one value twice
		if v := g.variable(t); v != "" {
			return fmt.Sprintf("%s(%s %s %s)", t, v, g.pick("-", "^", "&", "|", "+", "<", "==", "/", "%"), v)
		}
	case 26: // cut and made longer again
		via := g.pick(intTypes...)
		return fmt.Sprintf("%s(%s(%s(%s)))", t, g.pick(intTypes...), via, a)
	}
	return fmt.Sprintf("select(%s, %s, %s)", a, b, g.expr("bool", depth-1))
}

// constant is a number that operations may be simpler with.
func (g *generator) constant() string {
	switch g.n(4) {
	case 0:
		return fmt.Sprint(1 << g.n(7))
	case 1: // SIMD-groups
		return fmt.Sprint(32 * (g.n(9) - 2))
	case 2:
		return g.pick("0", "1", "-1", "2", "255", "65535", "-2", "0x7fffffff")
	}
	return fmt.Sprint(g.n(70) - 6)
}

// sameBits are the types of each size.
var sameBits = [][]string{{"char", "uchar"}, {"short", "ushort", "half", "bfloat"},
	{"int", "uint", "float", "int", "uint"}, {"long", "ulong", "double"}}

// bits is the bits of a value of another type, all NaNs alike.
func (g *generator) bits(t string, depth int) string {
	for _, list := range sameBits {
		if !slices.Contains(list, t) {
			continue
		}
		from := g.pick(list...)
		if from == t {
			from = list[0]
		}
		if t == "uint" && g.chance(30) {
			return fmt.Sprintf("as_type<uint>(%s)", g.expr(g.pick("uchar4", "char4", "ushort2", "short2"), depth-1))
		}
		return fmt.Sprintf("as_type<%s>(canon(%s))", t, g.expr(from, depth-1))
	}
	return g.literal(t)
}

func (g *generator) float(t string, depth int) string {
	a, b, w := g.expr(t, depth-1), g.expr(t, depth-1), "float"
	if t == "double" {
		w = t
	}
	switch g.n(22) {
	case 20: // by constants that make it simpler
		return fmt.Sprintf("%s(%s %s %s(%s))", t, a, g.pick("/", "/", "*", "+", "-"), t, g.pick("2.0f", "0.5f",
			"3.0f", "-4.0f", "1.0f", "-1.0f", "0.0f", "-0.0f"))
	case 21:
		return fmt.Sprintf("%s(%s %s -(%s))", t, a, g.pick("+", "-"), b)
	case 0, 1, 2, 3:
		return fmt.Sprintf("%s(%s + %s)", t, a, b)
	case 4, 5:
		return fmt.Sprintf("%s(%s - %s)", t, a, b)
	case 6, 7, 8:
		return fmt.Sprintf("%s(%s * %s)", t, a, b)
	case 9:
		return fmt.Sprintf("%s(%s / %s)", t, a, b)
	case 10:
		return fmt.Sprintf("%s(fma(%s(%s), %s(%s), %s(%s)))", t, w, a, w, b, w, g.expr(t, depth-1))
	case 11:
		return fmt.Sprintf("%s(%s(%s(%s), %s(%s)))", t, g.pick("min", "max", "fmin", "fmax", "__metal_scale"),
			w, a, w, b)
	case 12, 13:
		return fmt.Sprintf("%s(%s(%s(%s)))", t, g.pick("floor", "ceil", "trunc", "rint", "fabs", "sqrt", "abs"), w, a)
	case 14:
		return fmt.Sprintf("%s(-%s)", t, a)
	case 15:
		if g.calls++; g.calls <= 3 {
			return fmt.Sprintf("%s(%s(%s(%s)))", t, g.pick("exp", "log", "sin", "tanh", "exp2", "rsqrt",
				"round"), w, a)
		}
	case 16:
		if g.calls++; g.calls <= 3 && g.chance(40) {
			return fmt.Sprintf("%s(%s(%s(%s), %s(%s)))", t, g.pick("fmod", "pow"), w, a, w, b)
		}
	case 17:
		return g.bits(t, depth)
	case 18:
		return fmt.Sprintf("%s(poly<float, %d>(%s, %s))", t, 1+g.n(4), a, b)
	}
	return fmt.Sprintf("select(%s, %s, %s)", a, b, g.expr("bool", depth-1))
}

// collective is an expression over the lanes that are active.
func (g *generator) collective(t string, depth int) string {
	if g.chance(15) {
		c := g.expr("bool", depth-1)
		switch g.n(4) {
		case 0:
			return fmt.Sprintf("%s(simd_any(%s))", t, c)
		case 1:
			return fmt.Sprintf("%s(simd_all(%s))", t, c)
		case 2:
			return fmt.Sprintf("%s(simd_is_first())", t)
		}
		return fmt.Sprintf("%s(popcount(uint(ulong(simd_ballot(%s)))))", t, c)
	}
	u := g.pick("int", "uint", "float", "half", "short", "uchar", "ushort", "char")
	if g.chance(8) { // values of other sizes can be exchanged
		u = g.pick("long", "ulong", "int2", "float4", "half4", "uchar4")
		_, n := vecOf(u)
		v := g.pick("simd_shuffle(%s, ushort((0 + LANE) & 31))", "simd_shuffle_xor(%s, 5)", "simd_shuffle_down(%s, 1)",
			"simd_broadcast(%s, 2)", "simd_broadcast_first(%s)", "quad_shuffle_xor(%s, 1)")
		v = strings.ReplaceAll(fmt.Sprintf(v, g.expr(u, depth-1)), "LANE", g.expr("int", 0))
		if n > 1 {
			v = "(" + v + ")." + g.pick("x", "y")
		}
		return fmt.Sprintf("%s(%s)", t, v)
	}
	v := g.expr(u, depth-1)
	where := "simd"
	if g.chance(25) {
		where = "quad"
	}
	switch g.n(8) {
	case 0, 1, 2:
		ops := []string{"sum", "product", "min", "max", "prefix_inclusive_sum", "prefix_exclusive_sum",
			"prefix_inclusive_product"}
		if isInt(u) {
			ops = append(ops, "and", "or", "xor")
		}
		return fmt.Sprintf("%s(%s_%s(%s))", t, where, g.pick(ops...), v)
	case 3:
		return fmt.Sprintf("%s(%s_shuffle(%s, ushort((0 + %s) & 31)))", t, where, v, g.expr("int", depth-1))
	case 4:
		return fmt.Sprintf("%s(%s_shuffle_xor(%s, %d))", t, where, v, 1<<g.n(5))
	case 5:
		return fmt.Sprintf("%s(%s_%s(%s, %d))", t, where, g.pick("shuffle_up", "shuffle_down"), v, 1+g.n(3))
	case 6:
		return fmt.Sprintf("%s(%s_broadcast(%s, %d))", t, where, v, g.n(4))
	}
	return fmt.Sprintf("%s(%s_broadcast_first(%s))", t, where, v)
}
