// Package arm64 is the processor: it makes bytes of the instructions of package code, for NEON. A vector of 32 bytes is
// two of its registers, and what amd64 does in one instruction may take several. It knows nothing of kernels.
package arm64

import (
	"sync"

	"github.com/mlxlua/mlxlua/metal/jit/code"
)

// vecBytes is the size of a vector: of two registers.
const vecBytes = 32

var programs = sync.Pool{New: func() any { return new(program) }}

// finish returns code.Target.Finish for a level.
func finish(level Level) func(*code.Func, code.Placing) (code.Code, int, error) {
	return func(f *code.Func, o code.Placing) (c code.Code, end int, err error) {
		p := programs.Get().(*program)
		defer func() {
			p.f, p.err = nil, nil
			programs.Put(p)
		}()
		asHalves(f, level)
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
}
