package kernelgen

import "strconv"

// shuffles are the accumulators that SIMD-groups can pass from lane to lane; others go through threadgroup memory.
var shuffles = map[string]bool{"float": true, "int": true, "uint": true, "int32_t": true, "uint32_t": true}

// PrintReduce prints the kernel of a pass. Its parameters are the operands, the output (accumulators, if Pass.Parts
// is more than 1, or Pass.Raw) and the numbers that ReduceLayout.Numbers gives, as int, or as long if Pass.Wide. Launch
// Pass.Threads threads in threadgroups of GroupThreads. Sums are trees: a chain of a few elements in each thread,
// then pairs of chains, then lanes, then SIMD-groups.
func PrintReduce(r *Reduction) string {
	p := &r.Expr
	w := reducePrinter{printer: printer{wide: r.Pass.Wide}, r: r}
	w.header(p, "reduce")
	if r.Reducer.Header != "" {
		w.line(r.Reducer.Header)
	}
	w.line("[[kernel]] void ", ReduceEntry, "(")
	w.operands(p)
	raw := r.Pass.Parts > 1 || r.Pass.Raw
	if raw {
		w.param("device " + r.Reducer.Acc + "* out")
	} else {
		w.param("device " + r.OutType + "* out")
	}
	it := w.index()
	w.param("constant " + it + "* p")
	w.WriteString(positions)
	w.where()
	w.share()
	w.operandBlocks()
	w.accumulate()
	switch r.Pass.Spread {
	case Simd:
		w.acrossLanes()
	case Group:
		w.acrossLanes()
		w.acrossGroups()
	}
	w.store(raw)
	w.line("}")
	return w.String()
}

type reducePrinter struct {
	printer
	r *Reduction
}

// where finds the output and the part that a thread works for.
func (w *reducePrinter) where() {
	it, groups := w.index(), itoa(GroupThreads/32)
	switch w.r.Pass.Spread {
	case Lane:
		w.line("  const ", it, " run = ", it, "(group) * ", groups, " + ", it, "(sg);")
		if w.r.Pass.Along {
			w.along()
			return
		}
		w.line("  const ", it, " runs = (p[0] + 31) / 32;")
		w.line("  const ", it, " part = run / runs;")
		w.line("  const ", it, " to = (run - part * runs) * 32 + ", it, "(lane);")
		w.line("  if (to >= p[0]) return;")
	case Simd:
		w.line("  const ", it, " run = ", it, "(group) * ", groups, " + ", it, "(sg);")
		w.line("  const ", it, " to = run / p[1];")
		w.line("  const ", it, " part = run - to * p[1];")
	case Group:
		w.line("  const ", it, " to = ", it, "(group) / p[1];")
		w.line("  const ", it, " part = ", it, "(group) - to * p[1];")
	}
}

// share finds the elements that a thread's SIMD-group adds up: from begin to end. The SIMD-groups of a threadgroup take
// neighbouring runs of whole blocks, so that each reads memory in one go.
func (w *reducePrinter) share() {
	it := w.index()
	if w.r.Pass.Spread != Group {
		w.line("  const ", it, " begin = part * p[3];")
		w.line("  const ", it, " end = begin + min(p[2] - begin, p[3]);")
		return
	}
	block, all := itoa(rowBlock*32), itoa(rowBlock*GroupThreads)
	w.line("  const ", it, " from = part * p[3];")
	w.line("  const ", it, " length = min(p[2] - from, p[3]);")
	w.line("  const ", it, " each = (length + ", all, " - 1) / ", all, " * ", block, ";")
	w.line("  const ", it, " before = min(", it, "(sg) * each, length);")
	w.line("  const ", it, " begin = from + before;")
	w.line("  const ", it, " end = begin + min(each, length - before);")
}

