package kernelgen

import "strconv"

// The geometry of element-wise kernels. A SIMD-group computes a run of RunLength elements, 32 at a time; a
// threadgroup has GroupThreads threads. So the division of an index happens once for a run, on scalars, and
// neighbouring threads take neighbouring elements.
const (
	RunLength    = 256
	GroupThreads = 256
)

// LinearEntry and GeneralEntry are the names of the kernels that Linear and General print.
const (
	LinearEntry  = "linear"
	GeneralEntry = "general"
)

// PrintLinear prints a kernel whose operands are Linear or Scalar. Its parameters are the operands, the outputs and
// the number n of elements (uint). Launch 32 threads for each run of RunLength elements.
func PrintLinear(p *Expression) string {
	var w printer
	w.header(p, "")
	w.line("[[kernel]] void ", LinearEntry, "(")
	w.operands(p)
	w.param("constant uint& n")
	w.WriteString(positions)
	run := strconv.Itoa(RunLength)
	for k, o := range p.Operands {
		if o.Class == Scalar {
			w.line("  const ", o.Type, " ", value(k), " = a", strconv.Itoa(k), ";")
		}
	}
	w.line("  const uint first = (group * ", strconv.Itoa(GroupThreads/32), " + sg) * ", run, ";")
	w.line("  const uint count = min(n - first, ", run, "u);")
	w.rounds(p, "uint", "first + lane", "lane", "count", func(indent string) {
		for k, o := range p.Operands {
			if o.Class != Scalar {
				w.line(indent, "const ", o.Type, " ", value(k), " = a", strconv.Itoa(k), "[x];")
			}
		}
		w.steps(p, indent)
		for k, v := range p.Outputs {
			w.line(indent, "o", strconv.Itoa(k), "[x] = ", value(v), ";")
		}
	})
	w.line("}")
	return w.String()
}

// fewSteps is how many steps are worth printing twice.
const fewSteps = 24

// rounds prints the loop of a SIMD-group over count elements, x being a lane's. All lanes take part in whole rounds,
// so these come first and without a condition for each lane; the rest is printed again.
func (w *printer) rounds(p *Expression, it, first, lane, count string, body func(indent string)) {
	w.line("  ", it, " x = ", first, ";")
	if len(p.Steps) > fewSteps {
		w.line("  for (const ", it, " end = x - ", lane, " + ", count, "; x < end; x += 32) {")
		body("    ")
		w.line("  }")
		return
	}
	w.line("  for (", it, " left = ", count, " / 32; left > 0; --left) {")
	body("    ")
	w.line("    x += 32;\n  }")
	w.line("  if (", lane, " < ", count, " % 32) {")
	body("    ")
	w.line("  }")
}

// PrintGeneral prints a kernel over operands and outputs of any strides. Its parameters are the operands, the
// outputs, and the numbers that Layout.General gives, as int, or as long if wide. Launch 32 threads for each run.
func PrintGeneral(p *Expression, wide bool) string {
	w := printer{wide: wide}
	w.header(p, "")
	w.line("[[kernel]] void ", GeneralEntry, "(")
	w.operands(p)
	w.param("constant " + w.index() + "* p")
	w.WriteString(positions)
	it := w.index()
	w.line("  const ", it, " run = ", it, "(group) * ", strconv.Itoa(GroupThreads/32), " + ", it, "(sg);")
	w.line("  ", it, " row = run / p[1];")
	w.line("  const ", it, " first = (run - row * p[1]) * ", strconv.Itoa(RunLength), ";")
	w.line("  const ", it, " count = min(p[0] - first, ", it, "(", strconv.Itoa(RunLength), "));")
	w.line("  const ", it, " nd = p[2];")
	w.line("  constant ", it, "* q = p + 3 + nd;")
	classes := make([]Class, 0, len(p.Operands)+len(p.Outputs))
	for _, o := range p.Operands {
		classes = append(classes, o.Class)
	}
	classes = append(classes, p.Out...)
	w.blocks(classes, "row", "p[3 + d]", "nd", "2 + nd")
	for k, c := range classes {
		if c == Strided {
			w.line("  const ", it, " s", strconv.Itoa(k), " = ", block(k, classes, "2 + nd"), "[1];")
		}
	}
	for k, o := range p.Operands {
		if o.Class == Scalar || o.Class == Repeat {
			w.line("  const ", o.Type, " ", value(k), " = ", element("a", k, k, o.Class, "x"), ";")
		}
	}
	w.rounds(p, it, "first + "+it+"(lane)", it+"(lane)", "count", func(indent string) {
		for k, o := range p.Operands {
			if o.Class != Scalar && o.Class != Repeat {
				w.line(indent, "const ", o.Type, " ", value(k), " = ", element("a", k, k, o.Class, "x"), ";")
			}
		}
		w.steps(p, indent)
		for k, v := range p.Outputs {
			w.line(indent, element("o", k, len(p.Operands)+k, p.Out[k], "x"), " = ", value(v), ";")
		}
	})
	w.line("}")
	return w.String()
}

// element is the element of array k (name a or o) at lane index x; its block variables have number v.
func element(name string, k, v int, c Class, x string) string {
	n, i := name+strconv.Itoa(k), strconv.Itoa(v)
	switch c {
	case Scalar:
		return n
	case Repeat:
		return n + "[i" + i + "]"
	case Unit:
		return n + "[i" + i + " + " + x + "]"
	}
	return n + "[i" + i + " + " + x + " * s" + i + "]"
}

// block is the address of the numbers of array k.
func block(k int, classes []Class, width string) string {
	n := 0
	for _, c := range classes[:k] {
		if c != Scalar {
			n++
		}
	}
	if n == 0 {
		return "q"
	}
	return "(q + " + strconv.Itoa(n) + " * (" + width + "))"
}

// blocks prints the division of an index into coordinates of nd dimensions and declares i0, i1, ...: each array's
// element there. The outermost coordinate is what is left, so one dimension needs no division.
func (w *printer) blocks(classes []Class, index, size, nd, width string) {
	it := w.index()
	var used []int
	for k, c := range classes {
		if c != Scalar {
			used = append(used, k)
			w.line("  ", it, " i", strconv.Itoa(k), " = ", block(k, classes, width), "[0];")
		}
	}
	if len(used) == 0 {
		return
	}
	w.line("  for (", it, " d = ", nd, " - 1; d > 0; --d) {")
	w.line("    const ", it, " next = ", index, " / ", size, ";")
	w.line("    const ", it, " c = ", index, " - next * ", size, ";")
	w.line("    ", index, " = next;")
	for _, k := range used {
		w.line("    i", strconv.Itoa(k), " += c * ", block(k, classes, width), "[2 + d];")
	}
	w.line("  }\n  if (", nd, " > 0) {")
	for _, k := range used {
		w.line("    i", strconv.Itoa(k), " += ", index, " * ", block(k, classes, width), "[2];")
	}
	w.line("  }")
}
