package interp

import (
	"fmt"
	"math"

	"github.com/mlxlua/mlxlua/metal/kir"
)

// reg returns the register of a value.
func (p *preparer) reg(v *kir.Instr) uint32 {
	if r := p.root[v.ID]; r != nil {
		v = r
	}
	return p.slot[v.ID]
}

// expired frees the registers of values that are dead after this position, but for keep, which is defined here.
func (p *preparer) expired(keep *kir.Instr) {
	for _, v := range p.expire[p.pos] {
		if v != keep {
			p.release(v.Type, p.slot[v.ID])
		}
	}
	p.expire[p.pos] = nil
}

// dest gives the value a register. With shared, the registers of operands that die here are free for it.
func (p *preparer) dest(in *kir.Instr, shared bool) uint32 {
	if shared {
		p.expired(in)
	}
	p.slot[in.ID] = p.alloc(in.Type)
	return p.slot[in.ID]
}

func (p *preparer) emit(in inst) int32 {
	p.exe.code = append(p.exe.code, in)
	n := int32(len(p.exe.code) - 1)
	switch in.kind {
	case kindEnd, kindLoopBack, kindBreak, kindBreakIf, kindReturn, kindReturnIf:
		top := len(p.pending) - 1
		p.pending[top] = append(p.pending[top], n)
	}
	return n
}

func (p *preparer) open() { p.pending = append(p.pending, nil) }

// endConstruct emits the instruction that ends the innermost construct (the end of a branch that has an else, too).
func (p *preparer) endConstruct(in inst) int32 {
	top := len(p.pending) - 1
	waiting := p.pending[top]
	p.pending = p.pending[:top]
	var n int32
	if in.kind == kindElse || in.kind == kindHalt { // no way on from it with no lane
		p.exe.code = append(p.exe.code, in)
		n = int32(len(p.exe.code) - 1)
	} else {
		n = p.emit(in)
	}
	for _, i := range waiting {
		p.exe.code[i].end = n
	}
	return n
}

// block is the second walk.
func (p *preparer) block(b *kir.Block, depth int) {
	p.maxDepth = max(p.maxDepth, depth)
	for _, in := range b.Instrs {
		p.pos++
		dies := p.last[in.ID] == p.pos && in.Type != kir.Void && p.root[in.ID] == nil
		switch {
		case p.root[in.ID] != nil:
		case in.Op.HasBody():
			p.construct(in, depth)
			continue
		case in.Op.Pure() || in.Op == kir.VarGet || in.Op == kir.VarSet:
			p.pure(in)
		default:
			p.other(in)
		}
		p.expired(in)
		if dies { // nobody reads it
			p.release(in.Type, p.slot[in.ID])
		}
	}
}

// construct emits If, BlockOp and Loop.
func (p *preparer) construct(in *kir.Instr, depth int) {
	slot := int32(2 * depth)
	if in.Op == kir.If && in.Else == nil && len(in.Body.Instrs) == 1 {
		if j := in.Body.Instrs[0]; j.Op == kir.Break || j.Op == kir.Continue || j.Op == kir.Return {
			i := inst{kind: kindBreakIf, a: p.reg(in.Args[0]), pos: j.Pos}
			if j.Op == kir.Return {
				i.kind = kindReturnIf
			} else {
				i.slot = p.parking(j)
			}
			p.emit(i)
			p.expired(nil)
			p.pos += 2 // the jump and the end
			p.expired(nil)
			return
		}
	}
	switch in.Op {
	case kir.If:
		k := kindIf
		if in.Else != nil {
			k = kindIfElse
		}
		start := p.emit(inst{kind: k, a: p.reg(in.Args[0]), slot: slot, pos: in.Pos})
		p.expired(nil)
		p.open()
		p.block(in.Body, depth+1)
		if in.Else != nil {
			els := p.endConstruct(inst{kind: kindElse, slot: slot})
			p.exe.code[start].to = els + 1
			p.open()
			p.block(in.Else, depth+1)
			p.exe.code[els].to = p.endConstruct(inst{kind: kindEnd, slot: slot})
		} else {
			p.exe.code[start].to = p.endConstruct(inst{kind: kindEnd, slot: slot}) + 1
		}
	case kir.BlockOp:
		p.targets[in] = slot
		p.emit(inst{kind: kindBlock, slot: slot})
		p.expired(nil)
		p.open()
		p.block(in.Body, depth+1)
		p.endConstruct(inst{kind: kindEnd, slot: slot})
	case kir.Loop:
		p.targets[in] = slot
		start := p.emit(inst{kind: kindLoop, slot: slot})
		p.expired(nil)
		p.open()
		p.block(in.Body, depth+1)
		p.endConstruct(inst{kind: kindLoopBack, slot: slot, to: start + 1, spin: p.spins[in], pos: in.Pos})
	}
	p.pos++
	p.expired(nil)
}

// parking returns the mask slot where a Break or Continue leaves its lanes.
func (p *preparer) parking(in *kir.Instr) int32 {
	if in.Op == kir.Continue {
		return p.targets[in.Target] + 1
	}
	return p.targets[in.Target]
}

