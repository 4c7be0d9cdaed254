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
	if v.q.T.kind != tEnum || v.q.T.en.name != "mem_flags" || !v.comps[0].isConst() {
		c.c.errorf(TypeMismatch, at, "the flags of a barrier must be constant mem_flags, not %s", v.q.T)
		return 0, false
	}
	return kir.Mode(v.comps[0].bits) & (kir.MemDevice | kir.MemThreadgroup), true
}

func otherBuiltins() {
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
	lift := func(name string, f func(c *builtinCall) value) {
		addBuiltin(name, 1, 1, f).accept = anyArgs
	}
	lift("as_type", func(c *builtinCall) value {
		if len(c.fn.targs) != 1 || c.fn.targs[0].q.T == nil {
			return c.mismatch()
		}
		return c.arith.asType(c.conv.toArith(c.mem.rvalue(c.args[0])), c.fn.targs[0].q.T, c.at)
	})
}
