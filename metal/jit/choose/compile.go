// Package choose makes machine code of optimised kernels: it selects the instructions of package code, on virtual
// registers, from what package lanes found out, and has a processor (code.Target) choose registers and write bytes. It
// knows no processor by name.
package choose

import (
	"errors"
	"sync"

	"github.com/mlxlua/mlxlua/metal/jit/arena"
	"github.com/mlxlua/mlxlua/metal/jit/code"
	"github.com/mlxlua/mlxlua/metal/jit/lanes"
	"github.com/mlxlua/mlxlua/metal/kir"
)

// Code is a kernel as machine code for one kind of launch.
type Code struct {
	Bytes []byte
	// Offsets in bytes: where threadgroups begin (arena.Count of them along x), where execution goes on after
	// arena.ExitFuel.
	Entry, Resume int
	Layout        *arena.Layout
	Info          *lanes.Info
	Kernel        *kir.Kernel // the optimised kernel: Instr.IDs of faults are its
}

// Options say what a kernel is compiled for.
type Options struct {
	Target      *code.Target
	Geometry    lanes.Geometry
	NonTemporal bool // launches write so much that they should do it past the cache
	// CoarseLives makes the register allocator take values to live longer than they do.
	CoarseLives bool
}

// funcs keeps the memory of instruction lists for the next compilation.
var funcs = sync.Pool{New: func() any { return code.NewFunc() }}

// Compile makes machine code of an optimised kernel (opt.Run). It fails with an *Unsupported if the kernel has
// none.
func Compile(k *kir.Kernel, o Options) (*Code, error) {
	f := funcs.Get().(*code.Func)
	defer func() {
		f.Reset()
		funcs.Put(f)
	}()
	geo, group := o.Geometry, LanesAtOnce(k, o.Target)
	if geo.Wide {
		group = kir.Lanes
	}
	info := lanes.Analyse(k, group, geo)
	if geo.Pair != 0 && info.InTurns() {
		return nil, &Unsupported{Kernel: k.Name, Op: kir.Loop, Why: "SIMD-groups that take turns run alone"}
	}
	lay := arena.NewLayout(k, info, group)
	e := newEmitter(f, o.Target, group, k.Name, lay.Scratch)
	places := newSelector(e, k, info, lay, geo, o.NonTemporal).entry.emit()
	if e.err != nil {
		return nil, e.err
	}
	c, end, err := o.Target.Finish(f, code.Placing{Frame: regFrame, Slots: lay.Spills, Coarse: o.CoarseLives,
		Steady: [2]int32{int32(lay.Objects), int32(lay.Save)}})
	switch {
	case errors.Is(err, code.ErrTooLong):
		return nil, &Unsupported{Kernel: k.Name, Op: kir.BlockOp, Why: err.Error()}
	case err != nil:
		return nil, err
	}
	lay.FrameBytes = arena.Align(end, 64)
	return &Code{Bytes: c.Bytes, Entry: c.Offset(places.start), Resume: c.Offset(places.resume), Layout: lay, Info: info,
		Kernel: k}, nil
}
