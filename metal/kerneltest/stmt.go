package kerneltest

import "fmt"

// target picks a variable that may be assigned, "" if there is none.
func (g *generator) target() (name, typ string) {
	for range 8 {
		if len(g.scope) == 0 {
			break
		}
		if l := g.scope[g.n(len(g.scope))]; !l.fixed {
			return l.name, l.typ
		}
	}
	return "", ""
}

// stmt writes a statement.
func (g *generator) stmt() {
	if g.depth > 6 {
		g.assign()
		return
	}
	switch k := g.n(100); {
	case g.wild && !g.inFunc && g.chance(10):
		g.stray()
	case g.chance(9):
		g.special()
	case g.chance(10):
		g.odd()
	case k < 30:
		g.assign()
	case k < 42:
		g.declare()
	case k < 58:
		g.ifStmt()
	case k < 72:
		g.loop()
	case k < 76:
		g.escape()
	case k < 80:
		g.switchStmt()
	case k < 84 && len(g.arrays) > 0:
		a := g.arrays[g.n(len(g.arrays))]
		g.line("%s[%s] %s %s;", a.name, g.index(a.len), g.pick("=", "=", "+="), g.expr(a.typ, 2))
	case k < 90 && !g.inFunc && g.reach == Threadgroups:
		g.atomic()
	case k < 95 && !g.inFunc && g.even && len(g.tgs) > 0:
		g.exchange()
	case k < 97:
		if n1, t := g.target(); n1 != "" {
			if _, n := vecOf(t); n == 1 && t != "P" && t != "bool" {
				x := g.fresh("y")
				g.line("%s %s = %s;", t, x, g.expr(t, 1))
				g.line("{ %s t1 = %s, t2 = %s; swapIf(%s, t1, t2); %s = t1; %s = t2; }", t, n1, x,
					g.expr("bool", 1), n1, x)
				g.scope = append(g.scope, local{name: x, typ: t})
			}
		}
	case !g.inFunc:
		g.line("ob[gid * %d + %d] = uchar(%s);", slots, g.n(slots), g.expr("int", 2))
	default:
		g.assign()
	}
}

func (g *generator) assign() {
	name, t := g.target()
	if name == "" {
		return
	}
	e, n := vecOf(t)
	switch {
	case n > 1 && g.chance(40):
		g.line("%s.%s = %s;", name, g.pick("x", "y"), g.expr(e, 2))
	case n > 1 && g.chance(20):
		g.line("%s.%s = %s.%s;", name, g.pick("xy", "yx"), name, g.pick("xx", "yx", "xy"))
	case n > 1 && g.chance(20) && !g.inFunc:
		g.line("%s[%s] = %s;", name, g.index(2), g.expr(e, 1))
	case n == 1 && e != "bool" && g.chance(25):
		g.line("%s %s %s;", name, g.pick("+=", "-=", "*="), g.expr(t, 2))
	case isInt(t) && g.chance(10):
		g.line("%s%s;", name, g.pick("++", "--"))
	default:
		g.line("%s = %s;", name, g.expr(t, 3))
	}
}

// cond is a condition; sometimes one that is the same for all threads.
func (g *generator) cond() (text string, even bool) {
	if g.chance(25) && !g.inFunc {
		return g.pick("ci[3] > 20", "(ci[5] & 1) == 0", "cf[7] < 0.5f", "tgp.x > 0", "tgs.x > 16", "gs3.y > 2"), true
	}
	return g.expr("bool", 2), false
}

// inside writes a block's statements under a control flow that may part threads.
func (g *generator) inside(even bool, n int) {
	was := g.even
	g.even = g.even && even
	g.block(n)
	g.even = was
}

func (g *generator) ifStmt() {
	c, even := g.cond()
	g.open("if (%s)", c)
	g.inside(even, 1+g.n(4))
	if g.chance(45) {
		g.close(" else {")
		g.depth++
		g.inside(even, 1+g.n(3))
	}
	g.close("")
}