// along finds the output of a thread whose SIMD-group runs along the innermost kept dimension: no lane divides.
func (w *reducePrinter) along() {
	it, length := w.index(), itoa(32*w.r.Pass.strips())
	w.line("  const ", it, " inner = p[5 + p[4]];")
	w.line("  const ", it, " across = (inner + ", length, " - 1) / ", length, ";")
	w.line("  const ", it, " runs = p[0] / inner * across;")
	w.line("  const ", it, " part = run / runs;")
	w.line("  const ", it, " place = run - part * runs;")
	w.line("  const ", it, " outer = place / across;")
	w.line("  const ", it, " column = (place - outer * across) * ", length, " + ", it, "(lane);")
	if !w.r.Pass.Strips {
		w.line("  if (column >= inner) return;")
	}
	w.line("  const ", it, " to = outer * inner + column;")
}

// operandBlocks declares i0, i1, ...: each operand's element at the output's coordinates.
func (w *reducePrinter) operandBlocks() {
	it := w.index()
	var classes []Class
	arrays := 0
	for k, o := range w.r.Expr.Operands {
		classes = append(classes, o.Class)
		if o.Class == Scalar {
			w.line("  const ", o.Type, " ", w.value(k), " = a", itoa(k), ";")
		} else {
			arrays++
		}
	}
	if arrays == 0 {
		return
	}
	w.line("  const ", it, " nd = p[4] + p[5];")
	w.line("  constant ", it, "* q = p + 6 + nd;")
	if w.r.Pass.Along {
		w.line("  ", it, " row = outer;")
		w.blocks(classes, "row", "p[6 + d]", "p[4] - 1", "2 + nd")
		w.columns(classes)
	} else {
		w.line("  ", it, " row = to;")
		w.blocks(classes, "row", "p[6 + d]", "p[4]", "2 + nd")
	}
	for k, c := range classes {
		if c == Strided && !w.r.Pass.Deep {
			w.line("  const ", it, " s", itoa(k), " = ", block(k, classes, "2 + nd"), "[1];")
		}
	}
}

// columns moves each operand's element along the innermost kept dimension to the thread's output; with strips it
// declares i0_0, i0_1, ... for each.
func (w *reducePrinter) columns(classes []Class) {
	for k, c := range classes {
		if c == Scalar {
			continue
		}
		i := "i" + itoa(k)
		step := ""
		if w.r.Pass.Unit>>k&1 == 0 {
			step = " * " + block(k, classes, "2 + nd") + "[1 + p[4]]"
		}
		if !w.r.Pass.Strips {
			w.line("  ", i, " += column", step, ";")
			continue
		}
		for s := range laneStrips {
			w.line("  const ", w.index(), " ", i, "_", itoa(s), " = ", i, " + (column + ", itoa(32*s), ")", step, ";")
		}
	}
}

// names are name, or with strips name0, name1, ...: one for each.
func (w *reducePrinter) names(name string) []string {
	n := w.r.Pass.strips()
	if n == 1 {
		return []string{name}
	}
	out := make([]string, n)
	for s := range out {
		out[s] = name + itoa(s)
	}
	return out
}

// element prints the load of element x (counted from the output's first) into the operands' variables, and the
// steps.
func (w *reducePrinter) element(indent string) string {
	it, p := w.index(), &w.r.Expr
	var classes []Class
	for _, o := range p.Operands {
		classes = append(classes, o.Class)
	}
	if w.r.Pass.Deep {
		w.line(indent, it, " rest = x;")
		for k, c := range classes {
			if c != Scalar {
				w.line(indent, it, " j", itoa(k), " = i", itoa(k), ";")
			}
		}
		w.line(indent, "for (", it, " d = nd - 1; d > p[4]; --d) {")
		w.line(indent, "  const ", it, " next = rest / p[6 + d];")
		w.line(indent, "  const ", it, " c = rest - next * p[6 + d];")
		w.line(indent, "  rest = next;")
		for k, c := range classes {
			if c != Scalar {
				w.line(indent, "  j", itoa(k), " += c * ", block(k, classes, "2 + nd"), "[2 + d];")
			}
		}
		w.line(indent, "}")
	}
	for k, o := range p.Operands {
		if o.Class == Scalar {
			continue
		}
		at := element("a", k, k, o.Class, "")
		if w.r.Pass.Deep {
			at = "a" + itoa(k) + "[j" + itoa(k) + " + rest * " + block(k, classes, "2 + nd") + "[2 + p[4]]]"
		}
		w.line(indent, "const ", o.Type, " ", w.value(k), " = ", at, ";")
	}
	w.steps(p, indent)
	return w.value(len(p.Operands) + len(p.Steps) - 1)
}

