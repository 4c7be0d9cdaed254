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

	"github.com/mlxlua/mlxlua/metal/jit/code"
)

// branchy makes a function of jumps over all distances, cold code, constants and addresses of labels, without
// virtual registers.
func branchy(seed uint64) *Program {
	rnd := rand.New(rand.NewPCG(seed, 9))
	f := NewProgram()
	var labels []code.Label
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
			f.Emit(code.Inst{Op: code.Jcc, Cond: code.Cond(rnd.IntN(16)), Label: l})
		case 2:
			f.Emit(code.Inst{Op: code.Jmp, Label: l})
			f.Emit(code.Inst{Op: code.Nop})
		case 3:
			f.Emit(code.Inst{Op: code.Lea, W: 8, Dst: code.R9, Label: l})
		case 4:
			f.Emit(code.Inst{Op: code.VAddPS, W: 64, Dst: code.V(1), A: code.V(2),
				Mem: code.Mem{Const: code.ConstID(1 + rnd.IntN(3)), Disp: 4}})
			f.Emit(code.Inst{Op: code.VPShufD, W: 32, Dst: code.V(1), Imm: 5,
				Mem: code.Mem{Const: code.ConstID(1 + rnd.IntN(3))}})
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
			f.Emit(code.Inst{Op: code.VFMAdd231PS, W: 64, Dst: code.V(20), A: code.V(1), B: code.V(30)})
		}
	}
	for ; depth > 0; depth-- {
		f.ColdEnd()
	}
	for ; bound < len(labels); bound++ {
		f.Bind(labels[bound])
	}
	f.Emit(code.Inst{Op: code.Ret})
	return f
}

