package amd64

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal/jit/code"
)

// The machine of these tests computes with names: what an instruction writes is named by the instruction and the
// names of what it reads. A program on virtual registers and the same after allocation must store the same
// names.
type machine struct {
	regs  map[code.R]uint64
	slots map[int32]uint64
	trace []uint64
	wide  uint8
	// real: virtual registers are not allowed, and Nop, which stands at safepoints, destroys all registers.
	real bool
}

func hash(xs ...uint64) uint64 {
	h := uint64(14695981039346656037)
	for _, x := range xs {
		h = (h ^ x) * 0x9e3779b97f4a7c15
		h ^= h >> 29
	}
	return h
}

// memory names what a memory operand holds.
func (m *machine) memory(x code.Mem) uint64 {
	switch {
	case x.Const != 0:
		b := uint64(0)
		if x.Bcast {
			b = 1
		}
		return hash(77, uint64(x.Const), b)
	case x.Base == code.RBX && m.real:
		return m.slots[x.Disp]
	}
	return hash(79, m.address(x))
}

// address names an address, the same if base and index were added before.
func (m *machine) address(x code.Mem) uint64 {
	a := m.regs[x.Base]
	if x.Index != 0 {
		a = hash(80, a, m.regs[x.Index], uint64(max(1, x.Scale)))
	}
	if x.Disp != 0 {
		a = hash(81, a, uint64(x.Disp))
	}
	return a
}

// step executes an instruction.
func (m *machine) step(i code.Inst) error {
	r := rowOf(i.Op)
	if i.Op == code.Nop && m.real { // between SaveLive and LoadLive
		for r := range m.regs {
			if r != code.RBP {
				m.regs[r] = 1
			}
		}
		return nil
	}
	if r.form == formPseudo || r.form == formJcc {
		return nil
	}
	var bad error
	i.Operands(func(x *code.R, role code.Role) {
		if m.real && x.Virtual() {
			bad = fmt.Errorf("virtual register in %s", text(&i))
		}
	})
	if bad != nil {
		return bad
	}
	if wholeCopy(&i, r, m.wide) || i.Op == code.KMov && i.W == 8 && !i.Mem.Valid() {
		m.regs[i.Dst] = m.regs[i.A]
		return nil
	}
	if i.Op == code.Lea {
		m.regs[i.Dst] = m.address(i.Mem)
		return nil
	}
	move := r.form == formMov || r.form == formGMov || r.form == formKMov
	if move && i.KM == 0 && i.Mem.Valid() && (i.Mem.Const != 0 || i.Mem.Base == code.RBX) {
		if i.Dst == 0 {
			m.slots[i.Mem.Disp] = m.regs[i.A]
		} else {
			m.regs[i.Dst] = m.memory(i.Mem)
		}
		return nil
	}
	if i.Op == code.VBroadcastSS && i.Mem.Const != 0 {
		x := i.Mem
		x.Bcast = true
		m.regs[i.Dst] = m.memory(x)
		return nil
	}
	turn := i.Op == code.VFMAdd132PS // names do not say in which form
	if turn {
		i.Op = code.VFMAdd213PS
	}
	src := []uint64{uint64(i.Op), uint64(i.Imm), uint64(i.W)}
	a, b := uint64(0), uint64(0)
	if i.A != 0 {
		a = m.regs[i.A]
	}
	if i.B != 0 {
		b = m.regs[i.B]
	}
	store := i.Store()
	if i.Mem.Valid() {
		x := m.memory(i.Mem)
		switch {
		case store:
			src = append(src, x)
		case i.B == 0 && (i.A != 0 || r.form == formRVM || r.form == formTVM):
			b = x
		default:
			a = x
		}
	}
	if r.enc&comm != 0 && a > b || turn {
		a, b = b, a
	}
	src = append(src, a, b, m.regs[i.C], m.regs[i.KM])
	if i.Dst != 0 && i.DstRole()&code.Use != 0 {
		src = append(src, m.regs[i.Dst])
	}
	h := hash(src...)
	if store {
		m.trace = append(m.trace, h)
	}
	if i.Dst != 0 {
		m.regs[i.Dst] = h
	}
	return nil
}

// run executes a list, each loop three times.
func (m *machine) run(l []code.Inst) error {
	for k := 0; k < len(l); k++ {
		if l[k].Op != code.LoopBegin {
			if err := m.step(l[k]); err != nil {
				return err
			}
			continue
		}
		depth, end := 1, k+1
		for ; depth > 0; end++ {
			switch l[end].Op {
			case code.LoopBegin:
				depth++
			case code.LoopEnd:
				depth--
			}
		}
		for range 3 {
			if err := m.run(l[k+1 : end-1]); err != nil {
				return err
			}
		}
		k = end - 1
	}
	return nil
}

