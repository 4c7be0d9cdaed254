package ptx

import "github.com/mlxlua/mlxlua/metal/kir"

// Control flow, and which lanes are active.
//
// A kernel whose operations depend on that keeps the mask of active lanes in a register, made from its structure:
// a card does not promise that lanes meet again where branches end. A construct is *tracked* if it holds such an
// operation, or if lanes leave it to somewhere where the mask matters. Lanes leave a tracked construct only by its end:
// they say in a register where they are going, and jump to the end of the innermost construct around them. There all
// lanes that entered meet; a ballot tells those that stay who they are, and the others go on to the next end outwards.
// Lanes that have ended drop out of ballots by themselves.

// construct is an If, Block or Loop that is being printed.
type construct struct {
	in      *kir.Instr
	tracked bool
	end     string // where lanes go that leave it
	again   string // where lanes of a Loop go that begin the next round
	number  int    // what lanes that leave it by Break hold in the leave register; one more: by Continue
}

// shape is what a tracked construct holds.
type shape struct {
	masks   bool // operations that need the mask, or constructs at whose end lanes may have to meet
	outward bool // jumps that leave it, to a tracked construct
	returns bool
}

// shapeOf looks into a construct, given those around it.
func (p *printer) shapeOf(in *kir.Instr) (s shape) {
	outer := map[*kir.Instr]bool{}
	for _, c := range p.constructs {
		if c.tracked {
			outer[c.in] = true
		}
	}
	nested := false
	for i := p.flow.first[in.ID] + 1; i <= p.flow.last[in.ID]; i++ {
		x := p.flow.order[i]
		switch {
		case needsMask(x.Op):
			s.masks = true
		case x.Op.HasBody():
			nested = true
		case x.Op == kir.Return:
			s.returns = true
		case (x.Op == kir.Break || x.Op == kir.Continue) && outer[x.Target]:
			s.outward = true
		}
	}
	s.masks = s.masks || nested && (s.outward || s.returns)
	return s
}

// open begins a construct.
func (p *printer) open(in *kir.Instr) (c construct, s shape) {
	c = construct{in: in, end: p.label(), number: 2*len(p.constructs) + 2}
	if p.masks {
		s = p.shapeOf(in)
		c.tracked = s.masks || s.outward || s.returns
	}
	if in.Op == kir.Loop {
		c.again = p.label()
	}
	p.constructs = append(p.constructs, c)
	return c, s
}

func (p *printer) close() { p.constructs = p.constructs[:len(p.constructs)-1] }

// outwards is where lanes go that leave the construct around the one that was closed.
func (p *printer) outwards() string {
	for i := len(p.constructs) - 1; i >= 0; i-- {
		if c := p.constructs[i]; c.tracked {
			if c.again != "" {
				return c.again
			}
			return c.end
		}
	}
	return ""
}

// meet prints what happens where all lanes of mask meet at the end of a tracked construct: those that leave go on
// outwards.
func (p *printer) meet(mask string, s shape) {
	p.mask = mask
	if !s.outward && !s.returns {
		return
	}
	stays := p.truth
	if s.outward {
		stays = p.staying()
	}
	p.mask = p.new(b32)
	p.emit("vote.sync.ballot.b32 %s, %s, %s;", p.mask, stays, mask)
	if to := p.outwards(); s.outward && to != "" {
		p.emit("@!%s bra %s;", stays, to)
	}
}

// staying is a predicate of lanes that leave nothing.
func (p *printer) staying() string {
	q := p.new(pred)
	p.emit("setp.eq.u32 %s, %s, 0;", q, p.leave)
	return q
}

// arrived ends the leaving of lanes that have come where they were going.
func (p *printer) arrived(number int) {
	q := p.new(pred)
	p.emit("setp.eq.u32 %s, %s, %d;", q, p.leave, number)
	p.emit("@%s mov.b32 %s, 0;", q, p.leave)
}

