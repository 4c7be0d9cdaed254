package kerneltest

import "fmt"

// position is a number below 64 that mostly follows the lanes.
func (g *generator) position() string {
	return g.pick("(gp.x & 63)", "lane", "(tid & 63)", "(gp.x & 31)", "(gp.y & 63)", "(gid & 63)", "(tp.x & 15)", "5u",
		"(lane ^ 3)", "((0u + "+g.expr("uint", 0)+") & 63)")
}

// strided writes loads and stores by the words that a launch gives with it.
func (g *generator) strided() {
	from := g.pick("gm", "gw", "gq", "((device const uchar *)gw)", "((device const ulong *)gm)")
	typ := map[string]string{"gm": "float", "gw": "uint", "gq": "half"}[from]
	wide := g.pick("long", "long", "int", "uint", "ulong") // what indices are computed in
	origin := fmt.Sprint(middle)
	if typ == "" {
		if typ = "uint"; from[len(from)-2] == 'm' {
			typ, origin = "ulong", "4096"
		}
	}
	x := g.fresh("m")
	index := func(d int) string { return fmt.Sprintf("%s(%s) * %s(ws[%d])", wide, g.position(), wide, d) }
	signed := func(e string) string { // unsigned sums wrap to what they would be
		switch wide {
		case "uint":
			return "int(" + e + ")"
		case "ulong":
			return "long(" + e + ")"
		}
		return e
	}
	switch k := g.n(8); {
	case k < 3:
		at := index(g.n(4))
		for range g.n(2) {
			at += " + " + index(g.n(4))
		}
		g.line("%s %s = %s(%s[%s + %s]);", typ, x, typ, from, origin, signed("("+at+")"))
	case k == 3 && g.rounds <= 8: // a window
		at := fmt.Sprintf("(%s((%s) + j) * %s(ws[%d]) + %s((%s) + i) * %s(ws[%d]))", wide, g.position(), wide, g.n(4), wide,
			g.position(), wide, g.n(4))
		g.line("%s %s = 0; for (int j = 0; j < 3; ++j) for (int i = 0; i < 3; ++i) %s += %s(%s[%s + %s]);", typ, x, x, typ,
			from, origin, signed(at))
	case k == 4: // one number for all places
		g.line("of[(%s(gid) * %s(ws[%d])) * %d + %d] = canon(%s);", wide, wide, unit, slots, g.n(slots), g.expr("float", 1))
		return
	case k == 5 && g.wild:
		g.line("%s %s = %s(%s[long(gp.x & 3) * ws[%d]]);", typ, x, typ, from, huge)
	default: // from a place in order to the place in memory
		e, d, loc := g.fresh("e"), g.fresh("d"), g.fresh("l")
		g.line("%s %s = 0; {", typ, x)
		g.line("%s %s = %s(%s), %s = 0;", wide, e, wide, g.pick("gp.x", "gid", "gp.x + gp.y * 7", "tid", g.position()), loc)
		g.open("for (int %s = wn - 1; %s >= 0%s; --%s)", d, d, g.pick("", "", " && "+e+" > 0"), d)
		g.line("%s += (%s %% %s(wd[%s])) * %s(ws[%s]); %s /= %s(wd[%s]);", loc, e, wide, d, wide, d, e, wide, d)
		g.close("")
		g.line("%s = %s(%s[%s + %s]); }", x, typ, from, origin, signed(loc))
	}
	g.scope = append(g.scope, local{name: x, typ: typ})
}
