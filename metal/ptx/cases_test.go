package ptx_test

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/mlxlua/mlxlua/metal/kerneltest"
	"github.com/mlxlua/mlxlua/metal/kir"
	"github.com/mlxlua/mlxlua/metal/launch"
)

// testCase is a kernel with a launch.
type testCase struct {
	name   string
	k      *kir.Kernel
	launch launch.Launch
}

// threads is how many threads the kernels of the table have: whole and cut SIMD-groups.
const threads = 250

// The sections of the input, of three operands each: integers, F32, 16-bit floats. All are words of 64 bits.
const (
	integers = iota
	singles
	halves
	sections
)

// arithmetic lists the types that operations are tried on.
var arithmetic = []kir.Type{kir.Bool, kir.I8, kir.U8, kir.I16, kir.U16, kir.I32, kir.U32, kir.I64, kir.U64, kir.F16,
	kir.BF16, kir.F32}

// input makes the operands.
func input() []byte {
	r := rand.New(rand.NewPCG(1, 2))
	edges := []uint64{0, 1, 2, 7, 31, 32, 63, 64, 127, 128, 255, 32767, 32768, 65535, 1<<31 - 1, 1 << 31, 1<<32 - 1,
		1<<63 - 1, 1 << 63, ^uint64(0), ^uint64(1)}
	floats := []float32{0, float32(math.Copysign(0, -1)), 1, -1, 0.5, 1.5, 2.5, -2.5, 127.5, 3e38, -3e38, 1e-40, -1e-45,
		65504, 65520, 1e-7, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()), 2147483648, -2147483648,
		4294967296, 9.3e18, 1.9e19, 16777217, 0.1, 255.5, -128.7, 0x1p-126, 0x1p-149}
	var b []byte
	for s := range sections {
		for range 3 * threads {
			var v uint64
			switch {
			case s == integers && r.IntN(2) == 0:
				v = edges[r.IntN(len(edges))]
			case s == singles && r.IntN(2) == 0:
				v = uint64(math.Float32bits(floats[r.IntN(len(floats))]))
			case s == singles && r.IntN(2) == 0:
				v = uint64(math.Float32bits(float32(r.NormFloat64() * 10)))
			default:
				v = r.Uint64()
			}
			for i := range 8 {
				b = append(b, byte(v>>(8*i)))
			}
		}
	}
	return b
}

// builder makes a kernel of one input and one output, in words.
type builder struct {
	*kerneltest.Builder
	in, out, gid *kir.Instr
	stored       int // words of output for each thread
}

func newBuilder(name string) *builder {
	b := &builder{Builder: kerneltest.NewBuilder(name)}
	b.in, b.out = b.Param("in", kir.Device, kir.U64), b.Param("out", kir.Device, kir.U64)
	b.K.Params[0].Write, b.K.Params[0].Atomic, b.K.Params[0].ReadOnly = false, false, true
	b.gid = b.Builtin(kir.ThreadPositionInGrid, 0)
	return b
}

// operand loads the thread's operand of a type.
func (b *builder) operand(n int, t kir.Type) *kir.Instr {
	s := integers
	switch {
	case t == kir.F32:
		s = singles
	case t.IsFloat():
		s = halves
	}
	at := b.Op(kir.Add, kir.U32, b.gid, b.Int(kir.U32, int64((s*3+n)*threads)))
	return b.fromWord(t, b.Load(kir.U64, b.in, at))
}

// unsignedOf is the integer type of the size of a type.
func unsignedOf(t kir.Type) kir.Type {
	switch t.Size() {
	case 1:
		return kir.U8
	case 2:
		return kir.U16
	case 4:
		return kir.U32
	}
	return kir.U64
}

func (b *builder) fromWord(t kir.Type, w *kir.Instr) *kir.Instr {
	switch {
	case t == kir.Bool:
		return b.Op(kir.Convert, t, b.Op(kir.And, kir.U64, w, b.Int(kir.U64, 1)))
	case t == kir.U64:
		return w
	case t.IsPtr() || t == kir.I64:
		return b.Op(kir.Bitcast, t, w)
	}
	return b.Op(kir.Bitcast, t, b.Op(kir.Convert, unsignedOf(t), w))
}

// keep stores a value as the thread's next word of output. NaNs lose sign and payload, which may be any.
func (b *builder) keep(v *kir.Instr) {
	t := v.Type
	if t.IsFloat() {
		nan := b.Op(kir.Ne, kir.Bool, v, v)
		v = b.Op(kir.Select, t, nan, b.Const(t, kir.FromFloat64(t, math.NaN())), v)
	}
	switch {
	case t == kir.Bool:
		v = b.Op(kir.Convert, kir.U64, v)
	case t.IsPtr() || t == kir.I64:
		v = b.Op(kir.Bitcast, kir.U64, v)
	case t != kir.U64:
		v = b.Op(kir.Convert, kir.U64, b.Op(kir.Bitcast, unsignedOf(t), v))
	}
	b.Store(b.out, b.Op(kir.Add, kir.U32, b.gid, b.Int(kir.U32, int64(b.stored*threads))), v)
	b.stored++
}

