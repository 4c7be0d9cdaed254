package arm64

import "github.com/mlxlua/mlxlua/metal/jit/code"

// combine replaces an instruction by one that does what it and those that its sources came of do. The sources'
// instructions stay for others that read them; tidy drops those that nobody reads.
func (n *numberer) combine(i *inst) {
	p, q := n.source(i.n), n.source(i.m)
	switch i.op {
	case movW: // what has no upper half
		if i.m.Virtual() && n.low[n.p.index(i.m)] {
			*i = inst{op: movG, d: i.d, n: i.m}
		}
	case addG: // a number of 32 bits is extended
		if q.op == sBfm && q.imm == sf|1<<22|31<<10 && i.imm&^(3<<10) == sf && i.n != zero && specs[addG].flags == 0 {
			*i = inst{op: addSX, d: i.d, n: i.n, m: q.n, imm: i.imm &^ sf}
		}
	case shlS: // a bfloat becomes a float
		switch {
		case i.imm != (32+16)<<16:
		case p.op == uXtlH:
			*i = inst{op: shllH, d: i.d, n: p.n}
		case p.op == uXtl2H:
			*i = inst{op: shll2H, d: i.d, n: p.n}
		}
	case uzp1H: // the upper halves of words
		const upper = (2*32 - 16) << 16
		if p.op == uShrS && q.op == uShrS && p.imm == upper && q.imm == upper {
			*i = inst{op: uzp2H, d: i.d, n: p.n, m: q.n}
			n.combine(i)
		}
	case uzp2H: // of floats that were bfloats
		if p.op == shllH && q.op == shll2H && p.n == q.n {
			*i = inst{op: movV, d: i.d, n: p.n}
		}
	}
}

// source is the instruction that a register came of, if its own sources still are what it read. A register that one
// instruction writes is read only where that has run. So what is written in between stands in between, or else in a
// loop that began in between.
func (n *numberer) source(r code.R) inst {
	if r == 0 || !r.Virtual() || !n.p.once(r) {
		return inst{}
	}
	o := n.made[n.p.index(r)]
	if o.at == 0 {
		return inst{}
	}
	i := n.p.insts[o.at-1]
	switch {
	case n.p.once(i.n) && n.p.once(i.m) && n.p.once(i.a):
	case !steady(i.n) || !steady(i.m) || i.a != 0 || n.loops != o.loops || n.version(i.n) != o.n || n.version(i.m) != o.m:
		return inst{}
	}
	return i
}