// loop writes a loop that ends: counted, or left when a counter or a condition says so.
func (g *generator) loop() {
	i := g.fresh("i")
	most := 1 + g.n(9)
	if g.rounds*most > 300 {
		g.assign()
		return
	}
	even := g.chance(50)
	bound := fmt.Sprint(most)
	switch {
	case !even && !g.inFunc:
		bound = fmt.Sprintf("int((0u + %s) %% %d)", g.pick("lane", "gid", "uint("+g.expr("int", 1)+")"), most+1)
	case !even:
		bound = fmt.Sprintf("int(uint(%s) %% %du)", g.expr("int", 1), most+1)
	case !g.inFunc && g.chance(40):
		bound = fmt.Sprintf("(ci[%d] & 7)", g.n(constants))
		most = 7
	}
	g.rounds *= most
	vars := len(g.scope)
	g.scope = append(g.scope, local{name: i, typ: "int", fixed: true})
	early := ""
	if !even || g.chance(50) {
		early, even = i, false
	}
	if g.even && even {
		early = ""
	}
	g.loops = append(g.loops, early)
	switch g.n(4) {
	case 0:
		g.line("int %s = 0;", i)
		g.open("while (%s < %s)", i, bound)
		g.line("%s++;", i)
		g.inside(even, 1+g.n(4))
		g.close("")
	case 1:
		g.line("int %s = 0;", i)
		g.open("do")
		g.inside(even, 1+g.n(4))
		g.close(" while (++%s < %s);", i, bound)
	default:
		g.open("for (int %s = 0; %s < %s; ++%s)", i, i, bound, i)
		g.inside(even, 1+g.n(4))
		g.close("")
	}
	g.loops = g.loops[:len(g.loops)-1]
	g.scope = g.scope[:vars]
	g.rounds /= most
}

// escape writes a conditional break, continue or return.
func (g *generator) escape() {
	in := len(g.loops) > 0 && g.loops[len(g.loops)-1] != ""
	switch {
	case in && g.chance(80):
		g.line("if (%s) %s;", g.expr("bool", 2), g.pick("break", "continue"))
	case g.inFunc:
		g.line("if (%s) return %s;", g.expr("bool", 2), g.expr(g.result, 1))
	case g.chance(30) && g.depth > 1 && !g.even:
		g.line("if (%s) return;", g.expr("bool", 2))
	case g.chance(15) && g.depth == 1: // others must not wait for what these threads write
		g.line("if (%s) return;", g.pick(fmt.Sprintf("gid %% 5 == %d", g.n(9)), "sg == 1", "sg > 1", "lane > 20", "tid < 3",
			"lane == 0", "tgp.x == 1", "quad & 1", "tid > tgs.x / 2", g.expr("bool", 1)))
	}
}

func (g *generator) switchStmt() {
	g.open("switch (%s & 3)", g.expr("int", 1))
	for c := range 2 + g.n(3) {
		if c == 3 && g.chance(50) {
			g.line("default:")
		} else {
			g.line("case %d:", c)
		}
		g.open("")
		g.inside(false, 1+g.n(2))
		g.close("")
		if g.chance(70) {
			g.line("break;")
		}
	}
	g.close("")
}

