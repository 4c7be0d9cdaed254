// Package amd64 is the processor: how its instructions are encoded, which registers it has, what it can do. It knows
// nothing of kernels.
package amd64

import (
	"sync"

	"github.com/mlxlua/mlxlua/metal/jit/code"
)

// programs keeps the memory of Programs for the next one.
var programs = sync.Pool{New: func() any { return new(Program) }}

// targets are those of the levels.
var targets = [...]code.Target{
	AVX2:       {Name: AVX2.String(), VecBytes: 32, Registers: 13, Finish: finish(AVX2)},
	AVX512:     {Name: AVX512.String(), VecBytes: 64, Registers: 29, Finish: finish(AVX512)},
	AVX512BF16: {Name: AVX512BF16.String(), VecBytes: 64, Registers: 29, PairDots: true, Finish: finish(AVX512BF16)},
}

// Target returns the processors of a level, which is not NoLevel.
func Target(l Level) *code.Target { return &targets[l] }

// finish returns code.Target.Finish for a level.
func finish(level Level) func(*code.Func, code.Placing) (code.Code, int, error) {
	return func(f *code.Func, o code.Placing) (c code.Code, end int, err error) {
		p := programs.Get().(*Program)
		p.Func = f
		defer func() {
			p.Func = nil
			programs.Put(p)
		}()
		a := Allocation{VecBytes: 32, Frame: o.Frame, Slots: o.Slots, Coarse: o.Coarse}
		if level >= AVX512 {
			a.VecBytes = 64
			hoist(f)
		}
		code.Tidy(f, a.VecBytes)
		if end, err = p.Allocate(a); err != nil {
			return c, 0, err
		}
		c, err = p.Assemble(level)
		return c, end, err
	}
}
