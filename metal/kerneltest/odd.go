package kerneltest

import "fmt"

// odd writes what people rarely write and executors must know all the same: loops that count in their own way, memory
// read as another type at any place, pointers that move.
func (g *generator) odd() {
	if g.rounds > 60 {
		g.assign()
		return
	}
	switch k := g.n(12); {
	case k < 4:
		g.oddLoop()
	case k < 7:
		g.pun()
	case k < 9 && !g.inFunc:
		g.unaligned()
	case k < 11:
		g.walk()
	default:
		g.elements()
	}
}

// wish is what a program may ask of the loop after it.
func (g *generator) wish() {
	if g.chance(30) {
		g.b.WriteString(g.pick("#pragma unroll\n", "#pragma clang loop unroll(full)\n", "#pragma nounroll\n"))
	}
}

// oddLoop writes a loop that counts down, by steps, by halves, in a narrow type, to anywhere, or not at all.
func (g *generator) oddLoop() {
	i := g.fresh("i")
	typ, most, end := "int", 8, ""
	first, step := g.n(4), 1+g.n(3)
	switch g.n(8) {
	case 0:
		typ, most = "uint", 6
		g.wish()
		g.open("for (uint %s = %du; %s > 0; %s >>= 1)", i, 1<<first, i, i)
	case 1:
		typ = g.pick("short", "char", "int", "uchar", "long")
		g.wish()
		g.open("for (%s %s = %d; %s != %d; %s--)", typ, i, first+step, i, first, i)
	case 2:
		typ = g.pick("short", "uchar", "uint", "long", "ulong", "int")
		g.wish()
		g.open("for (%s %s = %d; %s < %d; %s += %d)", typ, i, first, i, first+g.n(10), i, step)
	case 3, 4: // from anywhere to anywhere, but not often
		typ, most = g.pick("uint", "uint", "int"), 5
		r, limit, by := g.fresh("r"), g.expr(typ, 1), 1
		if g.chance(50) {
			limit, by = fmt.Sprint(32*g.n(5)), 32
		}
		g.line("uint %s = 0;", r)
		g.open("for (%s %s = %s; %s < %s; %s += %d)", typ, i, g.expr(typ, 1), i, limit, i, by)
		g.line("if (%s++ >= 5u) break;", r)
	case 5:
		most = 1
		g.open("do")
		end, i = " while (false);", "once"
	case 6:
		n := g.fresh("n")
		g.line("int %s = int(0u + (%s & 7)), %s = 0;", n, g.expr("uint", 1), i)
		g.open("while (true)")
		g.line("if (%s >= %s) break;", i, n)
		g.line("++%s;", i)
	default:
		g.wish()
		g.open("for (int %s = %d; %s-- > 0; )", i, 1+g.n(8), i)
	}
	vars := len(g.scope)
	if i != "once" {
		g.scope = append(g.scope, local{name: i, typ: typ, fixed: true})
	}
	g.rounds *= most
	g.loops = append(g.loops, i)
	g.inside(false, 1+g.n(3))
	if g.chance(40) {
		g.line("if (%s) %s;", g.expr("bool", 1), g.pick("break", "continue"))
		g.inside(false, 1)
	}
	g.loops = g.loops[:len(g.loops)-1]
	g.rounds /= most
	g.scope = g.scope[:vars]
	g.close(end)
}

// byteSizes are types that memory is read as, and their sizes.
var byteSizes = []struct {
	typ   string
	bytes int
}{{"char", 1}, {"uchar", 1}, {"bool", 1}, {"short", 2}, {"ushort", 2}, {"half", 2}, {"bfloat", 2},
	{"int", 4}, {"uint", 4}, {"float", 4}, {"long", 8}, {"ulong", 8}, {"double", 8}}

// pun writes a thread's own memory as one type and reads it as another, at any place.
func (g *generator) pun() {
	name := g.fresh("w")
	g.line("uint %s[16] = {%s, 7, 1u << 31, %s};", name, g.expr("uint", 1), g.expr("uint", 1))
	for range 1 + g.n(4) {
		t := byteSizes[g.n(len(byteSizes))]
		at := fmt.Sprintf("((thread uchar *)%s + %d + (%s))", name, g.n(33-t.bytes), g.index(32))
		if g.chance(40) { // constant places
			at = fmt.Sprintf("((thread uchar *)%s + %d)", name, g.n(64/t.bytes)*t.bytes)
		}
		if g.chance(50) {
			g.line("*(thread %s *)%s = canon(%s);", t.typ, at, g.expr(t.typ, 1))
			continue
		}
		x := g.fresh("x")
		g.line("%s %s = *(thread const %s *)%s;", t.typ, x, t.typ, at)
		g.scope = append(g.scope, local{name: x, typ: t.typ})
	}
	g.arrays = append(g.arrays, local{name: name, typ: "uint", len: 16})
}

