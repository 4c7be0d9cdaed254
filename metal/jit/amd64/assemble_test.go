package amd64

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// branchy makes a function of jumps over all distances, cold code, constants and addresses of labels, without
// virtual registers.
func branchy(seed uint64) *Func {
	rnd := rand.New(rand.NewPCG(seed, 9))
	f := NewFunc()
	var labels []Label
	for range 12 {
		labels = append(labels, f.NewLabel())
	}
	f.Const([]byte{1, 2, 3, 4})
	f.Const([]byte{5, 6, 7, 8, 9, 10, 11, 12})
	f.Const(make([]byte, 64))
	f.Const([]byte{1, 2, 3, 4}) // the first again
	bound, depth := 0, 0
	for range 60 {
		l := labels[rnd.IntN(len(labels))]
		switch rnd.IntN(8) {
		case 0, 1:
			f.Emit(Inst{Op: Jcc, Cond: Cond(rnd.IntN(16)), Label: l})
		case 2:
			f.Emit(Inst{Op: Jmp, Label: l})
			f.Emit(Inst{Op: Nop})
		case 3:
			f.Emit(Inst{Op: Lea, W: 8, Dst: R9, Label: l})
		case 4:
			f.Emit(Inst{Op: VAddPS, W: 64, Dst: V(1), A: V(2), Mem: Mem{Const: ConstID(1 + rnd.IntN(3)), Disp: 4}})
			f.Emit(Inst{Op: VPShufD, W: 32, Dst: V(1), Imm: 5, Mem: Mem{Const: ConstID(1 + rnd.IntN(3))}})
		case 5:
			if bound < len(labels) {
				f.Bind(labels[bound])
				bound++
			}
		case 6:
			if depth == 0 || depth == 1 && rnd.IntN(2) == 0 {
				f.ColdBegin()
				depth++
			} else {
				f.ColdEnd()
				depth--
			}
		}
		for range rnd.IntN(16) {
			f.Emit(Inst{Op: VFMAdd231PS, W: 64, Dst: V(20), A: V(1), B: V(30)})
		}
	}
	for ; depth > 0; depth-- {
		f.ColdEnd()
	}
	for ; bound < len(labels); bound++ {
		f.Bind(labels[bound])
	}
	f.Emit(Inst{Op: Ret})
	return f
}

// source prints a function for GNU as: hot code, cold code, constants by size.
func source(f *Func) string {
	var parts [3]strings.Builder
	var pool strings.Builder
	depth := 0
	for k := range f.insts {
		switch i := &f.insts[k]; i.Op {
		case ColdBegin:
			depth++
		case ColdEnd:
			depth--
		default:
			fmt.Fprintln(&parts[depth], i.String())
		}
	}
	fmt.Fprintln(&pool, ".balign 64, 0xcc")
	for _, n := range []int{64, 8, 4} {
		for id, c := range f.pool {
			if len(c.data) != n {
				continue
			}
			fmt.Fprintf(&pool, ".C%d:\n", id+1)
			for _, x := range c.data {
				fmt.Fprintf(&pool, ".byte %d\n", x)
			}
		}
	}
	return ".intel_syntax noprefix\n" + parts[0].String() + parts[1].String() +
		parts[2].String() + pool.String()
}

const programHead = "# What GNU as makes of whole functions: go test ./metal/jit/amd64 -run Program -update\n"

// TestProgram compares whole functions, with their jumps and constants, with GNU as.
func TestProgram(t *testing.T) {
	const n = 12
	file := filepath.Join("testdata", "program.txt")
	if *update {
		text := programHead
		for seed := range uint64(n) {
			dir := t.TempDir()
			src, obj, bin := filepath.Join(dir, "a.s"), filepath.Join(dir, "a.o"), filepath.Join(dir, "a.bin")
			require.NoError(t, os.WriteFile(src, []byte(source(branchy(seed))), 0o644))
			msg, err := exec.Command("as", "--64", "-o", obj, src).CombinedOutput()
			require.NoError(t, err, "%s", msg)
			msg, err = exec.Command("objcopy", "-O", "binary", "-j", ".text", obj, bin).CombinedOutput()
			require.NoError(t, err, "%s", msg)
			b, err := os.ReadFile(bin)
			require.NoError(t, err)
			text += hex.EncodeToString(b) + "\n"
		}
		require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	}
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	want := strings.Fields(strings.TrimPrefix(string(text), programHead))
	require.Len(t, want, n)
	f := NewFunc()
	for seed := range uint64(n) {
		f.Reset() // also proves that nothing is left over
		g := branchy(seed)
		for range g.labels {
			f.NewLabel()
		}
		for _, c := range g.pool {
			f.Const(c.data)
		}
		for _, i := range g.insts {
			f.Emit(i)
		}
		c, err := f.Assemble(AVX512)
		require.NoError(t, err)
		require.Equal(t, want[seed], hex.EncodeToString(c.Bytes), "seed %d", seed)
	}
}

