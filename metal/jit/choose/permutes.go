package choose

import (
	"github.com/mlxlua/mlxlua/metal/jit/code"
	"github.com/mlxlua/mlxlua/metal/kir"
)

// lanePermutes moves lanes between places of registers.
type lanePermutes struct{ v vector }

// quadShuffle moves lanes within quads; the constant is that of VPSHUFD or VPERMQ.
func (x lanePermutes) quadShuffle(t kir.Type, r code.R, order int64) code.R {
	return x.v.op1Imm(by(wide(t), code.VPShufD, code.VPermQ), r, order)
}

// reduceQuads applies an operation to the four lanes of each quad; all of them get the result.
func (x lanePermutes) reduceQuads(t kir.Type, r code.R, apply func(x vector, a, b code.R) code.R) code.R {
	r = apply(x.v, r, x.quadShuffle(t, r, 0xee))
	r = apply(x.v, r, x.quadShuffle(t, r, 0x55))
	return x.quadShuffle(t, r, 0)
}

// unzip takes 64-bit lanes apart.
func (x lanePermutes) unzip(a, b code.R) (lo, hi code.R) {
	if x.v.avx512() {
		return x.v.evens(a, b, 0), x.v.evens(a, b, 1)
	}
	return x.v.evenDwords(a, b), x.v.op1Imm(code.VPermQ, x.v.op2Imm(code.VShufPS, a, b, 0xdd), 0xd8)
}

// zip makes 64-bit lanes of their halves.
func (x lanePermutes) zip(lo, hi code.R) (a, b code.R) {
	if x.v.avx512() {
		half := func(first int) code.R {
			d := x.v.reg(code.Vec)
			x.v.emit(code.Inst{Op: code.VMovUPS, W: 64, Dst: d,
				Mem: x.v.constLanes(func(l int) uint64 { return uint64(first + l/2 + l%2*16) })})
			x.v.emit(code.Inst{Op: code.VPermI2D, W: 64, Dst: d, A: lo, B: hi})
			return d
		}
		return half(0), half(8)
	}
	lo, hi = x.v.op1Imm(code.VPermQ, lo, 0xd8), x.v.op1Imm(code.VPermQ, hi, 0xd8)
	return x.v.op2(code.VPUnpckLDQ, lo, hi), x.v.op2(code.VPUnpckHDQ, lo, hi)
}

// gatherLanes gives each 32-bit lane the value of lane idx, modulo 32, of the registers of all parts.
func (x lanePermutes) gatherLanes(r, idx []code.R) []code.R {
	d := make([]code.R, len(r))
	for p := range d {
		if x.v.avx512() {
			d[p] = x.v.move(idx[p])
			x.v.emit(code.Inst{Op: code.VPermI2D, W: x.v.w, Dst: d[p], A: r[0], B: r[1]})
			continue
		}
		var q [4]code.R
		for n := range q {
			q[n] = x.v.op2(code.VPermD, idx[p], r[n])
		}
		bit3, bit4 := x.v.shift(code.VPSllD, idx[p], 28), x.v.shift(code.VPSllD, idx[p], 27) // at the sign
		if !x.v.e.target.SignBlends {
			bit3, bit4 = x.v.shift(code.VPSraD, bit3, 31), x.v.shift(code.VPSraD, bit4, 31)
		}
		d[p] = x.v.blend(x.v.blend(q[0], q[1], bit3, false), x.v.blend(q[2], q[3], bit3, false), bit4, false)
	}
	return d
}