// combine is the Combine expression of two accumulators.
func (w *reducePrinter) combine(a, b string) string {
	return pairOf(w.r.Reducer.Combine, a, b)
}

// pairOf is an expression of two accumulators.
func pairOf(expr, a, b string) string {
	return expand(expr, func(n int) string { return [...]string{a, b}[min(n, 1)] }, "x")
}

// accumulate leaves in acc what a thread's elements combine to.
func (w *reducePrinter) accumulate() {
	it, pass, acc := w.index(), w.r.Pass, w.r.Reducer.Acc
	step, per, first := "32", rowBlock*32, "begin + "+it+"(lane)"
	if pass.Spread == Lane {
		step, per, first = "1", laneBlock, "begin"
	}
	accs, trees := w.names("acc"), w.names("tree")
	start := func(indent string) {
		for _, a := range accs {
			w.line(indent, acc, " ", a, " = ", w.r.Reducer.Init, ";")
		}
	}
	if pass.Short {
		start("  ")
		w.line("  for (", it, " x = ", first, "; x < end; x += ", step, ") {")
		w.addElements("    ", accs)
		w.line("  }")
		return
	}
	n := itoa(per)
	for _, t := range trees {
		w.line("  ", acc, " ", t, "[", itoa(pass.levels()), "];")
	}
	w.line("  const ", it, " blocks = (end - begin + ", itoa(per-1), ") / ", n, ";")
	w.line("  for (", it, " b = 0; b < blocks; ++b) {")
	start("    ")
	if pass.Spread == Lane || len(w.r.Expr.Steps) > fewSteps {
		w.line("    const ", it, " stop = min(end, begin + (b + 1) * ", n, ");")
		w.line("    for (", it, " x = ", first, " + b * ", n, "; x < stop; x += ", step, ") {")
		w.addElements("      ", accs)
		w.line("    }")
	} else { // all lanes take part in whole blocks, which need no condition for each
		w.line("    ", it, " x = ", first, " + b * ", n, ";")
		w.line("    if (begin + (b + 1) * ", n, " <= end) {")
		w.line("      for (int k = 0; k < ", itoa(rowBlock), "; ++k) {")
		w.addElements("        ", accs)
		w.line("        x += ", step, ";\n      }\n    } else {")
		w.line("      for (; x < end; x += ", step, ") {")
		w.addElements("        ", accs)
		w.line("      }\n    }")
	}
	w.line("    int level = 0;")
	w.line("    for (", it, " c = b; (c & 1) != 0; c >>= 1) {")
	for s, a := range accs {
		w.line("      ", a, " = ", w.combine(trees[s]+"[level]", a), ";")
	}
	w.line("      ++level;")
	w.line("    }")
	for s, a := range accs {
		w.line("    ", trees[s], "[level] = ", a, ";")
	}
	w.line("  }")
	start("  ")
	w.line("  int level = 0;")
	w.line("  for (", it, " c = blocks; c != 0; c >>= 1) {")
	w.line("    if ((c & 1) != 0) {")
	for s, a := range accs {
		w.line("      ", a, " = ", w.combine(trees[s]+"[level]", a), ";")
	}
	w.line("    }\n    ++level;")
	w.line("  }")
}

// addElements adds element x to the accumulators of all strips.
func (w *reducePrinter) addElements(indent string, accs []string) {
	if len(accs) == 1 {
		w.addElement(indent)
		return
	}
	for s, a := range accs {
		w.line(indent, "{")
		for k, o := range w.r.Expr.Operands {
			if o.Class != Scalar {
				w.line(indent, "  const ", w.index(), " i", itoa(k), " = i", itoa(k), "_", itoa(s), ";")
			}
		}
		w.line(indent, "  ", w.r.Reducer.Acc, " acc = ", a, ";")
		w.addElement(indent + "  ")
		w.line(indent, "  ", a, " = acc;\n", indent, "}")
	}
}

