package kerneltest

import "fmt"

// special writes what few random statements come to, and many kernels consist of: loops over rows of memory, packed
// numbers, functions that take pointers, loops of compare-exchange.
func (g *generator) special() {
	if g.inFunc {
		g.pointers()
		return
	}
	switch k := g.n(16); {
	case k >= 12 && k < 15:
		g.strided()
	case k < 3:
		g.rowSum()
	case k < 5:
		g.packed()
	case k < 7:
		g.perThread()
	case k == 7:
		g.runs()
	case k == 8 && g.reach == Threadgroups:
		g.compareExchange()
	case k == 9:
		g.long()
	default:
		g.pointers()
	}
}

// row is the number of a row of the large inputs: the same for a SIMD-group, or not.
func (g *generator) row() string {
	return g.pick("(sg & 63)", "(gp.y & 63)", "((tgp.x * 3 + sg) & 63)", "(gid & 63)", "5", "63", "(gid / 32 & 63)")
}

// rowSum writes a loop in which the lanes of a SIMD-group go through a row together.
func (g *generator) rowSum() {
	if g.rounds > 4 {
		g.assign()
		return
	}
	x, k := g.fresh("m"), g.fresh("k")
	from := g.pick("gm", "gm", "gq", "gw")
	typ := map[string]string{"gm": "float", "gq": "float", "gw": "uint"}[from]
	run := 1 << g.n(4) // neighbouring elements of a lane
	end := g.pick("256", "128", "250", "(64u + (tgp.x & 7))", "min(256u, gs3.x)")
	if g.chance(20) { // the very end of the buffer
		from = fmt.Sprintf("(%s + %d)", from, odd)
	}
	at := fmt.Sprintf("%s[%s * %d + ", from, g.row(), rowWords)
	g.line("%s %s = %s;", typ, x, g.pick("0", "1", typ+"(lane)"))
	if g.chance(30) { // a pointer that moves
		p := g.fresh("p")
		elem := map[byte]string{'m': "float", 'q': "half", 'w': "uint"}[from[len(from)-1]]
		if from[0] == '(' {
			elem = map[byte]string{'m': "float", 'q': "half", 'w': "uint"}[from[2]]
		}
		g.line("device const %s *%s = %s + %s * %d + lane * %d;", elem, p, from, g.row(), rowWords, run)
		g.open("for (uint %s = lane * %d; %s + %d <= %s; %s += %d)", k, run, k, run, end, k, 32*run)
		for j := range min(run, 4) {
			g.line("%s += %s(%s[%d]);", x, typ, p, j)
		}
		g.line("%s += %d;", p, 32*run)
	} else {
		g.open("for (uint %s = lane * %d; %s + %d <= %s; %s += %d)", k, run, k, run, end, k, 32*run)
		switch {
		case run == 4 && from == "gm" && g.chance(60):
			g.line("float4 w = *(device const float4 *)(gm + %s * %d + %s);", g.row(), rowWords, k)
			g.line("%s += w.x * w.y + w.z - w.w;", x)
		case run == 4 && from == "gw" && g.chance(60):
			g.line("uint4 w = *(device const uint4 *)(gw + %s * %d + %s); %s ^= w.x + (w.y >> 3) + w.z * w.w;", g.row(),
				rowWords, k, x)
		case run == 4 && from == "gq" && g.chance(60):
			g.line("half4 w = *(device const half4 *)(gq + %s * %d + %s); %s += float(w.x) + float(w.y * w.z) - float(w.w);",
				g.row(), rowWords, k, x)
		case g.chance(50):
			g.line("for (uint j = 0; j < %d; ++j) %s += %s(%s%s + j]);", run, x, typ, at, k)
		default:
			for j := range run {
				g.line("%s = %s(%s%s + %d]) %s %s;", x, typ, at, k, j, g.pick("+", "-"), x)
			}
		}
	}
	if g.chance(15) {
		g.line("if (%s) break;", g.expr("bool", 1))
	}
	g.close("")
	if g.chance(60) && g.reach > Threads {
		g.line("%s = simd_%s(%s);", x, g.pick("sum", "max", "prefix_exclusive_sum"), x)
	}
	g.scope = append(g.scope, local{name: x, typ: typ})
}