// atomic writes an atomic operation whose order nobody sees.
func (g *generator) atomic() {
	switch g.n(5) {
	case 4:
		g.flag()
	case 0:
		op := g.pick("add", "sub") // of one counter only operations that commute with each other
		g.line("atomic_fetch_%s_explicit(&au[%s], uint(%s), memory_order_relaxed);", op, g.index(4), g.expr("int", 1))
	case 1:
		op, at := g.pick("add", "min", "max", "or", "xor", "and"), ""
		at = map[string]string{"add": "0", "min": "1", "max": "2", "or": "3", "xor": "4", "and": "5"}[op]
		if g.chance(50) {
			at = fmt.Sprintf("%s + ((0 + %s) & 1) * 6", at, g.expr("int", 1))
		}
		g.line("atomic_fetch_%s_explicit(&ai[%s], %s, memory_order_relaxed);", op, at, g.expr("int", 1))
	case 2:
		x := g.fresh("o")
		op := g.pick("fetch_add", "fetch_sub", "fetch_max", "fetch_min", "fetch_xor", "fetch_or", "exchange")
		g.line("uint %s = atomic_%s_explicit(&own[gid], uint(%s), memory_order_relaxed);", x, op, g.expr("int", 1))
		g.scope = append(g.scope, local{name: x, typ: "uint"})
	case 3:
		if g.chance(30) && g.rounds == 1 { // a loop that may wait for others, as far as executors know
			n := g.fresh("n")
			g.open("for (uint %s = 0; atomic_load_explicit(&own[gid], memory_order_relaxed) %% 97 != 13 && %s < %d; ++%s)",
				n, n, 1+g.n(600), n)
			g.line("atomic_fetch_add_explicit(&own[gid], 1u, memory_order_relaxed);")
			g.rounds *= 100
			g.loops = append(g.loops, n)
			g.inside(false, 1+g.n(3))
			g.loops = g.loops[:len(g.loops)-1]
			g.rounds /= 100
			g.close("")
			return
		}
		if len(g.tgs) > 0 && g.tgs[0].name == "ta" {
			g.line("atomic_fetch_add_explicit(&ta[%s], %s, memory_order_relaxed);", g.index(4), g.expr("int", 1))
		}
	}
}

// flag writes an operation on an atomic byte: one of a thread's own, or one that all threads set alike.
func (g *generator) flag() {
	if g.chance(40) {
		at, to := g.index(4), "true"
		if g.chance(50) {
			at, to = "4 + ("+g.index(4)+")", "false" // + binds closer than the & of an index
		}
		if g.chance(30) && len(g.tgs) > 0 && g.tgs[0].name == "ta" {
			g.line("atomic_store_explicit(&tl[%s], true, memory_order_relaxed);", at)
			return
		}
		g.line("%s(&fl[%s], %s, memory_order_relaxed);", g.pick("atomic_store_explicit", "atomic_exchange_explicit"), at, to)
		return
	}
	own := fmt.Sprintf("&fl[%d + gid]", counters)
	x := g.fresh("b")
	to := g.expr("int", 1)
	switch g.n(4) {
	case 0:
		g.line("atomic_store_explicit(%s, bool(%s), memory_order_relaxed);", own, to)
		return
	case 1:
		g.line("int %s = atomic_load_explicit(%s, memory_order_relaxed);", x, own)
	case 2:
		g.line("int %s = atomic_exchange_explicit(%s, bool(%s), memory_order_relaxed);", x, own, to)
	case 3:
		e := g.fresh("e")
		g.line("bool %s = bool(%s); int %s = atomic_compare_exchange_weak_explicit(%s, &%s, !%s, memory_order_relaxed, "+
			"memory_order_relaxed) + 2 * %s;", e, to, x, own, e, e, e)
	}
	g.scope = append(g.scope, local{name: x, typ: "int"})
}

// exchange writes to threadgroup memory, waits, reads what other threads wrote, and waits again: in one line, so that
// Reduce does not take its barriers.
func (g *generator) exchange() {
	if g.wild && g.chance(30) {
		g.line("ti[%s ? tid : uint(%s) | 4096] = 1;", g.expr("bool", 1), g.expr("int", 2))
	}
	const barrier = "threadgroup_barrier(mem_flags::mem_threadgroup);"
	t, x := g.tgs[g.n(len(g.tgs))], g.fresh("t")
	if t.name == "ta" {
		g.line("%s int %s = atomic_load_explicit(&ta[%s], memory_order_relaxed); %s", barrier, x, g.index(4), barrier)
		g.scope = append(g.scope, local{name: x, typ: "int"})
		return
	}
	if t.name == "tm" {
		g.matrix(x)
		return
	}
	if t.name == "ts" {
		y := g.fresh("t")
		g.line("%s ts[tid] = P{%s, %s, half(%s), uchar(%s)}; %s float %s = ts[(tid * 5 + 1) %% %d].x; "+
			"int %s = ts[(0u + %s) %% %d].y + int(ts[tid ^ (tid & 1)].w); %s", barrier, g.expr("float", 2), g.expr("int", 2),
			g.expr("float", 1), g.expr("int", 1), barrier, x, t.len, y, g.expr("uint", 1), t.len, barrier)
		g.scope = append(g.scope, local{name: x, typ: "float"}, local{name: y, typ: "int"})
		return
	}
	v := g.expr(t.typ, 2)
	other := g.pick("tid ^ 1", "tid + 1", "tid * 7 + 3", "uint("+g.expr("int", 1)+")", "0", "tgs.x - 1 - tp.x")
	sum := ""
	if g.chance(30) {
		sum = g.pick(fmt.Sprintf(" for (uint j = 0; j < tgs.x; j += 4) %s += %s[j];", x, t.name),
			fmt.Sprintf(" %s += tgSum(%s + (tid & 1) * (tgs.x / 2), tgs.x / 2, 1u + (sg & 3));", x, t.name))
	}
	g.line("%s %s[tid] = %s; %s %s %s = %s[(0u + %s) %% (tgs.x * tgs.y * tgs.z)];%s %s",
		barrier, t.name, v, barrier, t.typ, x, t.name, other, sum, barrier)
	g.scope = append(g.scope, local{name: x, typ: t.typ})
}

