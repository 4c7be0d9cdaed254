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
			w.line("  const ", o.Type, " ", w.value(k), " = a", strconv.Itoa(k), ";")
		}
	}
	w.line("  const uint first = (group * ", strconv.Itoa(GroupThreads/32), " + sg) * ", run, ";")
	w.line("  const uint count = min(n - first, ", run, "u);")
	w.rounds(p, "uint", "first + lane", "lane", "count", func(indent string) {
		for k, o := range p.Operands {
			if o.Class != Scalar {
				w.line(indent, "const ", o.Type, " ", w.value(k), " = a", strconv.Itoa(k), "[x];")
			}
		}
		w.steps(p, indent)
		for k, v := range p.Outputs {
			w.line(indent, "o", strconv.Itoa(k), "[x] = ", w.value(v), ";")
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
	if len(p.Steps)*max(p.Fold.Size, 1) > fewSteps {
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
	g := general{printer: printer{wide: wide}, p: p, width: "2 + nd"}
	w := &g.printer
	w.header(p, "")
	w.line("[[kernel]] void ", GeneralEntry, "(")
	w.operands(p)
	w.param("constant " + w.index() + "* p")
	w.WriteString(positions)
	for _, o := range p.Operands {
		g.classes = append(g.classes, o.Class)
	}
	g.classes = append(g.classes, p.Out...)
	for k, o := range p.Operands {
		if o.Class == Scalar {
			w.line("  const ", o.Type, " ", w.value(k), " = a", strconv.Itoa(k), ";")
		}
	}
	it := w.index()
	w.line("  const ", it, " run = ", it, "(group) * ", strconv.Itoa(GroupThreads/32), " + ", it, "(sg);")
	w.line("  ", it, " row = run / p[1];")
	w.line("  const ", it, " first = (run - row * p[1]) * ", strconv.Itoa(RunLength), ";")
	w.line("  const ", it, " count = min(p[0] - first, ", it, "(", strconv.Itoa(RunLength), "));")
	if !p.Rows {
		g.lanes("2", "")
		w.line("}")
		return w.String()
	}
	g.width = "3 + nd"
	w.line("  const ", it, " next = row / p[4];")
	w.line("  const ", it, " top = (row - next * p[4]) * p[3];")
	w.line("  row = next;")
	g.lanes("5", "min(p[2] - top, p[3])")
	w.line("}")
	return w.String()
}

// general prints general kernels.
type general struct {
	printer
	p       *Expression
	classes []Class // of operands, then of outputs
	width   string  // how many numbers there are of each array
}

// lanes prints what comes after the run's place: the number of outer dimensions is at nd, and there are so many
// rows, if SIMD-groups take several.
func (g *general) lanes(nd, rows string) {
	w, it := &g.printer, g.index()
	sizes := nd + " + 1"
	w.line("  const ", it, " nd = p[", nd, "];")
	w.line("  constant ", it, "* q = p + ", sizes, " + nd;")
	w.blocks(g.classes, "row", "p["+sizes+" + d]", "nd", g.width)
	for k, c := range g.classes {
		if c == Strided {
			w.line("  const ", it, " s", strconv.Itoa(k), " = ", block(k, g.classes, g.width), "[1];")
		}
	}
	if rows == "" {
		g.row()
		return
	}
	for k, c := range g.classes {
		if c != Scalar {
			n := strconv.Itoa(k)
			w.line("  const ", it, " t", n, " = ", block(k, g.classes, g.width), "[2 + nd];")
			w.line("  i", n, " += top * t", n, ";")
		}
	}
	w.line("  for (", it, " more = ", rows, "; more > 0; --more) {")
	g.row()
	for k, c := range g.classes {
		if c != Scalar {
			n := strconv.Itoa(k)
			w.line("  i", n, " += t", n, ";")
		}
	}
	w.line("  }")
}

// row prints the loop of the lanes over one row.
func (g *general) row() {
	w, p, it := &g.printer, g.p, g.index()
	same := func(k int) bool { // for all lanes, and all of a fold
		return p.Operands[k].Class == Repeat && (p.Fold.Size == 0 || p.Fold.Strides[k] == 0)
	}
	load := func(indent string, k, at int) {
		o := p.Operands[k]
		w.line(indent, "const ", o.Type, " ", w.value(k), " = ", g.element("a", k, k, o.Class, at), ";")
	}
	for k := range p.Operands {
		if same(k) {
			load("  ", k, 0)
		}
	}
	w.rounds(p, it, "first + "+it+"(lane)", it+"(lane)", "count", func(indent string) {
		each := func(print func(at int)) {
			print(0)
			for at := 1; at < p.Fold.Size; at++ {
				w.suffix = "_" + strconv.Itoa(at)
				print(at)
			}
			w.suffix = ""
		}
		each(func(at int) {
			for k, o := range p.Operands {
				switch {
				case o.Class != Scalar && !same(k):
					load(indent, k, at)
				case at > 0:
					w.line(indent, "const ", o.Type, " ", w.value(k), " = v", strconv.Itoa(k), ";")
				}
			}
		})
		each(func(int) { w.steps(p, indent) })
		each(func(at int) {
			for k, v := range p.Outputs {
				w.line(indent, g.element("o", k, len(p.Operands)+k, p.Out[k], at), " = ", w.value(v), ";")
			}
		})
	})
}

// element is the element of array k at lane index x and place at of the fold; its variables have number v.
func (g *general) element(name string, k, v int, c Class, at int) string {
	plus := ""
	if at > 0 {
		if step := at * g.p.Fold.Strides[v]; step != 0 {
			plus = " + " + strconv.Itoa(step)
		}
	}
	return element(name, k, v, c, plus)
}

// element is the element of array k (name a or o) at lane index x, and plus what is added to its place; its
// variables have number v.
func element(name string, k, v int, c Class, plus string) string {
	i := strconv.Itoa(v)
	index := "i" + i
	s, small := c.stride()
	switch {
	case c == Unit:
		index += " + x"
	case small:
		index += " + x * " + strconv.Itoa(s)
	case c == Strided:
		index += " + x * s" + i
	}
	return name + strconv.Itoa(k) + "[" + index + plus + "]"
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
