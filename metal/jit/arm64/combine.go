package arm64

import "github.com/mlxlua/mlxlua/metal/jit/code"

// combine replaces an instruction by one that does what it and those that its sources came of do. The sources'
// instructions stay for others that read them; tidy drops those that nobody reads.
func (n *numberer) combine(i *inst) {
	p, q := n.source(i.n), n.source(i.m)
	switch i.op {
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

// source is the instruction that a register came of, if it reads what holds one value wherever it is read.
func (n *numberer) source(r code.R) inst {
	if r == 0 || !r.Virtual() || !n.p.once(r) {
		return inst{}
	}
	at := n.made[n.p.index(r)]
	if at == 0 {
		return inst{}
	}
	i := n.p.insts[at-1]
	if !n.p.once(i.n) || !n.p.once(i.m) || !n.p.once(i.a) {
		return inst{}
	}
	return i
}