// packed writes a product with numbers of 4, 8 or 2 bits.
func (g *generator) packed() {
	if g.rounds > 2 {
		g.assign()
		return
	}
	x, k := g.fresh("q"), g.fresh("k")
	row, scale := g.row(), g.pick("gm", "float(gq", "1.0f")
	switch scale {
	case "gm":
		scale = fmt.Sprintf("gm[%s * 8 + %s / 8]", row, k)
	case "float(gq":
		scale = fmt.Sprintf("float(gq[%s * 8 + %s / 8])", row, k)
	}
	g.line("float %s = 0;", x)
	switch g.n(5) {
	case 0: // a word, eight values
		g.open("for (uint %s = lane; %s < 256; %s += 32)", k, k, k)
		g.line("uint w = gw[%s * %d + %s]; float dot = 0, sum = 0;", row, rowWords, k)
		g.line("for (uint j = 0; j < 8; ++j) {")
		g.line("float v = gm[8 * %s + j]; dot += v * float((w >> (4 * j)) & 15); sum += v; }", k)
		g.line("%s += %s * dot + sum;", x, scale)
	case 1: // halves of words, digits masked where they are
		g.open("for (uint %s = lane * 4; %s < 128; %s += 128)", k, k, k)
		g.line("device const ushort *w = (device const ushort *)(gw + %s * %d) + %s;", row, rowWords, k)
		g.line("for (uint j = 0; j < 4; ++j) %s += gm[4 * (%s + j)] * float(w[j] & 0x000f) + "+
			"gm[4 * (%s + j) + 1] * float(w[j] & 0x00f0) + gm[4 * (%s + j) + 2] * float(w[j] & 0x0f00) + "+
			"gm[4 * (%s + j) + 3] * float(w[j] & 0xf000);", x, k, k, k, k)
	case 2: // bytes, two values each
		g.open("for (uint %s = %d * lane; %s < 256; %s += %d)", k, 4, k, k, 128)
		g.line("device const uchar *w = (device const uchar *)(gw + %s * %d) + %s;", row, rowWords, k)
		g.line("for (uint j = 0; j < 4; ++j) { uchar b = w[j]; %s += gm[2 * (%s + j)] * (%s * float(b & 15)); "+
			"%s += gm[2 * (%s + j) + 1] * float(b >> 4); }", x, k, scale, x, k)
	case 3: // four words at once
		g.open("for (uint %s = lane; %s < 64; %s += 32)", k, k, k)
		g.line("uint4 w = ((device const uint4 *)(gw + %s * %d))[%s];", row, rowWords, k)
		g.line("for (uint i = 0; i < 4; ++i) { float4 a = ((device const float4 *)gm)[4 * %s + i]; uint p = w[i]; "+
			"%s += a.x * float(p & 255) + a.y * float((p >> 8) & 255) + a.z * float((p >> 16) & 3) + a.w * float(p >> 24); }",
			k, x)
	case 4: // signed digits, one row for each thread
		g.open("for (uint %s = 0; %s < %d; ++%s)", k, k, 1+g.n(20), k)
		g.line("int w = int(gw[(gid & 63) * %d + %s]); %s += float(w << 28 >> 28) * %s + float((w >> 4) & 3);", rowWords, k,
			x, scale)
	}
	g.close("")
	if g.chance(60) && g.reach > Threads {
		g.line("%s = simd_sum(%s);", x, x)
	}
	g.scope = append(g.scope, local{name: x, typ: "float"})
}