// TestMalformed: what cannot be encoded is an error that says why, and nothing panics.
func TestMalformed(t *testing.T) {
	bad := map[string]Inst{
		"no such operation":     {},
		"wrong operand":         {Op: VAddPS, W: 64, Dst: V(1), A: V(64), B: V(2)},
		"vectors of 8 bytes":    {Op: VAddPS, W: 8, Dst: V(1), A: V(1), B: V(2)},
		"no EVEX encoding":      {Op: VBlendVPS, W: 32, Dst: V(1), A: V(31), B: V(2), C: V(3)},
		"k0 as a write mask":    {Op: VAddPS, W: 64, Dst: V(1), A: V(1), B: V(2), KM: K(0)},
		"Zero without a mask":   {Op: VAddPS, W: 64, Dst: V(1), A: V(1), B: V(2), Zero: true},
		"no write mask":         {Op: VPSADBW, W: 64, Dst: V(1), A: V(1), B: V(2), KM: K(1)},
		"rsp as an index":       {Op: Lea, W: 8, Dst: RAX, Mem: Mem{Base: RAX, Index: RSP}},
		"scale 3":               {Op: Lea, W: 8, Dst: RAX, Mem: Mem{Base: RAX, Index: RCX, Scale: 3}},
		"does not fit":          {Op: Add, W: 8, Dst: RAX, Imm: 1 << 40},
		"no such label":         {Op: Jmp, Label: 3},
		"two sources":           {Op: Add, W: 8, Dst: RAX, A: RCX, Mem: Mem{Base: RAX}},
		"count is not in rcx":   {Op: Shl, W: 8, Dst: RAX, A: RDX},
		"gather with equal":     {Op: VPGatherDDK, W: 64, Dst: V(1), KM: K(1), Mem: Mem{Base: RAX, Index: V(1)}},
		"no vector index":       {Op: VPGatherDDK, W: 64, Dst: V(1), KM: K(1), Mem: Mem{Base: RAX, Index: RCX}},
		"no broadcast operand":  {Op: VMovUPS, W: 64, Dst: V(1), Mem: Mem{Base: RAX, Bcast: true}},
		"not with 16 bytes":     {Op: VPermD, W: 16, Dst: V(1), A: V(2), B: V(3)},
		"before register alloc": {Op: SaveLive},
	}
	for what, i := range bad {
		_, err := assembleOne(i)
		require.ErrorContains(t, err, what)
	}
	f := NewFunc()
	l := f.NewLabel()
	f.Emit(Inst{Op: Jmp, Label: l})
	f.Emit(Inst{Op: Nop})
	_, err := f.Assemble(AVX512)
	require.ErrorContains(t, err, "which is nowhere")
	f.Bind(l)
	f.Bind(l)
	_, err = f.Assemble(AVX512)
	require.ErrorContains(t, err, "two places")
}

// TestLevels: an instruction that a processor with AVX2 alone does not know is refused where it stands.
func TestLevels(t *testing.T) {
	add := Inst{Op: VAddPS, W: 32, Dst: V(1), A: V(15), B: V(2)}
	wide, upper, masked, broadcast := add, add, add, add
	wide.W, upper.A, masked.KM = 64, V(16), K(1)
	broadcast.B, broadcast.Mem = 0, Mem{Base: RAX, Bcast: true}
	f := NewFunc()
	f.Emit(add)
	_, err := f.Assemble(AVX2)
	require.NoError(t, err)
	for _, i := range []Inst{wide, upper, masked, broadcast, {Op: KAnd, W: 2, Dst: K(1), A: K(2), B: K(3)},
		{Op: VPMulLQ, W: 32, Dst: V(1), A: V(2), B: V(3)}} {
		f.SetInsts([]Inst{add, i})
		_, err := f.Assemble(AVX2)
		require.ErrorContains(t, err, "not with AVX2")
		_, err = f.Assemble(AVX512)
		require.NoError(t, err)
	}
}

// TestNoPanic puts random operands into all operations.
func TestNoPanic(t *testing.T) {
	rnd := rand.New(rand.NewPCG(4, 4))
	reg := func() R {
		return []R{0, 0, RAX, R13, RCX, V(0), V(9), V(31), V(32), K(0), K(2), K(9), Reg(Vec, 70), Reg(GPR, 64), R(9) << 28,
			RSP, Reg(GPR, 20)}[rnd.IntN(17)]
	}
	good := 0
	for op := Opcode(0); op < numOpcodes+3; op++ {
		for range 200 {
			i := Inst{Op: op, W: []uint8{0, 1, 2, 4, 8, 16, 32, 64, 64, 128}[rnd.IntN(10)], Cond: Cond(rnd.IntN(256)),
				Zero: rnd.IntN(4) == 0, Dst: reg(), A: reg(), B: reg(), Imm: []int64{0, 3, -1, 300, 1 << 50}[rnd.IntN(5)]}
			if rnd.IntN(3) == 0 {
				i.C, i.KM = reg(), reg()
			}
			if rnd.IntN(2) == 0 {
				i.Mem = Mem{Base: reg(), Index: reg(), Scale: uint8(rnd.IntN(9)), Bcast: rnd.IntN(4) == 0,
					Disp: rnd.Int32() >> rnd.IntN(31), Const: ConstID(rnd.IntN(12) / 10)}
			}
			i.Label, i.Safepoint = Label(rnd.IntN(3)-1), int32(rnd.IntN(3)-1)
			if b, err := assembleOne(i); err == nil && len(b) > 0 {
				good++
			}
			f := NewFunc()
			f.NewReg(GPR)
			f.NewReg(Vec)
			f.Emit(i)
			if _, err := f.Allocate(Allocation{VecBytes: 64, Frame: RBX, Slots: 64}); err == nil {
				_, _ = f.Assemble(AVX512)
			}
			_ = i.String()
		}
	}
	require.Greater(t, good, 500, "the test reaches the encoder")
}

func BenchmarkAssemble(b *testing.B) {
	f := program(rand.New(rand.NewPCG(5, 5)), 3000, 24, 64)
	l := append([]Inst(nil), f.Insts()...)
	for k := range l {
		if l[k].Op == VBlendVPS {
			l[k].Op, l[k].C = VMinPS, 0
		}
	}
	for b.Loop() {
		f.SetInsts(append([]Inst(nil), l...))
		_, err := f.Allocate(Allocation{VecBytes: 64, Frame: RBX, Slots: 64})
		require.NoError(b, err)
		_, err = f.Assemble(AVX512)
		require.NoError(b, err)
	}
}