// done is the case of the kernel.
func (b *builder) done() testCase {
	k := b.Kernel()
	return testCase{name: k.Name, k: k, launch: launch.Launch{Grid: [3]int{threads, 1, 1}, Threadgroup: [3]int{100, 1, 1},
		Buffers: [][]byte{input(), make([]byte, 8*threads*b.stored)}}}
}

// ops returns all operations.
func ops() (all []kir.Op) {
	for op := kir.Invalid + 1; op.String() != "invalid op"; op++ {
		all = append(all, op)
	}
	return all
}

// pureCases has a kernel for each operation on numbers, with every type that kir takes.
func pureCases() (cases []testCase) {
	for _, op := range ops() {
		if !op.Pure() || op == kir.Builtin || op == kir.Const || op == kir.ParamAddr || op == kir.RegionAddr {
			continue
		}
		b := newBuilder("pure " + op.String())
		for _, t := range append(arithmetic, kir.PtrDevice) {
			for _, from := range append(arithmetic, kir.PtrDevice) {
				if op != kir.Convert && op != kir.Bitcast && op != kir.Select && !(op >= kir.Eq && op <= kir.Ge) &&
					op != kir.PtrAdd && op != kir.PtrDiff && from != t {
					continue
				}
				for n := 1; n <= 3; n++ {
					types := []kir.Type{from, from, from}[:n]
					switch {
					case op == kir.Select && n == 3 && from == t:
						types = []kir.Type{kir.Bool, t, t}
					case op == kir.PtrAdd && n == 2 && from == t:
						types = []kir.Type{t, kir.I64}
					}
					if takes(op, t, types) {
						b.try(op, t, types)
					}
				}
			}
		}
		cases = append(cases, b.done())
	}
	return cases
}

// takes reports whether kir has an operation on these types.
func takes(op kir.Op, t kir.Type, types []kir.Type) bool {
	b := newBuilder("k")
	b.try(op, t, types)
	return b.Kernel().Verify() == nil
}

func (b *builder) try(op kir.Op, t kir.Type, types []kir.Type) {
	var args []*kir.Instr
	for i, a := range types {
		args = append(args, b.operand(i, a))
	}
	b.keep(b.Op(op, t, args...))
	// And with constants, which texts hold as literals.
	for i, a := range types {
		if a == kir.Bool && op == kir.Select {
			continue
		}
		with := append([]*kir.Instr{}, args...)
		with[i] = b.Const(a, 5)
		if a.IsFloat() {
			with[i] = b.Const(a, kir.FromFloat64(a, -2.5))
		}
		if a != kir.Bool {
			b.keep(b.Op(op, t, with...))
		}
	}
}

// groupCases has a kernel for each operation between lanes: with all lanes, with some, and in loops that lanes leave.
func groupCases() (cases []testCase) {
	modes := []kir.Mode{kir.ModeNone, kir.ModeAdd, kir.ModeMul, kir.ModeMin, kir.ModeMax, kir.ModeAnd, kir.ModeOr,
		kir.ModeXor}
	for _, op := range []kir.Op{kir.Reduce, kir.ScanInclusive, kir.ScanExclusive, kir.Shuffle, kir.Ballot,
		kir.BroadcastFirst} {
		for _, t := range append(arithmetic, kir.PtrDevice) {
			for _, m := range modes {
				for _, size := range []uint64{4, kir.Lanes} {
					if laneTakes(op, m, t, size) {
						b := newBuilder(fmt.Sprintf("group %s %s %s %d", op, m, t, size))
						b.lanes(op, m, t, size)
						cases = append(cases, b.done())
					}
				}
			}
		}
	}
	return cases
}

// matrixCases multiplies matrices of all lanes and of some, both elements and one.
func matrixCases() (cases []testCase) {
	for _, mode := range []kir.Mode{kir.ModeExact, kir.ModeFree} {
		b := newBuilder(fmt.Sprintf("group matmul %s", mode))
		args := []*kir.Instr{b.operand(0, kir.F32), b.operand(1, kir.F32), b.operand(2, kir.F32), b.operand(1, kir.F32)}
		element := func(i uint64, c *kir.Instr) *kir.Instr {
			return b.Append(&kir.Instr{Op: kir.MatMulAcc, Type: kir.F32, Mode: mode, Imm: i, Args: append(args[:4:4], c)})
		}
		x, y := element(0, args[2]), element(1, args[0])
		b.keep(x)
		b.keep(y)
		some := b.Var("", kir.F32)
		b.If(b.Op(kir.Lt, kir.Bool, args[0], args[1]), func() { b.Set(some, element(1, x)) }, nil)
		b.keep(b.Get(some))
		cases = append(cases, b.done())
	}
	return cases
}

