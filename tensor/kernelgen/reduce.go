package kernelgen

import "fmt"

// ReduceLayout says how a reduction walks its elements: Kept and Reduced collapsed dimensions, with Lanes threads to an output.
type ReduceLayout struct {
	Kept, Reduced int
	// Lanes is 1 (each thread reduces an output by itself) or 32 (a SIMD-group does).
	Lanes int
	Long  bool
	// Partial stores accumulators instead of finished values; Resume loads accumulators instead of elements.
	Partial, Resume bool
}

// Reduce prints a reduction of the value of g's last node into outputs. Parameters, in order: each operand, the output, `constant
// uint* sizes` ({outputs in a chunk row, elements to an output in all, elements to a chunk}), `constant int* shape` (kept dimensions, then
// reduced ones), `constant long* strides` (of all array operands; Kept+Reduced each). Threads: x is the lane (Lanes > 1) or the
// output, y the output (Lanes > 1), z the chunk. A chunk's results lie behind those of the chunk before it.
// The elements of an output are combined in blocks of 8, the blocks in blocks of 8, then the rest one after another, then the lanes
// in a tree, so that rounding errors grow with the logarithm of their number.
func Reduce(g *Graph, r Reducer, out string, l ReduceLayout) string {
	var p printer
	var arrays []int
	for i, o := range g.Operands {
		if o.Scalar {
			p.param(fmt.Sprintf("constant %s& a%d", o.Type, i))
			continue
		}
		p.param(fmt.Sprintf("const device %s* a%d", o.Type, i))
		arrays = append(arrays, i)
	}
	stored := out
	if l.Partial {
		stored = r.Acc
	}
	p.param("device " + stored + "* result")
	p.param("constant uint* sizes")
	p.param("constant int* shape")
	p.param("constant long* strides")

	p.position(l, arrays)
	p.loop(g, r, l, arrays)
	p.finish(r, l, out)
	return p.text(r.Header, "uint3 where [[thread_position_in_grid]]")
}

// position computes which output and which elements the thread works on, and the operands' bases.
func (p *printer) position(l ReduceLayout, arrays []int) {
	index := indexType(l.Long)
	if l.Lanes > 1 {
		p.line("const uint lane = where.x;")
		p.line("const uint output = where.y;")
	} else {
		p.line("const uint lane = 0;")
		p.line("const uint output = where.x;")
	}
	p.line("const uint chunk = where.z;")
	p.line("const ulong first = ulong(chunk) * sizes[2];")
	p.line("const uint count = uint(min(ulong(sizes[2]), ulong(sizes[1]) - first));")
	rank := l.Kept + l.Reduced
	for _, i := range arrays {
		p.line("%s b%d = 0;", index, i)
	}
	if l.Kept > 0 {
		p.line("uint rest = output;")
	}
	for d := l.Kept - 1; d >= 0; d-- {
		coordinate := "rest"
		if d > 0 {
			p.line("const uint q%d = rest / uint(shape[%d]);", d, d)
			p.line("const uint c%d = rest - q%d * uint(shape[%d]);", d, d, d)
			coordinate = fmt.Sprintf("c%d", d)
		}
		for k, i := range arrays {
			p.line("b%d += %s(%s) * %s(strides[%d]);", i, index, coordinate, index, k*rank+d)
		}
		if d > 0 {
			p.line("rest = q%d;", d)
		}
	}
}

// loop prints the cascade: acc over elements, acc1 over blocks of 8, acc2 over blocks of 64.
func (p *printer) loop(g *Graph, r Reducer, l ReduceLayout, arrays []int) {
	p.line("%s acc = %s;", r.Acc, r.Init)
	p.line("%s acc1 = %s;", r.Acc, r.Init)
	p.line("%s acc2 = %s;", r.Acc, r.Init)
	p.line("uint done = 0;")
	p.line("for (uint j = lane; j < count; j += %d) {", l.Lanes)
	p.line("  const ulong element = first + j;")
	at := p.elementIndex(l, arrays)
	inner := printer{}
	names := inner.compute(g, at)
	p.body.WriteString(inner.body.String())
	value := names[len(names)-1]
	if !l.Resume {
		p.line("  const %s item = %s;", r.Acc, Substitute(r.Load, []string{value}, "element"))
		value = "item"
	}
	p.line("  acc = %s;", Substitute(r.Combine, []string{"acc", value}, ""))
	p.line("  ++done;")
	p.line("  if ((done & 7) == 0) {")
	p.line("    acc1 = %s; acc = %s;", Substitute(r.Combine, []string{"acc1", "acc"}, ""), r.Init)
	p.line("    if ((done & 63) == 0) { acc2 = %s; acc1 = %s; }",
		Substitute(r.Combine, []string{"acc2", "acc1"}, ""), r.Init)
	p.line("  }")
	p.line("}")
	p.line("acc = %s;", Substitute(r.Combine, []string{"acc1", "acc"}, ""))
	p.line("acc = %s;", Substitute(r.Combine, []string{"acc2", "acc"}, ""))
}

// elementIndex computes where an element lies in each array.
func (p *printer) elementIndex(l ReduceLayout, arrays []int) []string {
	index := indexType(l.Long)
	rank := l.Kept + l.Reduced
	highest := 0
	for _, i := range arrays {
		highest = max(highest, i)
	}
	at := make([]string, highest+1)
	if l.Reduced > 1 {
		p.line("  ulong left = element;")
	}
	for _, i := range arrays {
		at[i] = fmt.Sprintf("e%d", i)
		p.line("  %s e%d = b%d;", index, i, i)
	}
	for d := l.Reduced - 1; d >= 0; d-- {
		coordinate := "element"
		switch {
		case d > 0:
			p.line("  const ulong p%d = left / ulong(shape[%d]);", d, l.Kept+d)
			p.line("  const ulong k%d = left - p%d * ulong(shape[%d]);", d, d, l.Kept+d)
			coordinate = fmt.Sprintf("k%d", d)
		case l.Reduced > 1:
			coordinate = "left"
		}
		for k, i := range arrays {
			p.line("  e%d += %s(%s) * %s(strides[%d]);", i, index, coordinate, index, k*rank+l.Kept+d)
		}
		if d > 0 {
			p.line("  left = p%d;", d)
		}
	}
	return at
}

// finish combines the lanes and stores.
func (p *printer) finish(r Reducer, l ReduceLayout, out string) {
	value := "acc"
	if l.Lanes > 1 {
		p.line("threadgroup %s part[32];", r.Acc)
		p.line("part[lane] = acc;")
		p.line("threadgroup_barrier(mem_flags::mem_threadgroup);")
		p.line("for (uint step = 16; step > 0; step >>= 1) {")
		p.line("  if (lane < step) {")
		p.line("    const %s a = part[lane];", r.Acc)
		p.line("    const %s b = part[lane + step];", r.Acc)
		p.line("    part[lane] = %s;", Substitute(r.Combine, []string{"a", "b"}, ""))
		p.line("  }")
		p.line("  threadgroup_barrier(mem_flags::mem_threadgroup);")
		p.line("}")
		p.line("if (lane != 0) return;")
		p.line("const %s total = part[0];", r.Acc)
		value = "total"
	}
	if !l.Partial {
		value = out + "(" + Substitute(r.Finish, []string{value}, "") + ")"
	}
	p.line("result[ulong(chunk) * sizes[0] + output] = %s;", value)
}
