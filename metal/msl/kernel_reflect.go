package msl

import (
	"github.com/mlxlua/mlxlua/metal/kir"
)

// reflectParams finds out which parameters a kernel reads, writes and updates atomically: it follows every pointer
// to the parameters it may come from. A pointer whose origin is lost counts for all parameters of its address
// space. A write of what is read-only is a fault and does not count: it returns those that can be nothing else.
func reflectParams(k *kir.Kernel) (wrong []forbidden) {
	if len(k.Params) == 0 {
		return nil
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
	write := func(p *kir.Param) { p.Write = p.Write || !p.ReadOnly }
	k.Body.Walk(func(in *kir.Instr) {
		if in.Op == kir.Store || in.Op.IsAtomic() && in.Op != kir.AtomicLoad {
			if i := r.onlyReadOnly(in.Args[0]); i >= 0 {
				wrong = append(wrong, forbidden{in, k.Params[i].Name})
			}
		}
		switch in.Op {
		case kir.Load:
			r.mark(in.Args[0], func(p *kir.Param) { p.Read = true })
		case kir.Store:
			r.mark(in.Args[0], write)
		case kir.AtomicLoad:
			r.mark(in.Args[0], func(p *kir.Param) { p.Read, p.Atomic = true, true })
		case kir.AtomicStore:
			r.mark(in.Args[0], func(p *kir.Param) { write(p); p.Atomic = true })
		case kir.AtomicRMW, kir.AtomicCAS:
			r.mark(in.Args[0], func(p *kir.Param) { write(p); p.Read, p.Atomic = true, true })
		}
	})
	return wrong
}

// forbidden is a write to a parameter that is read-only.
type forbidden struct {
	in    *kir.Instr
	param string
}

// checkReadOnly reports writes that can only reach what is read-only.
func (c *compiler) checkReadOnly(wrong []forbidden) {
	for _, w := range wrong {
		what := "write to"
		if w.in.Op.IsAtomic() {
			what = "atomic operation on"
		}
		c.errorf(WritesInput, c.places[w.in.Pos], "%s '%s', which is an input: kernels only read those, but for "+
			"mutable_inputs", what, w.param)
	}
}

// origins is a set of parameters, as bits; bit 63 means that the origin is not known, bit 61 that it is no parameter.
type origins uint64

const (
	unknownOrigin origins = 1 << 63
	otherOrigin   origins = 1 << 61
)

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
		o = otherOrigin
	default:
		o = unknownOrigin
	}
	r.of[in.ID] = o | doneOrigin
	return o
}

// onlyReadOnly returns a read-only parameter that a pointer comes from, if it can come from nothing else; else -1.
func (r *reflector) onlyReadOnly(ptr *kir.Instr) int {
	o, found := r.origin(ptr), -1
	if o&(unknownOrigin|otherOrigin) != 0 {
		return -1
	}
	for i := range min(len(r.k.Params), 60) {
		switch {
		case o>>i&1 == 0:
		case !r.k.Params[i].ReadOnly:
			return -1
		case found < 0:
			found = i
		}
	}
	return found
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
