package interp

import (
	"encoding/binary"
	"fmt"

	"github.com/mlxlua/mlxlua/metal/kir"
)

// oracle executes one thread at a time by walking the kernel: no masks, no registers, no flattening. It knows no
// convergent operations, no atomics and no threadgroup memory.
type oracle struct {
	k       *kir.Kernel
	buffers [][]byte
	tid     uint32
	vals    []uint64
	vars    []uint64
	regions [][]byte
	steps   int
}

type leave struct {
	op     kir.Op // Invalid: went to the end
	target *kir.Instr
}

func runOracle(k *kir.Kernel, threads int, buffers [][]byte) error {
	for t := range threads {
		o := &oracle{k: k, buffers: buffers, tid: uint32(t), vals: make([]uint64, k.NumInstrs),
			vars: make([]uint64, len(k.Vars))}
		for _, r := range k.Regions {
			o.regions = append(o.regions, make([]byte, r.Size))
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
	case kir.Builtin: // only thread_position_in_grid.x
		o.vals[in.ID] = uint64(o.tid)
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

func (o *oracle) access(in *kir.Instr, args []uint64) error {
	ob, off := kir.PtrObject(args[0])-1, kir.PtrOffset(args[0])
	mem := []byte(nil)
	if ob < len(o.buffers) {
		mem = o.buffers[ob]
	} else {
		mem = o.regions[ob-len(o.buffers)]
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
