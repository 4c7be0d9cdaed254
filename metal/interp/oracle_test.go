package interp

import (
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/internal/brief"
	"github.com/mlxlua/mlxlua/metal/kerneltest"
	"github.com/mlxlua/mlxlua/metal/kir"
	"github.com/mlxlua/mlxlua/metal/launch"
	"github.com/mlxlua/mlxlua/metal/msl"
)

var programs = flag.Int("programs", 200, "random programs to run")

// oracle executes one thread at a time by walking the kernel: no masks, no registers, no flattening. It knows no
// convergent operations, no atomics and no threadgroup memory.
type oracle struct {
	k       *kir.Kernel
	launch  launch.Launch
	thread  int // its number, threadgroup after threadgroup
	vals    []uint64
	vars    []uint64
	regions [][]byte
	steps   int
}

type leave struct {
	op     kir.Op // Invalid: went to the end
	target *kir.Instr
}

// runOracle launches a kernel in one dimension.
func runOracle(k *kir.Kernel, l launch.Launch) error {
	for t := range l.Grid[0] {
		o := &oracle{k: k, launch: l, thread: t, vals: make([]uint64, k.NumInstrs), vars: make([]uint64, len(k.Vars))}
		for _, r := range k.Regions {
			mem := make([]byte, r.Size)
			copy(mem, r.Data)
			o.regions = append(o.regions, mem)
		}
		if _, err := o.block(k.Body); err != nil {
			return fmt.Errorf("thread %d: %w", t, err)
		}
	}
	return nil
}

func (o *oracle) block(b *kir.Block) (leave, error) {
	for _, in := range b.Instrs {
		if o.steps++; o.steps > 1e6 {
			return leave{}, fmt.Errorf("too long")
		}
		l, err := o.instr(in)
		if err != nil || l.op != kir.Invalid {
			return l, err
		}
	}
	return leave{}, nil
}

func (o *oracle) instr(in *kir.Instr) (leave, error) {
	var args []uint64
	for _, a := range in.Args {
		args = append(args, o.vals[a.ID])
	}
	switch in.Op {
	case kir.Const:
		o.vals[in.ID] = in.Imm
	case kir.Builtin:
		o.vals[in.ID] = uint64(o.builtin(in.Mode, int(in.Imm)))
	case kir.VarGet:
		o.vals[in.ID] = o.vars[in.Imm]
	case kir.VarSet:
		o.vars[in.Imm] = args[0]
	case kir.ParamAddr:
		o.vals[in.ID] = kir.PtrParam(int(in.Imm))
	case kir.RegionAddr:
		o.vals[in.ID] = o.k.PtrRegion(int(in.Imm))
	case kir.PtrAdd:
		o.vals[in.ID] = kir.PtrMove(args[0], int64(args[1])+int64(in.Imm))
	case kir.Load, kir.Store:
		return leave{}, o.access(in, args)
	case kir.If:
		if args[0] != 0 {
			return o.block(in.Body)
		}
		if in.Else != nil {
			return o.block(in.Else)
		}
	case kir.BlockOp, kir.Loop:
		for {
			l, err := o.block(in.Body)
			switch {
			case err != nil || l.op == kir.Return || l.target != nil && l.target != in:
				return l, err
			case l.op == kir.Break || in.Op == kir.BlockOp:
				return leave{}, nil
			}
		}
	case kir.Break, kir.Continue, kir.Return:
		return leave{in.Op, in.Target}, nil
	default:
		v, ok := in.Eval(args...)
		if !ok {
			return leave{}, fmt.Errorf("no value for %s %s", in.Op, in.Type)
		}
		o.vals[in.ID] = v
	}
	return leave{}, nil
}

