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
var targets = [...]code.Target{AVX2: target(AVX2), AVX512: target(AVX512), AVX512BF16: target(AVX512BF16)}

// target makes the description of a level's processors.
func target(l Level) code.Target {
	t := code.Target{Name: l.String(), VecBytes: 32, Group: 8, Registers: 13, FromMemory: true, X87: true,
		MXCSR: true, SignBlends: true, PairDots: l >= AVX512BF16, Finish: finish(l)}
	if l >= AVX512 {
		t.VecBytes, t.Group, t.Registers = 64, 16, 29
		t.Straight = 160 // of two parts each, and what they need from the first to the last fits the registers
	}
	return t
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