func (w *reducePrinter) addElement(indent string) {
	v := w.element(indent)
	load := expand(w.r.Reducer.Load, func(int) string { return v }, "ulong(x)")
	w.line(indent, "const ", w.r.Reducer.Acc, " item = ", load, ";")
	next := w.r.Reducer.Next
	if next == "" {
		next = w.r.Reducer.Combine
	}
	w.line(indent, "acc = ", pairOf(next, "acc", "item"), ";")
}

// acrossLanes combines the accumulators of a SIMD-group in a tree; lane 0 has the result.
func (w *reducePrinter) acrossLanes() {
	acc, down := w.r.Reducer.Acc, w.r.Reducer.Down
	switch {
	case down != "":
	case shuffles[acc]:
		down = "simd_shuffle_down($0, $1)"
	case acc == "bool":
		down = "simd_shuffle_down(uint($0), $1) != 0"
	}
	if down != "" {
		other := expand(down, func(n int) string { return [...]string{"acc", "d"}[n] }, "")
		w.line("  for (ushort d = 16; d > 0; d >>= 1) {")
		w.line("    const ", acc, " other = ", other, ";")
		w.line("    acc = ", w.combine("acc", "other"), ";")
		w.line("  }")
		return
	}
	w.line("  threadgroup ", acc, " shared[", strconv.Itoa(GroupThreads), "];")
	w.line("  threadgroup ", acc, "* mine = shared + sg * 32;")
	w.line("  mine[lane] = acc;")
	w.line("  simdgroup_barrier(mem_flags::mem_threadgroup);")
	w.line("  for (uint d = 16; d > 0; d >>= 1) {")
	w.line("    if (lane < d) {")
	w.line("      const ", acc, " other = mine[lane + d];")
	w.line("      acc = ", w.combine("acc", "other"), ";")
	w.line("      mine[lane] = acc;")
	w.line("    }")
	w.line("    simdgroup_barrier(mem_flags::mem_threadgroup);")
	w.line("  }")
}

// acrossGroups combines the accumulators of a threadgroup's SIMD-groups; the first thread has the result.
func (w *reducePrinter) acrossGroups() {
	acc := w.r.Reducer.Acc
	groups := itoa(GroupThreads / 32)
	w.line("  threadgroup ", acc, " parts[", groups, "];")
	w.line("  if (lane == 0) parts[sg] = acc;")
	w.line("  threadgroup_barrier(mem_flags::mem_threadgroup);")
	w.line("  if (sg != 0 || lane != 0) return;")
	w.line("  for (uint d = ", itoa(GroupThreads/64), "; d > 0; d >>= 1) {")
	w.line("    for (uint k = 0; k < d; ++k) {")
	w.line("      const ", acc, " left = parts[k];")
	w.line("      const ", acc, " right = parts[k + d];")
	w.line("      parts[k] = ", w.combine("left", "right"), ";")
	w.line("    }")
	w.line("  }")
	w.line("  acc = parts[0];")
}

// store writes the output, or the part's accumulator.
func (w *reducePrinter) store(raw bool) {
	result := func(acc string) string {
		if raw {
			return acc
		}
		finish := expand(w.r.Reducer.Finish, func(int) string { return acc }, "x")
		return "static_cast<" + w.r.OutType + ">(" + finish + ")"
	}
	if w.r.Pass.Spread == Lane {
		for s, acc := range w.names("acc") {
			to := "to"
			if s > 0 {
				to = "to + " + itoa(32*s)
			}
			if raw {
				to = "part * p[0] + " + to
			}
			w.line("  out[", to, "] = ", result(acc), ";")
		}
		return
	}
	to := "to"
	if raw {
		to = "to * p[1] + part"
	}
	w.line("  if (lane == 0) out[", to, "] = ", result("acc"), ";")
}