// matrix multiplies matrices of 8 x 8 that a SIMD-group holds, and reads what comes out: no NaN, because which of two
// operands' NaNs a sum passes on is not laid down.
func (g *generator) matrix(x string) {
	const barrier = "threadgroup_barrier(mem_flags::mem_threadgroup);"
	g.line("%s float %s = 0; { simdgroup_float8x8 ma, mb, mc; simdgroup_load(ma, gf + (ci[%d] & 31), %d); "+
		"simdgroup_load(mb, gf + %d, 8, ulong2(0, 0), %s); mc = make_filled_simdgroup_matrix<float, 8, 8>(%d.5f); "+
		"simdgroup_multiply_accumulate(mc, ma, mb, mc); if (sg == 0) simdgroup_store(mc, tm, 8); %s "+
		"%s = canon(tm[(lane * %d + 3) & 63]); } %s",
		barrier, x, g.n(64), 8+g.n(16), g.n(64), g.pick("true", "false"), g.n(5), barrier, x, 1+g.n(7), barrier)
	g.scope = append(g.scope, local{name: x, typ: "float"})
}

// stray is an access that may be out of range, or a write that may reach an input.
func (g *generator) stray() {
	i := g.expr("int", 2)
	switch g.n(10) {
	case 0:
		g.line("oi[%s ? gid * %d : uint(%s) | 1 << 20] = 1;", g.expr("bool", 1), slots, i)
	case 1:
		g.line("of[gid * %d] = canon(gf[%s]);", slots, i)
	case 2:
		g.line("oi[gid * %d] ^= *(device const int *)((device const char *)gi + (long(%s) << %d));", slots, i, g.n(45))
	case 3:
		g.line("oi[gid * %d] ^= (gi + 5)[-(%s & 15)];", slots, i)
	case 4:
		g.line("oi[gid * %d] ^= ((device const int4 *)(gi + (%s & 255)))->w;", slots, i)
	case 5:
		if len(g.arrays) > 0 {
			a := g.arrays[g.n(len(g.arrays))]
			g.line("%s[%s] = %s;", a.name, i, g.literal(a.typ))
		}
	case 6:
		g.line("atomic_fetch_add_explicit((device atomic_uint *)((device char *)au + ((0 + %s) & 79)), 1u, "+
			"memory_order_relaxed);", i)
	case 7:
		g.line("*(gi[%s & 255] > 31 ? (device int *)gw + (%s & 255) : oi + gid * %d) = 1;", g.index(256), i, slots)
	case 8:
		g.line("{ device int *w[2] = {oi + gid * %d, (device int *)gs}; *w[gb[%s & 255] & 1] = 3; }", slots, i)
	case 9:
		g.line("atomic_fetch_add_explicit(gi[tid & 255] > 31 ? (device atomic_uint *)gw + 4 : au + 1, 1u, " +
			"memory_order_relaxed);")
	}
}