// perThread writes loads of neighbouring elements by threads that are a stride apart: of up to 1 KiB, also up to the
// last element.
func (g *generator) perThread() {
	stride := []int{1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 17, 20, 32, 48, 64, 100, 128, 200, 255, 256}[g.n(20)]
	from, typ := "gm", "float"
	switch g.n(4) {
	case 0:
		from, typ = "gw", "uint"
	case 1:
		from = "gq"
	}
	n := min(stride, 1+g.n(18))
	first := g.n(odd)
	if g.chance(40) { // lane 63's last element is the buffer's last
		first = large - 63*stride - n
	}
	x, p := g.fresh("m"), g.fresh("p")
	elem := map[string]string{"gm": "float", "gw": "uint", "gq": "half"}[from]
	g.line("device const %s *%s = %s + %d + %s * %d;", elem, p, from, first, g.pick("(gid & 63)", "lane", "(tid & 63)",
		"(gp.x & 63)"), stride)
	g.line("%s %s = %s;", typ, x, g.pick("0", "2"))
	if g.chance(30) {
		g.open("if (%s)", g.expr("bool", 1))
		defer g.close("")
	}
	switch k := g.fresh("k"); g.n(4) {
	case 0:
		if g.rounds > 8 {
			n = 1
		}
		g.line("for (uint %s = 0; %s < %d; ++%s) %s = %s * %s(0.5f) + %s(%s[%s]);", k, k, n, k, x, x, typ, typ, p, k)
	case 1:
		if n >= 4 && typ == "float" && from == "gm" {
			g.line("float4 %s = *(device const float4 *)(%s + %d); %s += %s.x * %s.y - %s.z + %s.w;", k, p, n-4, x, k, k, k, k)
			break
		}
		fallthrough
	case 2: // in an order of its own
		for range min(n, 6) {
			g.line("%s = %s * %s(3) - %s(%s[%d]);", x, x, typ, typ, p, g.n(n))
		}
	default:
		for j := range n {
			g.line("%s += %s(%s[%d]);", x, typ, p, j)
		}
	}
	defer func() { g.line("oi[gid * %d + %d] ^= as_type<int>(%s);", slots, g.n(slots), canonical(x, typ)) }()
}

func canonical(x, typ string) string {
	if typ == "float" {
		return "canon(" + x + ")"
	}
	return x
}

// runs writes runs of neighbouring elements, one for each thread.
func (g *generator) runs() {
	n, e := 1+g.n(each), func() string { return fmt.Sprintf("canon(%s)", g.expr("float", 1)) }
	base := fmt.Sprintf("om[gid * %d + ", each)
	switch g.n(5) {
	case 0:
		g.line("for (uint k = 0; k < %d; ++k) %sk] = %s;", n, base, e())
	case 1:
		g.line("*(device float4 *)(&%s%d]) = float4(%s, %s, %s, 1);", base, g.n(each-3), e(), e(), e())
	case 2:
		g.line("((device ushort *)&%s0])[%d] = ushort(%s); ((device uchar *)&%s1])[%d] = uchar(%s);", base, g.n(2*each),
			g.expr("int", 1), base, g.n(each), g.expr("int", 1))
	case 3: // read again
		g.line("%s%d] = %s; %s%d] = canon(%s%d] + %s%d]);", base, g.n(each), e(), base, g.n(each), base, g.n(each), base,
			g.n(each))
	default:
		for range n {
			g.line("%s%d] = %s;", base, g.n(each), e())
		}
	}
}

