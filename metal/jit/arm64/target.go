// Package arm64 is the processor: it makes bytes of the instructions of package code, for NEON. A vector of 32 bytes is
// two of its registers, and what amd64 does in one instruction may take several. It knows nothing of kernels.
package arm64

import (
	"sync"

	"github.com/mlxlua/mlxlua/metal/jit/code"
)

// vecBytes is the size of a vector: of two registers.
const vecBytes = 32

// Target is the processor.
var Target = &code.Target{Name: "NEON", VecBytes: vecBytes, Group: 16, Straight: 24, Registers: 12, Extras: true,
	Finish: finish}

var programs = sync.Pool{New: func() any { return new(program) }}

// finish implements code.Target.Finish.
func finish(f *code.Func, o code.Placing) (c code.Code, end int, err error) {
	p := programs.Get().(*program)
	defer func() {
		p.f, p.err = nil, nil
		programs.Put(p)
	}()
	code.Tidy(f, vecBytes)
	p.f, p.steady = f, o.Steady
	if p.insts, p.vecs, err = lower(f, p.insts); err != nil {
		return c, 0, err
	}
	p.number()
	p.tidy()
	p.hoist()
	if end, err = p.allocate(o); err != nil {
		return c, 0, err
	}
	c, err = p.assemble()
	return c, end, err
}
