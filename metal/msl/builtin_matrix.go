package msl

import (
	"github.com/mlxlua/mlxlua/metal/kir"
)

// A simdgroup_matrix holds 64 elements, two in each lane. Lane i holds row r and columns c and c+1 with
// r = (i/16)*4 + (i/2)%4 and c = ((i/8)%2)*4 + (i%2)*2: Metal's layout, which kernels rely on through
// thread_elements.

// matrixPlace returns this lane's row and first column, as I64.
func (g *gen) matrixPlace() (row, col operand) {
	l := g.em.convert(g.lane(32), kir.I64)
	bits := func(shift, mask int64) operand {
		return g.em.op(kir.And, kir.I64, g.em.op(kir.Shr, kir.I64, l, i64(shift)), i64(mask))
	}
	row = g.em.op(kir.Add, kir.I64, g.em.op(kir.Mul, kir.I64, bits(4, 1), i64(4)), bits(1, 3))
	half := g.em.op(kir.Mul, kir.I64, bits(3, 1), i64(4))
	col = g.em.op(kir.Add, kir.I64, half, g.em.op(kir.Mul, kir.I64, bits(0, 1), i64(2)))
	return row, col
}

// matrixLane returns the lane that holds row r and column c, both constant or not, as U32.
func (g *gen) matrixLane(r, c operand) operand {
	u := func(o operand) operand { return g.em.convert(o, kir.U32) }
	r, c = u(r), u(c)
	bit := func(o operand, shift, mask, mul uint32) operand {
		x := g.em.op(kir.And, kir.U32, g.em.op(kir.Shr, kir.U32, o, u32(shift)), u32(mask))
		return g.em.op(kir.Mul, kir.U32, x, u32(mul))
	}
	sum := g.em.op(kir.Add, kir.U32, bit(r, 2, 1, 16), bit(r, 0, 3, 2))
	sum = g.em.op(kir.Add, kir.U32, sum, bit(c, 2, 1, 8))
	return g.em.op(kir.Add, kir.U32, sum, bit(c, 1, 1, 1))
}

// threadElements is the method that gives a lane's two elements as a vector; init makes it, as it leads to all of gen.
var threadElements *builtin

// fillMatrix makes a matrix with x on its diagonal.
func (g *gen) fillMatrix(t *ctype, x value, at Pos) value {
	if x.q.T == t {
		return g.mem.load(x)
	}
	x = g.convertTo(x, t.elem, at, "the diagonal of a matrix")
	if x.bad() {
		return badValue
	}
	row, col := g.matrixPlace()
	r := value{k: vRight, q: qt(t)}
	for i := range int64(2) {
		on := g.em.op(kir.Eq, kir.Bool, row, g.em.op(kir.Add, kir.I64, col, i64(i)))
		r.comps = append(r.comps, g.em.op(kir.Select, t.elem.T.kt, on, x.comps[0], operand{ty: t.elem.T.kt}))
	}
	return r
}

// matrixArg reads a matrix argument.
func (g *gen) matrixArg(c *bcall, i int) (value, bool) {
	v := g.mem.rvalue(c.args[i])
	if v.bad() {
		return badValue, false
	}
	if v.q.T.kind != tSimdMat {
		g.mismatch(c)
		return badValue, false
	}
	return v, true
}

// matrixDest checks the matrix that a function writes.
func (g *gen) matrixDest(c *bcall) (value, bool) {
	d := c.args[0]
	if d.bad() {
		return badValue, false
	}
	if d.q.T.kind != tSimdMat || !g.mem.assignable(d, c.at) {
		if d.q.T.kind != tSimdMat {
			g.mismatch(c)
		}
		return badValue, false
	}
	return d, true
}

func matrixBuiltins() {
	threadElements = &builtin{name: "thread_elements", accept: anyArgs, run: func(g *gen, c *bcall) value {
		v := *c.fn.this
		t := v.q
		t.T = vecOf(v.q.T.elem.T, 2)
		return g.mem.part(v, t, 0, 0)
	}}
	addBuiltin("simdgroup_load", 2, 5, func(g *gen, c *bcall) value { return g.matrixMove(c, true) }).accept = anyArgs
	addBuiltin("simdgroup_store", 2, 5, func(g *gen, c *bcall) value { return g.matrixMove(c, false) }).accept = anyArgs
	addBuiltin("simdgroup_multiply", 3, 3, func(g *gen, c *bcall) value { return g.matrixMul(c, false) }).accept = anyArgs
	acc := func(g *gen, c *bcall) value { return g.matrixMul(c, true) }
	addBuiltin("simdgroup_multiply_accumulate", 4, 4, acc).accept = anyArgs
	addBuiltin("make_filled_simdgroup_matrix", 1, 1, func(g *gen, c *bcall) value {
		e := typeFloat
		if len(c.fn.targs) > 0 && c.fn.targs[0].q.T != nil {
			e = c.fn.targs[0].q.T
		} else if et, n := c.args[0].q.T.shape(); n == 1 && et.isFloat() {
			e = et
		}
		t := simdMats[e]
		if t == nil {
			return g.mismatch(c)
		}
		x := g.convertTo(c.args[0], qt(e), c.at, "an element")
		if x.bad() {
			return badValue
		}
		return value{k: vRight, q: qt(t), comps: []operand{x.comps[0], x.comps[0]}}
	}).accept = anyArgs
}