// compareExchange writes a loop that changes a word another thread may change meanwhile, in a way whose order does not
// matter, or a word of its own. How often the loop runs, and for which lanes, depends on the other threads then: what
// it changes the word by is found before, because it may come from functions of the SIMD-group.
func (g *generator) compareExchange() {
	if g.rounds > 8 {
		g.atomic()
		return
	}
	e, at := g.fresh("e"), g.n(4)
	word, next := fmt.Sprintf("au[%d + (lane & 1) * 4]", 8+at), ""
	v := fmt.Sprintf("uint(%s)", g.expr("uint", 1))
	if at != 3 {
		by := g.fresh("b")
		g.line("uint %s = %s;", by, v)
		v = by
	}
	switch at {
	case 0:
		next = fmt.Sprintf("%s + %s", e, v)
	case 1:
		next = fmt.Sprintf("max(%s, %s)", e, v)
	case 2:
		next = fmt.Sprintf("%s ^ %s", e, v)
	case 3:
		word, next = "own[gid]", fmt.Sprintf("%s * 3 + %s", e, v)
	}
	x := g.fresh("o")
	g.line("uint %s = atomic_load_explicit(&%s, memory_order_relaxed), %s = 0;", e, word, x)
	switch g.n(3) {
	case 0:
		g.line("while (true) { %s = %s; if (atomic_compare_exchange_weak_explicit(&%s, &%s, %s, memory_order_relaxed, "+
			"memory_order_relaxed)) break; }", x, next, word, e, x)
	case 1:
		g.line("do { %s = %s; } while (!atomic_compare_exchange_weak_explicit(&%s, &%s, %s, memory_order_relaxed, "+
			"memory_order_relaxed));", x, next, word, e, x)
	default: // whole numbers: their sum is exact, in any order
		g.line("atomic_fetch_add_explicit(&fa[%d + (lane & 3)], float((0 + %s) & 3), memory_order_relaxed);", 4*g.n(4),
			g.expr("int", 1))
	}
	if at == 3 {
		g.scope = append(g.scope, local{name: x, typ: "uint"})
	}
}

// long writes a loop that few threads go through often.
func (g *generator) long() {
	if g.rounds > 1 {
		g.assign()
		return
	}
	x, i, rounds := g.fresh("w"), g.fresh("i"), 100+g.n(100)
	if g.reach == Threadgroups { // longer than an executor works without a pause
		rounds += g.n(5000)
	}
	g.line("uint %s = uint(%s);", x, g.expr("uint", 1))
	g.open("for (int %s = 0; %s < (%s ? %d : 3); ++%s)", i, i, g.pick("gid < 33", "gid == 7", "tgp.x == 0 && sg == 0",
		"lane == 5"), rounds, i)
	g.line("%s = %s * 1664525u + gw[%s & %d] + uint(%s);", x, x, x, rows*rowWords-1, i)
	if g.chance(40) {
		g.line("if (%s > 0xfff00000u) %s;", x, g.pick("break", "continue"))
	}
	if g.chance(30) && g.reach > Threads {
		g.line("%s ^= simd_%s(%s);", x, g.pick("sum", "min", "max"), x)
	}
	g.close("")
	g.scope = append(g.scope, local{name: x, typ: "uint"})
}

// pointers writes calls of functions that take pointers and references.
func (g *generator) pointers() {
	x := g.fresh("d")
	k := g.n(4)
	if g.inFunc || g.rounds > 8 {
		k = g.n(3)
	}
	switch {
	case k < 2 && len(g.arrays) > 0:
		a := g.arrays[g.n(len(g.arrays))]
		n := 1 + g.n(a.len)
		if k == 0 {
			g.line("addTo(%s + %d, %s, %d);", a.name, a.len-n, g.expr(a.typ, 1), n)
			return
		}
		g.line("%s %s = sumOf((thread const %s *)&%s[%d], %d);", a.typ, x, a.typ, a.name, a.len-n, n)
		g.scope = append(g.scope, local{name: x, typ: a.typ})
	case k < 3:
		n := g.fresh("n")
		g.line("float %s = %s; int %s = %s; outer(%s, %s, %s);", x, g.expr("float", 1), n, g.expr("int", 1), x, n,
			g.expr("float", 1))
		g.scope = append(g.scope, local{name: x, typ: "float"}, local{name: n, typ: "int"})
	default:
		g.line("float %s = dotOf(gm + %s * %d, gm + (lane & %d), int(0u + (%s & %d)), %d);", x, g.row(), rowWords, 31,
			g.expr("uint", 1), 15, 1+g.n(16))
		g.scope = append(g.scope, local{name: x, typ: "float"})
	}
}
