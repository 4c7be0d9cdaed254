package msl

import (
	"github.com/mlxlua/mlxlua/metal/kir"
)

// reflectParams finds out which parameters a kernel reads, writes and updates atomically: it follows every pointer
// to the parameters it may come from. A pointer whose origin is lost counts for all parameters of its address
// space.
func reflectParams(k *kir.Kernel) {
	if len(k.Params) == 0 {
		return
	}
	r := &reflector{k: k, of: make([]origins, k.NumInstrs), vars: make([]origins, len(k.Vars))}
	for changed := true; changed; {
		changed = false
		k.Body.Walk(func(in *kir.Instr) {
			if in.Op == kir.VarSet && in.Args[0].Type.IsPtr() {
				o := r.vars[in.Imm] | r.origin(in.Args[0])
				changed = changed || o != r.vars[in.Imm]
				r.vars[in.Imm] = o
			}
		})
		if changed {
			clear(r.of)
		}
	}
	k.Body.Walk(func(in *kir.Instr) {
		switch in.Op {
		case kir.Load:
			r.mark(in.Args[0], func(p *kir.Param) { p.Read = true })
		case kir.Store:
			r.mark(in.Args[0], func(p *kir.Param) { p.Write = true })
		case kir.AtomicLoad:
			r.mark(in.Args[0], func(p *kir.Param) { p.Read, p.Atomic = true, true })
		case kir.AtomicStore:
			r.mark(in.Args[0], func(p *kir.Param) { p.Write, p.Atomic = true, true })
		case kir.AtomicRMW, kir.AtomicCAS:
			r.mark(in.Args[0], func(p *kir.Param) { p.Read, p.Write, p.Atomic = true, true, true })
		}
	})
}

// origins is a set of parameters, as bits; bit 63 means that the origin is not known.
type origins uint64

const unknownOrigin origins = 1 << 63

type reflector struct {
	k    *kir.Kernel
	of   []origins
	vars []origins
}

const doneOrigin origins = 1 << 62

func (r *reflector) origin(in *kir.Instr) origins {
	if o := r.of[in.ID]; o != 0 {
		return o &^ doneOrigin
	}
	var o origins
	switch in.Op {
	case kir.ParamAddr:
		if in.Imm < 60 {
			o = 1 << in.Imm
		} else {
			o = unknownOrigin
		}
	case kir.PtrAdd:
		o = r.origin(in.Args[0])
	case kir.Select:
		o = r.origin(in.Args[1]) | r.origin(in.Args[2])
	case kir.VarGet:
		o = r.vars[in.Imm]
	case kir.RegionAddr, kir.Const:
	default:
		o = unknownOrigin
	}
	r.of[in.ID] = o | doneOrigin
	return o
}

func (r *reflector) mark(ptr *kir.Instr, f func(p *kir.Param)) {
	o := r.origin(ptr)
	space, _ := ptr.Type.Space()
	for i := range r.k.Params {
		p := &r.k.Params[i]
		if i < 60 && o>>i&1 != 0 || o&unknownOrigin != 0 && p.Space == space {
			f(p)
		}
	}
}
