package compile

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mlxlua/mlxlua/tensor"
)

// maxHistory bounds the reasons that Explain lists.
const maxHistory = 32

// noteTrace records why a trace was made. Called with mu held, before the entry joins the cache.
func (fn *Function) noteTrace(e *entry, fault error) {
	reason, again := "the first call", fn.traces > 1
	if fault != nil {
		var m *misfit
		if reason = fault.Error(); !errors.As(fault, &m) {
			reason = "the trace does not fit: " + reason
		}
	} else if n := len(fn.entries); n > 0 {
		reason = fn.entries[n-1].sig.difference(e.sig)
	} else if fn.evicted > 0 {
		reason = "earlier traces were evicted"
	}
	if again && !e.plan.foreign {
		fn.warn(e, fault)
	}
	line := fmt.Sprintf("%s; inputs %s", reason, e.sig)
	if e.plan.foreign {
		line += "; not kept: it uses an array of a surrounding transform that is not among its inputs"
	}
	if fn.history = append(fn.history, line); len(fn.history) > maxHistory {
		fn.history = slices.Delete(fn.history, 1, 2)
	}
}

// difference says how t differs from s, the last used signature.
func (s signature) difference(t signature) string {
	switch {
	case s.key != t.key:
		return "a constant or the arguments' structure changed"
	case s.stream != t.stream:
		return "another stream"
	case len(s.specs) != len(t.specs):
		return fmt.Sprintf("inputs and captures: %d, not %d", len(t.specs), len(s.specs))
	}
	for i, a := range s.specs {
		b := t.specs[i]
		switch {
		case a.DType != b.DType:
			return fmt.Sprintf("input %d: dtype %v, not %v", i, b.DType, a.DType)
		case len(a.Shape) != len(b.Shape):
			return fmt.Sprintf("input %d: %s, not %d", i, tensor.Count(len(b.Shape), "dimension"), len(a.Shape))
		case !a.Shape.Equal(b.Shape):
			return fmt.Sprintf("input %d: shape %v, not %v", i, b.Shape, a.Shape)
		}
	}
	return "an equal trace was evicted"
}

// String lists the inputs.
func (s signature) String() string {
	parts := make([]string, len(s.specs))
	for i, x := range s.specs {
		parts[i] = x.String()
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// Explain says in words what was traced and why, what each trace computes in which kernels, and how the cache fares.
// With source it also gives the text of each kernel that is printed for fused ops, for inputs that lie in row-major
// order. The Ctx may be nil; where its holder has to end, the text does.
func (fn *Function) Explain(c *tensor.Ctx, source bool) string {
	s := fn.Stats()
	var b strings.Builder
	kind := "for each shape"
	if fn.opt.Shapeless {
		kind = "shapeless"
	}
	fmt.Fprintf(&b, "compiled (%s): %s, %s, %s of an earlier trace\n", kind, tensor.Count(s.Calls, "call"),
		tensor.Count(s.Traces, "trace"), tensor.Count(s.Hits, "replay"))
	fmt.Fprintf(&b, "cache: %d of %d traces, %d evicted\n", s.Size, s.Cap, s.Evicted)
	if disabled.Load() {
		b.WriteString("compilation is disabled\n")
	}
	fn.mu.Lock()
	captures, history, entries := fn.captures, slices.Clone(fn.history), slices.Clone(fn.entries)
	fn.mu.Unlock()
	for _, c := range captures {
		fmt.Fprintf(&b, "capture: %s\n", c)
	}
	for i, h := range history {
		fmt.Fprintf(&b, "trace %d: %s\n", i+1, h)
	}
	for _, e := range entries {
		fmt.Fprintf(&b, "inputs %s: %s, %d after simplification, %s\n", e.sig, tensor.Count(e.plan.recorded, "op"),
			len(e.plan.steps), tensor.Count(len(e.plan.consts), "constant"))
		for _, g := range e.plan.guards {
			fmt.Fprintf(&b, "  guard: %s\n", strings.TrimSuffix(g.describe(g.size), fmt.Sprintf(", is %d", g.size)))
		}
		fmt.Fprintf(&b, "  ops: %s\n", e.plan.opsText())
		fmt.Fprintf(&b, "  %s\n", e.plan.stepText())
		e.explainKernels(c, &b, source)
	}
	return b.String()
}

// explainKernels lists what a replay at the entry's shapes runs, without and with the fusion of ops. The shapes'
// functions run, as in any replay.
func (e *entry) explainKernels(c *tensor.Ctx, b *strings.Builder, source bool) {
	defer c.Building()()
	at := &tensor.Ctx{}
	if c != nil {
		at.Holder = c.Holder
	}
	t := tensor.NewTrace("compile", nil)
	defer t.End()
	in := make([]*tensor.Array, len(e.sig.specs))
	for i, s := range e.sig.specs {
		in[i] = t.Placeholder(at, s)
	}
	var kernels, fused []tensor.PlannedKernel
	outs, err := e.plan.run(at, in)
	if err == nil {
		kernels, err = tensor.PlannedKernels(at, outs, false)
	}
	if err == nil {
		fused, err = tensor.PlannedKernels(at, outs, true)
	}
	if err != nil {
		fmt.Fprintf(b, "  kernels: %v\n", err)
		return
	}
	kernelsText(b, "before fusion", kernels, false)
	kernelsText(b, "after fusion", fused, source)
}

// kernelsText lists kernels, equal ones once, with source each with its text.
func kernelsText(b *strings.Builder, when string, kernels []tensor.PlannedKernel, source bool) {
	var lines []string
	times, texts := map[string]int{}, map[string]string{}
	var read, written int64
	for _, k := range kernels {
		in, out := nbytes(k.In), nbytes(k.Out)
		read, written = read+in, written+out
		host := ""
		if k.Host {
			host = " on the host"
		}
		line := fmt.Sprintf("%s%s: %s, %d bytes read, %d written, %s", strings.Join(k.Ops, "+"), host,
			tensor.Count(len(k.In), "input"), in, out, tensor.Count(k.Elements, "element"))
		if source && k.Text != "" {
			texts[line+k.Text] = k.Text
			line += k.Text
		}
		if times[line]++; times[line] == 1 {
			lines = append(lines, line)
		}
	}
	fmt.Fprintf(b, "  %s: %s, %d bytes read, %d written\n", when, tensor.Count(len(kernels), "kernel"), read, written)
	for _, line := range lines {
		about := strings.TrimSuffix(line, texts[line])
		if n := times[line]; n > 1 {
			about = fmt.Sprintf("%d times %s", n, about)
		}
		fmt.Fprintf(b, "    %s\n%s", about, indented(texts[line]))
	}
}

// indented is a kernel's text as it stands below its line.
func indented(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString("      | " + strings.TrimRight(line, "\n") + "\n")
	}
	return b.String()
}

func nbytes(specs []tensor.Spec) (n int64) {
	for _, s := range specs {
		n += s.NBytes()
	}
	return n
}

// opsText lists the plan's ops in order.
func (p *plan) opsText() string {
	names := make([]string, len(p.steps))
	for i, s := range p.steps {
		names[i] = s.call.Op.Name()
	}
	return strings.Join(names, " ")
}
