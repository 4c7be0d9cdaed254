package msl

import (
	"github.com/mlxlua/mlxlua/metal/kir"
)

// barrierFlags reads a mem_flags argument.
func (c *builtinCall) barrierFlags(v value, at Pos) (kir.Mode, bool) {
	v = c.mem.rvalue(v)
	if v.bad() {
		return 0, false
	}
	if v.q.T.kind != tEnum || v.q.T.enum.name != "mem_flags" || !v.comps[0].isConst() {
		c.c.errorf(TypeMismatch, at, "the flags of a barrier must be constant mem_flags, not %s", v.q.T)
		return 0, false
	}
	return kir.Mode(v.comps[0].bits) & (kir.MemDevice | kir.MemThreadgroup), true
}

func barrierBuiltins() {
	barrier := func(name string, op kir.Op, nmin, nmax int) {
		addBuiltin(name, nmin, nmax, func(c *builtinCall) value {
			flags := kir.MemNone
			if len(c.args) > 0 {
				var ok bool
				if flags, ok = c.barrierFlags(c.args[0], c.at); !ok {
					return badValue
				}
			}
			c.em.emit(&kir.Instr{Op: op, Mode: flags})
			return voidValue
		}).accept = anyArgs
	}
	barrier("threadgroup_barrier", kir.Barrier, 1, 2)
	barrier("simdgroup_barrier", kir.SimdBarrier, 1, 2)
	barrier("atomic_thread_fence", kir.Fence, 1, 3)
}