func (p *printer) conditional(in *kir.Instr) {
	cond := p.arg(in.Args[0])
	c, s := p.open(in)
	mask := p.mask
	var yes, no string
	if s.masks {
		yes, no = p.new(b32), p.new(b32)
		p.emit("vote.sync.ballot.b32 %s, %s, %s;", yes, cond, mask)
		p.emit("not.b32 %s, %s;", no, yes)
		p.emit("and.b32 %s, %s, %s;", no, no, mask)
		p.mask = yes
	}
	if in.Else == nil {
		p.emit("@!%s bra %s;", cond, c.end)
		p.block(in.Body)
	} else {
		other := p.label()
		p.emit("@!%s bra %s;", cond, other)
		p.block(in.Body)
		p.emit("bra %s;", c.end)
		p.emit("%s:", other)
		if s.masks {
			p.mask = no
		}
		p.block(in.Else)
	}
	p.pos = in.Pos
	p.emit("%s:", c.end)
	p.close()
	p.mask = mask
	if c.tracked {
		p.meet(mask, s)
	}
}

func (p *printer) blockOp(in *kir.Instr) {
	c, s := p.open(in)
	mask := p.mask
	p.block(in.Body)
	p.pos = in.Pos
	p.emit("%s:", c.end)
	p.close()
	p.mask = mask
	if c.tracked {
		p.arrived(c.number)
		p.meet(mask, s)
	}
}

func (p *printer) loop(in *kir.Instr) {
	c, s := p.open(in)
	mask, top := p.mask, p.label()
	if c.tracked {
		p.mask = p.new(b32)
		p.emit("mov.b32 %s, %s;", p.mask, mask)
	}
	round := p.mask
	p.emit("%s:", top)
	p.block(in.Body)
	p.pos = in.Pos
	p.emit("%s:", c.again)
	if c.tracked {
		p.arrived(c.number + 1)
		stays := p.staying()
		p.emit("vote.sync.ballot.b32 %s, %s, %s;", round, stays, round)
		p.emit("@!%s bra %s;", stays, c.end)
	}
	p.mask = round
	p.poll(in, top)
	p.emit("bra %s;", top)
	p.emit("%s:", c.end)
	p.close()
	p.mask = mask
	if c.tracked {
		p.arrived(c.number)
		p.meet(mask, s)
	}
}

// pollEvery is how many rounds of loops a thread does between two questions whether to stop; a power of two.
const pollEvery = 256

// poll lets a thread end at the end of a round if it was asked to, unless the loop is known to be short.
func (p *printer) poll(in *kir.Instr, top string) {
	if p.opt.Ends || p.flow.rounds(in) > 0 {
		return
	}
	p.polls = true
	n, more := p.new(b32), p.new(pred)
	p.emit("add.u32 %s, %s, 1;", roundsReg, roundsReg)
	p.emit("and.b32 %s, %s, %d;", n, roundsReg, pollEvery-1)
	p.emit("setp.ne.u32 %s, %s, 0;", more, n)
	p.emit("@%s bra %s;", more, top)
	p.stopIfAsked(top)
}

// jump prints Break, Continue and Return.
func (p *printer) jump(in *kir.Instr) {
	if in.Op == kir.Return {
		p.emit("exit;")
		return
	}
	for _, c := range p.constructs {
		if c.in != in.Target {
			continue
		}
		switch {
		case !c.tracked && in.Op == kir.Continue:
			p.emit("bra %s;", c.again)
		case !c.tracked:
			p.emit("bra %s;", c.end)
		default:
			number := c.number
			if in.Op == kir.Continue {
				number++
			}
			p.emit("mov.b32 %s, %d;", p.leave, number)
			p.emit("bra %s;", p.outwards())
		}
	}
}

// barrier waits for all threads of the threadgroup that have not ended. It needs no convergence.
func (p *printer) barrier(*kir.Instr) { p.emit("barrier.sync 0;") }

// simdBarrier orders memory among the active lanes. The ballot before it leaves out lanes that have ended, for which
// bar.warp.sync might wait.
func (p *printer) simdBarrier(*kir.Instr) {
	m := p.new(b32)
	p.emit("vote.sync.ballot.b32 %s, %s, %s;", m, p.truth, p.mask)
	p.emit("bar.warp.sync %s;", m)
}