// matrixMove loads or stores a matrix: (matrix, pointer, elements_per_row = 8, origin = 0, transpose = false).
func (g *gen) matrixMove(c *bcall, load bool) value {
	var m value
	var ok bool
	if load {
		m, ok = g.matrixDest(c)
	} else {
		m, ok = g.matrixArg(c, 0)
	}
	p := g.mem.rvalue(c.args[1])
	if !ok || p.bad() {
		return badValue
	}
	e := m.q.T.elem.T
	if p.q.T.kind != tPtr || p.q.T.elem.T != e {
		g.c.errorf(TypeMismatch, c.at, "'%s' of a matrix of %s needs a pointer to %s, not %s", c.b.name, e, e, p.q.T)
		return badValue
	}
	if sp := p.q.T.elem.Space.normal(); sp == SpaceNone || !load && (p.q.T.elem.Const || sp == SpaceConstant) {
		g.c.errorf(AddressSpace, c.at, "'%s' cannot use a pointer of type %s", c.b.name, p.q.T)
		return badValue
	}
	stride := i64(8)
	var ox, oy operand
	ox, oy = i64(0), i64(0)
	trans := boolConst(false)
	num := func(i int) (operand, bool) {
		v := g.toArith(g.mem.rvalue(c.args[i]))
		if v.bad() || !v.q.T.intLike() {
			return operand{}, false
		}
		return g.em.convert(g.arith.promote(v).comps[0], kir.I64), true
	}
	if len(c.args) > 2 {
		if stride, ok = num(2); !ok {
			return g.mismatch(c)
		}
	}
	if len(c.args) > 3 {
		o := c.args[3]
		if o.k == vList {
			o = g.initList(o.list, qt(vecOf(typeUlong, 2)), c.at)
		}
		o = g.mem.rvalue(o)
		if o.bad() {
			return badValue
		}
		if et, n := o.q.T.shape(); n == 0 || n > 2 || et.isFloat() {
			return g.mismatch(c)
		}
		ox = g.em.convert(o.comps[0], kir.I64)
		oy = g.em.convert(o.comps[len(o.comps)-1], kir.I64)
	}
	if len(c.args) > 4 {
		trans = g.condition(c.args[4], c.at)
	}
	row, col := g.matrixPlace()
	vals := make([]operand, 2)
	for i := range int64(2) {
		cc := g.em.op(kir.Add, kir.I64, col, i64(i))
		r := g.em.op(kir.Select, kir.I64, trans, cc, row)
		k := g.em.op(kir.Select, kir.I64, trans, row, cc)
		r, k = g.em.op(kir.Add, kir.I64, r, oy), g.em.op(kir.Add, kir.I64, k, ox)
		idx := g.em.op(kir.Add, kir.I64, g.em.op(kir.Mul, kir.I64, r, stride), k)
		at := memAt(p.comps[0], g.em.op(kir.Mul, kir.I64, idx, i64(int64(e.size))), 0, qt(e))
		if load {
			vals[i] = g.mem.loadComps(at)[0]
		} else {
			g.mem.storeComps(at, m.comps[i:i+1])
		}
	}
	if load {
		g.mem.store(m, value{k: vRight, q: m.q.bare(), comps: vals})
	}
	return voidValue
}

// matrixMul computes d = a * b, or a * b + c: in float, products added in the order of the inner dimension.
func (g *gen) matrixMul(c *bcall, acc bool) value {
	d, ok := g.matrixDest(c)
	if !ok {
		return badValue
	}
	a, ok1 := g.matrixArg(c, 1)
	b, ok2 := g.matrixArg(c, 2)
	if !ok1 || !ok2 {
		return badValue
	}
	var z *value
	if acc {
		c3, ok := g.matrixArg(c, 3)
		if !ok {
			return badValue
		}
		z = &c3
	}
	g.mem.store(d, g.matrixSum(d.q.T, a, b, z))
	return voidValue
}

// matrixProduct is a * b, of the type of a.
func (g *gen) matrixProduct(a, b value) value {
	a, b = g.mem.rvalue(a), g.mem.rvalue(b)
	return g.matrixSum(a.q.T, a, b, nil)
}

// matrixSum computes a * b + z as a matrix of type t.
func (g *gen) matrixSum(t *ctype, a, b value, z *value) value {
	wide := kir.F32
	if t.elem.T.kt == kir.F64 {
		wide = kir.F64
	}
	sums := []operand{{ty: wide}, {ty: wide}}
	if z != nil {
		sums[0], sums[1] = g.em.convert(z.comps[0], wide), g.em.convert(z.comps[1], wide)
	}
	row, col := g.matrixPlace()
	get := func(m value, i int, lane operand) operand {
		x := g.em.emit(&kir.Instr{
			Op: kir.Shuffle, Type: m.comps[i].ty, Imm: 32, Args: []*kir.Instr{g.em.instr(m.comps[i]), g.em.instr(lane)},
		})
		return g.em.convert(x, wide)
	}
	for k := range int64(8) {
		// a[row][k] stands in element k%2 of its lane; b[k][col], b[k][col+1] are both elements of theirs
		av := get(a, int(k%2), g.matrixLane(row, i64(k)))
		bl := g.matrixLane(i64(k), col)
		for i := range 2 {
			sums[i] = g.em.op(kir.Fma, wide, av, get(b, i, bl), sums[i])
		}
	}
	e := t.elem.T.kt
	return value{k: vRight, q: qt(t), comps: []operand{g.em.convert(sums[0], e), g.em.convert(sums[1], e)}}
}