// builtin returns a position or size.
func (o *oracle) builtin(m kir.Mode, c int) int {
	asked, grid := o.launch.Threadgroup[0], o.launch.Grid[0]
	group, i := o.thread/asked, o.thread%asked
	size := min(asked, grid-group*asked)
	at := func(x int) int { return []int{x, 0, 0}[c] }
	of := func(n int) int { return []int{n, 1, 1}[c] }
	switch m {
	case kir.ThreadPositionInGrid:
		return at(o.thread)
	case kir.ThreadPositionInThreadgroup:
		return at(i)
	case kir.ThreadgroupPositionInGrid:
		return at(group)
	case kir.ThreadsPerThreadgroup:
		return of(size)
	case kir.ThreadsPerGrid:
		return of(grid)
	case kir.ThreadIndexInThreadgroup:
		return i
	case kir.ThreadIndexInSimdgroup:
		return i % 32
	case kir.SimdgroupIndexInThreadgroup:
		return i / 32
	case kir.SimdgroupsPerThreadgroup:
		return (size + 31) / 32
	case kir.QuadgroupIndexInThreadgroup:
		return i / 4
	}
	panic("the oracle does not know this position")
}

func (o *oracle) access(in *kir.Instr, args []uint64) error {
	ob, off := kir.PtrObject(args[0])-1, kir.PtrOffset(args[0])
	mem := []byte(nil)
	if n := len(o.launch.Buffers); ob < n {
		mem = o.launch.Buffers[ob]
	} else {
		mem = o.regions[ob-n]
	}
	t := in.Type
	if in.Op == kir.Store {
		t = in.Args[1].Type
	}
	n := int64(t.Size())
	if off < 0 || off+n > int64(len(mem)) {
		return fmt.Errorf("access at %d of %d", off, len(mem))
	}
	var buf [8]byte
	if in.Op == kir.Store {
		binary.LittleEndian.PutUint64(buf[:], args[1])
		copy(mem[off:off+n], buf[:n])
		return nil
	}
	copy(buf[:n], mem[off:off+n])
	v := binary.LittleEndian.Uint64(buf[:])
	if t == kir.Bool && v != 0 {
		v = 1
	}
	o.vals[in.ID] = v
	return nil
}

// compile compiles the program of a seed; nil if it is too large, because all its calls are written out.
func compile(t *testing.T, c *kerneltest.Case) *kir.Kernel {
	mod, err := msl.Compile(msl.Source{Name: "k", Text: c.Text}, msl.Options{Float64: true})
	var list msl.ErrorList
	if errors.As(err, &list) && list[0].Code == msl.TooLarge {
		return nil
	}
	require.NoError(t, err, "seed %d\n%s", c.Seed, c.Text)
	return mod.Kernels[0]
}

// TestRandomPrograms compares the SIMD-group executor with one thread at a time, on programs as they are and varied.
func TestRandomPrograms(t *testing.T) {
	t.Parallel()
	n, faults, equal := uint64(*programs), 0, 0
	if testing.Short() {
		n /= 4
	}
	if brief.Run() {
		n /= 4 // they run one after the other
	}
	for seed := range n {
		c := kerneltest.New(seed, kerneltest.Threads)
		c.Grid, c.Threadgroup = [3]int{77, 1, 1}, [3]int{40, 1, 1}
		k := compile(t, c)
		for varied := 0; varied < 3 && k != nil; varied++ {
			if varied > 0 {
				kerneltest.Vary(4*seed+uint64(varied), k)
			}
			l := launch.Launch{Grid: c.Grid, Threadgroup: c.Threadgroup}
			l.Buffers, l.Fixed = kerneltest.Bind(k, c.Buffers())
			wanted := runOracle(k, l)
			want := l.Buffers
			l.Buffers, _ = kerneltest.Bind(k, c.Buffers())
			p, err := Prepare(k, nil)
			require.NoError(t, err, "seed %d, %d\n%s", seed, varied, k)
			err = kerneltest.Run(p.NewRun, l, 1)
			if wanted != nil {
				require.Error(t, err, "seed %d, %d: want %v\n%s", seed, varied, wanted, k)
				require.NotZero(t, varied, "seed %d: %v\n%s", seed, wanted, c.Text)
				faults++
				continue
			}
			require.NoError(t, err, "seed %d, %d\n%s", seed, varied, k)
			for i := range want {
				for at := range want[i] {
					if want[i][at] != l.Buffers[i][at] {
						t.Fatalf("seed %d, %d: byte %d of %s is %#x, want %#x\n%s", seed, varied, at, k.Params[i].Name,
							l.Buffers[i][at], want[i][at], k)
					}
				}
			}
			equal++
		}
	}
	require.Less(t, 20*faults, equal, "most do not fault")
}