// pure emits an operation on lanes, in F32 if it has no function for a half type.
func (p *preparer) pure(in *kir.Instr) {
	i := inst{op: in.Op, mode: in.Mode, imm: in.Imm, pos: in.Pos, args: uint8(len(in.Args)),
		logical: (in.Op == kir.And || in.Op == kir.Or) && in.Type == kir.Bool}
	var args [3]uint32
	for n, a := range in.Args {
		args[n] = p.reg(a)
	}
	op, t := in.Op, in.Type
	switch op {
	case kir.Builtin:
		i.fn, i.d = builtin, p.dest(in, true)
		p.emit(i)
		return
	case kir.VarGet:
		args[0], i.args = p.varSlot[in.Imm], 1
	case kir.VarSet:
		i.fn, i.a, i.d = lane[op][in.Args[0].Type], args[0], p.varSlot[in.Imm]
		p.emit(i)
		return
	case kir.Convert:
		p.convert(in, i, args[0])
		return
	case kir.Gt, kir.Ge:
		op = op - kir.Gt + kir.Lt
		args[0], args[1] = args[1], args[0]
	}
	if op >= kir.Eq && op <= kir.Le {
		t = in.Args[0].Type
	}
	i.fn = lane[op][t]
	if i.fn != nil || t != kir.F16 && t != kir.BF16 {
		i.a, i.b, i.c = args[0], args[1], args[2]
		i.d = p.dest(in, true)
		p.must(in, i)
		return
	}
	var tmp [3]uint32
	for n := range in.Args {
		tmp[n] = p.alloc(kir.F32)
		p.emit(inst{fn: convs[t][kir.F32], args: 1, d: tmp[n], a: args[n]})
	}
	i.fn, i.a, i.b, i.c = lane[op][kir.F32], tmp[0], tmp[1], tmp[2]
	if in.Type == kir.Bool {
		i.d = p.dest(in, true)
		p.must(in, i)
	} else {
		i.d = tmp[0]
		p.must(in, i)
		p.emit(inst{fn: convs[kir.F32][t], args: 1, d: p.dest(in, true), a: tmp[0]})
	}
	for n := range in.Args {
		p.release(kir.F32, tmp[n])
	}
}

func (p *preparer) convert(in *kir.Instr, i inst, arg uint32) {
	from, to := in.Args[0].Type, in.Type
	i.a = arg
	if fn := convs[from][to]; fn != nil {
		i.fn, i.d = fn, p.dest(in, true)
		p.emit(i)
		return
	}
	tmp := p.alloc(kir.F32)
	i.fn, i.d = convs[from][kir.F32], tmp
	p.must(in, i)
	i.fn, i.a, i.d = convs[kir.F32][to], tmp, p.dest(in, true)
	p.must(in, i)
	p.release(kir.F32, tmp)
}

func (p *preparer) must(in *kir.Instr, i inst) {
	if i.fn == nil && p.err == nil {
		p.err = fmt.Errorf("[%s] BUG: no function for %s %s", p.k.Name, in.Op, in.Type)
	}
	p.emit(i)
}

// other emits memory accesses, convergent operations and jumps.
func (p *preparer) other(in *kir.Instr) {
	i := inst{kind: kindMem, op: in.Op, mode: in.Mode, imm: in.Imm, pos: in.Pos, args: uint8(len(in.Args))}
	if in.Op == kir.MatMulAcc {
		p.matMulAcc(in, i)
		return
	}
	regs := []*uint32{&i.a, &i.b, &i.c}
	for n, a := range in.Args {
		*regs[n] = p.reg(a)
		if s, ok := a.Type.Space(); ok && n == 0 {
			i.space = s
		}
	}
	if in.Type != kir.Void {
		i.d = p.dest(in, false)
	}
	switch in.Op {
	case kir.Load:
		i.fn = lane[kir.Load][in.Type]
		if in.Type == kir.Bool {
			i.fn = loadBool
		}
	case kir.Store:
		i.imm = uint64(in.Args[1].Type.Size())
		i.fn = lane[kir.Store][in.Args[1].Type]
		if in.Args[1].Type == kir.Bool {
			i.fn = storeBool
		}
	case kir.AtomicStore:
		i.fn = atomicFunc(in.Op, in.Mode, in.Args[1].Type)
	case kir.AtomicLoad, kir.AtomicRMW, kir.AtomicCAS:
		i.fn = atomicFunc(in.Op, in.Mode, in.Type)
	case kir.Fence, kir.SimdBarrier:
		i.fn = order // for validation; lanes and SIMD-groups see memory in program order already
	case kir.Barrier:
		i.kind = kindBarrier
	case kir.Return:
		i.kind = kindReturn
	case kir.Break, kir.Continue:
		i.kind, i.slot = kindBreak, p.parking(in)
	default:
		p.group(in, i)
		return
	}
	if i.kind == kindMem {
		p.must(in, i)
	} else {
		p.emit(i)
	}
}

// matMulAcc emits an element of a product of matrices: a and b hold A, c the elements of B that it needs, imm is the
// register of C.
func (p *preparer) matMulAcc(in *kir.Instr, i inst) {
	i.kind, i.a, i.b, i.c = kindPure, p.reg(in.Args[0]), p.reg(in.Args[1]), p.reg(in.Args[2+in.Imm])
	i.imm = uint64(p.reg(in.Args[4]))
	i.d = p.dest(in, false)
	i.fn = matMulAcc(kir.FMA32)
	if in.Type == kir.F64 {
		i.fn = matMulAcc(math.FMA)
	}
	p.must(in, i)
}

func (p *preparer) group(in *kir.Instr, i inst) {
	i.kind, i.c = kindPure, uint32(in.Imm)
	isBool := in.Args[0].Type == kir.Bool
	switch in.Op {
	case kir.Ballot:
		i.fn = ballot
	case kir.Shuffle:
		i.fn = lane[kir.Shuffle][in.Type]
		if isBool {
			i.fn = shuffleBool
		}
	case kir.BroadcastFirst:
		i.fn = lane[kir.BroadcastFirst][in.Type]
		if isBool {
			i.fn = broadcastFirstBool
		}
	default:
		i.fn = groupFunc(in.Op, in.Mode, in.Type)
	}
	p.must(in, i)
}