// program makes a random list: n instructions, about live registers of each class alive.
func program(rnd *rand.Rand, n, live int, wide uint8) *Program {
	f := NewProgram()
	var g, v, k []code.R
	point := int32(0)
	depth := 0
	var heads []code.Label
	end := func() {
		depth--
		f.Emit(code.Inst{Op: code.Jcc, Cond: code.CondNE, Label: heads[depth]})
		heads = heads[:depth]
		f.EndLoop()
	}
	pick := func(l []code.R) code.R { return l[rnd.IntN(len(l))] }
	fresh := func(l *[]code.R, c code.Class) code.R {
		r := f.NewReg(c)
		if depth > 0 && len(*l) >= 2 || len(*l) >= live {
			(*l)[rnd.IntN(len(*l))] = r // one dies
		} else {
			*l = append(*l, r)
		}
		return r
	}
	fmas := []code.Opcode{code.VFMAdd231PS, code.VFMAdd213PS}
	var consts []code.ConstID
	for c := range 5 {
		consts = append(consts, f.Const([]byte{byte(c), 1, 2, 3}))
	}
	big := f.Const(make([]byte, 64))
	for range live {
		f.Emit(code.Inst{Op: code.Mov, W: 8, Dst: fresh(&g, code.GPR), Imm: rnd.Int64()})
		f.Emit(code.Inst{Op: code.VMovUPS, W: wide, Dst: fresh(&v, code.Vec), Mem: code.Mem{Const: big}})
		if wide == 64 {
			f.Emit(code.Inst{Op: code.KMov, W: 2, Dst: fresh(&k, code.Mask), A: pick(g)})
		}
	}
	address := func() code.Mem {
		x := code.Mem{Base: code.RBP, Disp: int32(rnd.IntN(9) * 64)}
		switch rnd.IntN(3) {
		case 0:
			x.Base = pick(g)
		case 1:
			x.Base, x.Index, x.Scale = pick(g), pick(g), 4
		}
		return x
	}
	for range n {
		i := code.Inst{W: wide}
		switch rnd.IntN(19) {
		case 0:
			i.Op, i.A, i.B, i.Dst = code.VAddPS, pick(v), pick(v), fresh(&v, code.Vec)
		case 1:
			i.Op, i.A, i.B, i.Dst = pick2(rnd, fmas), pick(v), pick(v), pick(v)
		case 2:
			i.Op, i.A, i.Mem, i.Dst = code.VSubPS, pick(v), address(), fresh(&v, code.Vec)
		case 3:
			i.Op, i.Mem, i.Dst = code.VBroadcastSS, code.Mem{Const: pick2(rnd, consts)}, fresh(&v, code.Vec)
		case 4:
			i.Op, i.A, i.Mem = code.VMovUPS, pick(v), address()
		case 5:
			i.Op, i.W, i.A, i.Dst = code.Add, 8, pick(g), pick(g)
		case 6:
			i.Op, i.W, i.Mem, i.Dst = code.Lea, 8, address(), fresh(&g, code.GPR)
		case 7:
			i.Op, i.W, i.A, i.Mem = code.Mov, 8, pick(g), address()
		case 8:
			i.Op, i.W, i.A, i.Dst = code.Mov, 8, pick(g), fresh(&g, code.GPR)
		case 9:
			i.Op, i.W, i.Imm, i.Dst = code.Mov, 8, rnd.Int64(), fresh(&g, code.GPR)
		case 10:
			i.Op, i.A, i.Dst = code.VMovAPS, pick(v), fresh(&v, code.Vec)
		case 11:
			i.Op, i.W, i.Dst, i.Mem = code.LockXAdd, 8, pick(g), address()
		case 12:
			i.Op, i.A, i.B, i.C, i.Dst = code.VBlendVPS, pick(v), pick(v), pick(v), fresh(&v, code.Vec)
		case 13:
			if rnd.IntN(4) == 0 && depth < 3 {
				f.Loop()
				heads = append(heads, f.NewLabel())
				f.Bind(heads[depth])
				depth++
			}
			continue
		case 14:
			if depth > 0 {
				end()
			}
			continue
		case 15:
			if rnd.IntN(8) == 0 {
				f.SaveLive(point)
				f.Emit(code.Inst{Op: code.Nop})
				f.LoadLive(point)
				point++
			}
			continue
		default:
			if wide != 64 {
				continue
			}
			switch rnd.IntN(4) {
			case 0:
				i.Op, i.W, i.A, i.B, i.Dst = code.KAnd, 2, pick(k), pick(k), fresh(&k, code.Mask)
			case 1:
				i.Op, i.A, i.B, i.KM, i.Dst = code.VCmpPSK, pick(v), pick(v), pick(k), fresh(&k, code.Mask)
			case 2:
				i.Op, i.A, i.B, i.KM, i.Dst = code.VMulPS, pick(v), pick(v), pick(k), pick(v)
			case 3:
				i.Op, i.A, i.KM, i.Mem = code.VMovUPS, pick(v), pick(k), address()
			}
		}
		f.Emit(i)
	}
	for depth > 0 {
		end()
	}
	for _, r := range v {
		f.Emit(code.Inst{Op: code.VMovUPS, W: wide, A: r, Mem: code.Mem{Base: code.RBP}})
	}
	return f
}

func pick2[T any](rnd *rand.Rand, l []T) T { return l[rnd.IntN(len(l))] }

func TestAllocateRandom(t *testing.T) {
	for seed := range uint64(600) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		wide := []uint8{64, 32}[seed&1]
		f := program(rnd, 20+rnd.IntN(300), 2+rnd.IntN(40), wide)
		before := append([]code.Inst(nil), f.Insts()...)
		want := machine{regs: map[code.R]uint64{code.RBP: 5}, slots: map[int32]uint64{}, wide: wide}
		require.NoError(t, want.run(before))
		_, err := f.Allocate(Allocation{VecBytes: wide, Frame: code.RBX, Slots: 64, Spill: seed%7 == 0})
		require.NoError(t, err, "seed %d", seed)
		got := machine{regs: map[code.R]uint64{code.RBP: 5}, slots: map[int32]uint64{}, wide: wide, real: true}
		require.NoError(t, got.run(f.Insts()), "seed %d", seed)
		require.Equal(t, want.trace, got.trace, "seed %d", seed)
		for k := range f.Insts() {
			if f.Insts()[k].Op == code.VBlendVPS {
				f.Insts()[k] = code.Inst{Op: code.Nop} // has no registers above 15
			}
		}
		_, err = f.Assemble(AVX512)
		require.NoError(t, err, "seed %d", seed)
	}
}