// source prints a function for GNU as: hot code, cold code, constants by size.
func source(f *Program) string {
	var parts [3]strings.Builder
	var pool strings.Builder
	depth := 0
	for k := range f.Insts() {
		switch i := &f.Insts()[k]; i.Op {
		case code.ColdBegin:
			depth++
		case code.ColdEnd:
			depth--
		default:
			fmt.Fprintln(&parts[depth], text(i))
		}
	}
	fmt.Fprintln(&pool, ".balign 64, 0xcc")
	for _, n := range []int{64, 8, 4} {
		for id, c := range f.Pool() {
			if len(c.Data) != n {
				continue
			}
			fmt.Fprintf(&pool, ".C%d:\n", id+1)
			for _, x := range c.Data {
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
	f := NewProgram()
	for seed := range uint64(n) {
		f.Reset() // also proves that nothing is left over
		g := branchy(seed)
		for range g.NumLabels() {
			f.NewLabel()
		}
		for _, c := range g.Pool() {
			f.Const(c.Data)
		}
		for _, i := range g.Insts() {
			f.Emit(i)
		}
		c, err := f.Assemble(AVX512)
		require.NoError(t, err)
		require.Equal(t, want[seed], hex.EncodeToString(c.Bytes), "seed %d", seed)
	}
}

// TestMalformed: what cannot be encoded is an error that says why, and nothing panics.
func TestMalformed(t *testing.T) {
	bad := map[string]code.Inst{
		"no such operation":   {},
		"wrong operand":       {Op: code.VAddPS, W: 64, Dst: code.V(1), A: code.V(64), B: code.V(2)},
		"vectors of 8 bytes":  {Op: code.VAddPS, W: 8, Dst: code.V(1), A: code.V(1), B: code.V(2)},
		"no EVEX encoding":    {Op: code.VBlendVPS, W: 32, Dst: code.V(1), A: code.V(31), B: code.V(2), C: code.V(3)},
		"k0 as a write mask":  {Op: code.VAddPS, W: 64, Dst: code.V(1), A: code.V(1), B: code.V(2), KM: code.K(0)},
		"Zero without a mask": {Op: code.VAddPS, W: 64, Dst: code.V(1), A: code.V(1), B: code.V(2), Zero: true},
		"no write mask":       {Op: code.VPSADBW, W: 64, Dst: code.V(1), A: code.V(1), B: code.V(2), KM: code.K(1)},
		"rsp as an index":     {Op: code.Lea, W: 8, Dst: code.RAX, Mem: code.Mem{Base: code.RAX, Index: code.RSP}},
		"scale 3": {Op: code.Lea, W: 8, Dst: code.RAX,
			Mem: code.Mem{Base: code.RAX, Index: code.RCX, Scale: 3}},
		"does not fit":        {Op: code.Add, W: 8, Dst: code.RAX, Imm: 1 << 40},
		"no such label":       {Op: code.Jmp, Label: 3},
		"two sources":         {Op: code.Add, W: 8, Dst: code.RAX, A: code.RCX, Mem: code.Mem{Base: code.RAX}},
		"count is not in rcx": {Op: code.Shl, W: 8, Dst: code.RAX, A: code.RDX},
		"gather with equal": {Op: code.VPGatherDDK, W: 64, Dst: code.V(1), KM: code.K(1),
			Mem: code.Mem{Base: code.RAX, Index: code.V(1)}},
		"no vector index": {Op: code.VPGatherDDK, W: 64, Dst: code.V(1), KM: code.K(1),
			Mem: code.Mem{Base: code.RAX, Index: code.RCX}},
		"no broadcast operand":  {Op: code.VMovUPS, W: 64, Dst: code.V(1), Mem: code.Mem{Base: code.RAX, Bcast: true}},
		"not with 16 bytes":     {Op: code.VPermD, W: 16, Dst: code.V(1), A: code.V(2), B: code.V(3)},
		"before register alloc": {Op: code.SaveLive},
	}
	for what, i := range bad {
		_, err := assembleOne(i)
		require.ErrorContains(t, err, what)
	}
	f := NewProgram()
	l := f.NewLabel()
	f.Emit(code.Inst{Op: code.Jmp, Label: l})
	f.Emit(code.Inst{Op: code.Nop})
	_, err := f.Assemble(AVX512)
	require.ErrorContains(t, err, "which is nowhere")
	f.Bind(l)
	f.Bind(l)
	_, err = f.Assemble(AVX512)
	require.ErrorContains(t, err, "two places")
}

// TestLevels: an instruction that a processor with AVX2 alone does not know is refused where it stands.
func TestLevels(t *testing.T) {
	add := code.Inst{Op: code.VAddPS, W: 32, Dst: code.V(1), A: code.V(15), B: code.V(2)}
	wide, upper, masked, broadcast := add, add, add, add
	wide.W, upper.A, masked.KM = 64, code.V(16), code.K(1)
	broadcast.B, broadcast.Mem = 0, code.Mem{Base: code.RAX, Bcast: true}
	f := NewProgram()
	f.Emit(add)
	_, err := f.Assemble(AVX2)
	require.NoError(t, err)
	for _, i := range []code.Inst{wide, upper, masked, broadcast,
		{Op: code.KAnd, W: 2, Dst: code.K(1), A: code.K(2), B: code.K(3)},
		{Op: code.VPMulLQ, W: 32, Dst: code.V(1), A: code.V(2), B: code.V(3)}} {
		f.SetInsts([]code.Inst{add, i})
		_, err := f.Assemble(AVX2)
		require.ErrorContains(t, err, "not with AVX2")
		_, err = f.Assemble(AVX512)
		require.NoError(t, err)
	}
}

// TestNoPanic puts random operands into all operations.
func TestNoPanic(t *testing.T) {
	rnd := rand.New(rand.NewPCG(4, 4))
	reg := func() code.R {
		return []code.R{0, 0, code.RAX, code.R13, code.RCX, code.V(0), code.V(9), code.V(31),
			code.V(32), code.K(0), code.K(2), code.K(9), code.Reg(code.Vec, 70), code.Reg(code.GPR, 64), code.R(9) << 28,
			code.RSP, code.Reg(code.GPR, 20)}[rnd.IntN(17)]
	}
	good := 0
	for op := code.Opcode(0); op < code.NumOpcodes+3; op++ {
		for range 200 {
			i := code.Inst{Op: op, W: []uint8{0, 1, 2, 4, 8, 16, 32, 64, 64, 128}[rnd.IntN(10)], Cond: code.Cond(rnd.IntN(256)),
				Zero: rnd.IntN(4) == 0, Dst: reg(), A: reg(), B: reg(), Imm: []int64{0, 3, -1, 300, 1 << 50}[rnd.IntN(5)]}
			if rnd.IntN(3) == 0 {
				i.C, i.KM = reg(), reg()
			}
			if rnd.IntN(2) == 0 {
				i.Mem = code.Mem{Base: reg(), Index: reg(), Scale: uint8(rnd.IntN(9)), Bcast: rnd.IntN(4) == 0,
					Disp: rnd.Int32() >> rnd.IntN(31), Const: code.ConstID(rnd.IntN(12) / 10)}
			}
			i.Label, i.Safepoint = code.Label(rnd.IntN(3)-1), int32(rnd.IntN(3)-1)
			if b, err := assembleOne(i); err == nil && len(b) > 0 {
				good++
			}
			f := NewProgram()
			f.NewReg(code.GPR)
			f.NewReg(code.Vec)
			f.Emit(i)
			if _, err := f.Allocate(Allocation{VecBytes: 64, Frame: code.RBX, Slots: 64}); err == nil {
				_, _ = f.Assemble(AVX512)
			}
			_ = text(&i)
		}
	}
	require.Greater(t, good, 500, "the test reaches the encoder")
}

func BenchmarkAssemble(b *testing.B) {
	f := program(rand.New(rand.NewPCG(5, 5)), 3000, 24, 64)
	l := append([]code.Inst(nil), f.Insts()...)
	for k := range l {
		if l[k].Op == code.VBlendVPS {
			l[k].Op, l[k].C = code.VMinPS, 0
		}
	}
	for b.Loop() {
		f.SetInsts(append([]code.Inst(nil), l...))
		_, err := f.Allocate(Allocation{VecBytes: 64, Frame: code.RBX, Slots: 64})
		require.NoError(b, err)
		_, err = f.Assemble(AVX512)
		require.NoError(b, err)
	}
}