// unaligned reads device memory as any type at any place, or writes a thread's own part of it so.
func (g *generator) unaligned() {
	t := byteSizes[g.n(len(byteSizes))]
	if g.chance(25) {
		g.line("*(device %s *)((device uchar *)&oi[gid * %d] + %d) = canon(%s);", t.typ, slots, g.n(4*slots+1-t.bytes),
			g.expr(t.typ, 1))
		return
	}
	x, place := g.fresh("x"), ""
	elem := g.pick("1", fmt.Sprint(t.bytes), fmt.Sprint(t.bytes))
	switch g.n(4) {
	case 0:
		place = fmt.Sprintf("((0u + %s) %% 60u + %d) * %s", g.expr("uint", 1), g.n(4), elem)
	case 1:
		place = fmt.Sprintf("((%s) + (gid & 31)) * %s", g.index(32), elem)
	default:
		place = fmt.Sprintf("(%s) * %s", g.index(64), elem)
	}
	from := g.pick("gi", "gf", "gw", "gs")
	g.line("%s %s = *(device const %s *)((device const uchar *)%s + %d + %s);", t.typ, x, t.typ, from, g.n(32), place)
	g.scope = append(g.scope, local{name: x, typ: t.typ})
}

// walk moves a pointer along memory, by as much for all lanes or not.
func (g *generator) walk() {
	p, n, x := g.fresh("p"), g.fresh("n"), g.fresh("x")
	typ, end := "int", "x"
	g.line("int %s = 0;", x)
	move := fmt.Sprintf("%s += %d;", p, g.n(4))
	if len(g.arrays) > 0 && (g.inFunc || g.chance(30)) {
		a := g.arrays[g.n(len(g.arrays))]
		typ = a.typ
		g.line("thread const %s *%s = %s + %d;", typ, p, a.name, g.n((a.len+1)/2))
		move, end = fmt.Sprintf("if (%s + 1 < %s + %d) ++%s;", p, a.name, a.len, p), ""
	} else if g.inFunc {
		g.assign()
		return
	} else {
		g.line("device const int *%s = %s + (%s);", p, g.pick("gi", "(device const int *)gw", "(gi + 3)"), g.index(128))
		switch g.n(4) {
		case 0:
			move = fmt.Sprintf("%s += %s;", p, g.index(8))
		case 1:
			move = fmt.Sprintf("%s = (device const int *)((device const uchar *)%s + %d);", p, p, g.n(9))
		case 2:
			move = fmt.Sprintf("%s = %s ? %s + 2 : %s;", p, g.expr("bool", 1), p, p)
		}
	}
	g.open("for (int %s = 0; %s < 4; ++%s)", n, n, n)
	g.line("%s ^= int(*%s);", x, p)
	if g.chance(50) {
		g.line("if (%s) break;", g.expr("bool", 1))
	}
	vars := len(g.scope)
	g.rounds *= 4
	g.scope = append(g.scope, local{name: n, typ: "int", fixed: true}, local{name: x, typ: "int"})
	g.loops = append(g.loops, n)
	if g.chance(50) {
		g.inside(false, 1+g.n(2))
	}
	g.loops = g.loops[:len(g.loops)-1]
	g.scope = g.scope[:vars]
	g.rounds /= 4
	g.line("%s", move)
	g.close("")
	if end != "" && g.chance(50) {
		g.line("%s += int(%s[%d]);", x, p, g.n(3))
	}
	g.scope = append(g.scope, local{name: x, typ: "int"})
}

// elements fills an array of structures in a loop, changes some, and reads others.
func (g *generator) elements() {
	s, i, x := g.fresh("s"), g.fresh("i"), g.fresh("x")
	n := 2 + g.n(4)
	g.line("P %s[%d];", s, n)
	g.wish()
	g.line("for (int %s = 0; %s < %d; ++%s) { %s[%s].x = float(%s) - 0.5f; %s[%s].y = %s * %s; %s[%s].z = half(%s); "+
		"%s[%s].w = uchar(%s); }", i, i, n, i, s, i, i, s, i, i, g.literal("int"), s, i, i, s, i, i)
	at := func() string { return fmt.Sprintf("%s[(0u + %s) %% %du]", s, g.expr("uint", 1), n) }
	for range 1 + g.n(3) {
		switch g.n(3) {
		case 0:
			g.line("%s.%s += %s;", at(), "y", g.expr("int", 1))
		case 1:
			g.line("%s = %s;", at(), at())
		case 2:
			g.line("%s.add(%s);", at(), at())
		}
	}
	g.line("P %s = %s; float %sf = %s.sum(); int %si = %s.y + int(%s.w);", x, at(), x, x, x, x, x)
	g.scope = append(g.scope, local{name: x + "f", typ: "float"}, local{name: x + "i", typ: "int"})
}
