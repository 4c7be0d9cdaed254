package compile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/mlxlua/mlxlua/tensor"
)

// maxHistory bounds the reasons that Explain lists.
const maxHistory = 32

// note records why a trace was made. Called with mu held, before the entry joins the cache.
func (fn *Function) note(e *entry, fault error) {
	reason := "the first call"
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
		return fmt.Sprintf("%d inputs and captures, not %d", len(t.specs), len(s.specs))
	}
	for i, a := range s.specs {
		b := t.specs[i]
		switch {
		case a.DType != b.DType:
			return fmt.Sprintf("input %d: dtype %v, not %v", i, b.DType, a.DType)
		case len(a.Shape) != len(b.Shape):
			return fmt.Sprintf("input %d: %d dimensions, not %d", i, len(b.Shape), len(a.Shape))
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

// Explain says in words what was traced and why, what each trace computes, and how the cache fares.
func (fn *Function) Explain() string {
	s := fn.Stats()
	fn.mu.Lock()
	defer fn.mu.Unlock()
	var b strings.Builder
	kind := "for each shape"
	if fn.opt.Shapeless {
		kind = "shapeless"
	}
	fmt.Fprintf(&b, "compiled (%s): %d calls, %d traces, %d replays of an earlier trace\n", kind, s.Calls, s.Traces,
		s.Hits)
	fmt.Fprintf(&b, "cache: %d of %d traces, %d evicted\n", s.Size, s.Cap, s.Evicted)
	if disabled.Load() {
		b.WriteString("compilation is disabled\n")
	}
	for _, c := range fn.captures {
		fmt.Fprintf(&b, "capture: %s\n", c)
	}
	for i, h := range fn.history {
		fmt.Fprintf(&b, "trace %d: %s\n", i+1, h)
	}
	for _, e := range fn.entries {
		fmt.Fprintf(&b, "inputs %s: %d ops, %d after simplification, %d constants\n", e.sig, e.plan.recorded,
			len(e.plan.steps), len(e.plan.consts))
		for _, g := range e.plan.guards {
			fmt.Fprintf(&b, "  guard: %s\n", strings.TrimSuffix(g.describe(g.size), fmt.Sprintf(", is %d", g.size)))
		}
		fmt.Fprintf(&b, "  ops: %s\n", e.plan.opsText())
	}
	return b.String()
}

// opsText lists the plan's ops in order.
func (p *plan) opsText() string {
	names := make([]string, len(p.steps))
	for i, s := range p.steps {
		names[i] = s.node.Prim().Name()
	}
	return strings.Join(names, " ")
}

// number is an element for a message.
func number(d tensor.DType, b []byte) any {
	le := binary.LittleEndian
	switch {
	case d == tensor.Bool:
		return b[0] != 0
	case d == tensor.Float16:
		return tensor.Float16Value(le.Uint16(b))
	case d == tensor.BFloat16:
		return tensor.BFloat16Value(le.Uint16(b))
	case d == tensor.Float32:
		return math.Float32frombits(le.Uint32(b))
	case d == tensor.Float64:
		return math.Float64frombits(le.Uint64(b))
	case d == tensor.Complex64:
		return complex(math.Float32frombits(le.Uint32(b)), math.Float32frombits(le.Uint32(b[4:])))
	}
	var full [8]byte
	copy(full[:], b)
	v := le.Uint64(full[:])
	if d.IsSigned() {
		shift := 64 - 8*d.Size()
		return int64(v<<shift) >> shift
	}
	return v
}

// isNaN says whether the element is a NaN, whose payload does not matter.
func isNaN(d tensor.DType, b []byte) bool {
	switch v := number(d, b).(type) {
	case float32:
		return v != v
	case float64:
		return v != v
	case complex64:
		return real(v) != real(v) || imag(v) != imag(v)
	}
	return false
}