func (b *builder) lane(op kir.Op, m kir.Mode, t kir.Type, size uint64, v *kir.Instr) *kir.Instr {
	in := &kir.Instr{Op: op, Mode: m, Type: t, Imm: size, Args: []*kir.Instr{v}}
	switch op {
	case kir.Shuffle:
		in.Args = append(in.Args, b.operand(2, kir.U32))
	case kir.Ballot:
		in.Type = kir.U64
	}
	return b.Append(in)
}

func laneTakes(op kir.Op, m kir.Mode, t kir.Type, size uint64) bool {
	none := op == kir.Shuffle || op == kir.Ballot || op == kir.BroadcastFirst
	if none != (m == kir.ModeNone) {
		return false
	}
	b := newBuilder("k")
	b.lane(op, m, t, size, b.operand(0, t))
	return b.Kernel().Verify() == nil
}

// lanes tries an operation under several masks.
func (b *builder) lanes(op kir.Op, m kir.Mode, t kir.Type, size uint64) {
	v := b.operand(0, t)
	result := b.Var("", b.resultType(op, t))
	set := func() { b.Set(result, b.lane(op, m, t, size, v)) }
	set()
	b.keep(b.Get(result))
	odd := b.operand(1, kir.Bool)
	b.If(odd, set, nil)
	b.keep(b.Get(result))
	third := b.Op(kir.Lt, kir.Bool, b.operand(2, kir.U8), b.Int(kir.U8, 100))
	b.If(odd, func() { b.If(third, set, set) }, func() { set() })
	b.keep(b.Get(result))
	// Lanes leave a loop in different rounds, and skip the rest of others.
	i := b.Var("", kir.U32)
	b.Set(i, b.Int(kir.U32, 0))
	b.Block(func(outer *kir.Instr) {
		b.Loop(func(loop *kir.Instr) {
			n := b.Get(i)
			b.Set(i, b.Op(kir.Add, kir.U32, n, b.Int(kir.U32, 1)))
			bit := b.Op(kir.Shr, kir.U32, b.operand(2, kir.U32), n)
			b.If(b.Op(kir.Convert, kir.Bool, b.Op(kir.And, kir.U32, bit, b.Int(kir.U32, 1))), func() {
				b.If(b.Op(kir.Gt, kir.Bool, n, b.Int(kir.U32, 2)), func() { b.Break(outer) }, nil)
				b.Continue(loop)
			}, nil)
			set()
			b.If(b.Op(kir.Gt, kir.Bool, n, b.Int(kir.U32, 5)), func() { b.Break(loop) }, nil)
		})
		set()
	})
	b.keep(b.Get(result))
	set()
	b.keep(b.Get(result))
}

func (b *builder) resultType(op kir.Op, t kir.Type) kir.Type {
	if op == kir.Ballot {
		return kir.U64
	}
	return t
}

// endingCases have lanes that end, and threads of one group that wait for those that have not.
func endingCases() (cases []testCase) {
	b := newBuilder("ending")
	tg := b.Region("shared", kir.Threadgroup, kir.U64, 128)
	local := b.Builtin(kir.ThreadIndexInThreadgroup, 0)
	v := b.operand(0, kir.U64)
	sum := b.lane(kir.Reduce, kir.ModeAdd, kir.U64, kir.Lanes, v)
	b.keep(sum)
	b.If(b.operand(1, kir.Bool), func() {
		b.If(b.operand(2, kir.Bool), func() { b.Op(kir.Return, kir.Void) }, nil)
		b.keep(b.lane(kir.Reduce, kir.ModeXor, kir.U64, kir.Lanes, v))
	}, nil)
	b.keep(b.lane(kir.Ballot, kir.ModeNone, kir.U64, kir.Lanes, b.Const(kir.Bool, 1)))
	b.Store(tg, local, v)
	b.Append(&kir.Instr{Op: kir.SimdBarrier, Mode: kir.MemThreadgroup})
	b.Barrier(kir.MemThreadgroup)
	other := b.Op(kir.Xor, kir.U32, local, b.Int(kir.U32, 63))
	b.keep(b.Load(kir.U64, tg, other))
	b.Append(&kir.Instr{Op: kir.Fence, Mode: kir.MemDevice})
	b.Append(&kir.Instr{Op: kir.Fence, Mode: kir.MemThreadgroup})
	return append(cases, b.done())
}
