package kernelgen

import (
	"strconv"
	"strings"
)

// Class says how a kernel finds the elements of an operand or output.
type Class uint8

// The classes. Linear stands alone (with Scalar) in a linear kernel; Unit, Repeat and Strided speak of the
// dimension that the lanes of a SIMD-group run along.
const (
	Linear  Class = iota // element i of the result is element i
	Scalar               // one element for all, in constant memory
	Unit                 // neighbours are next to each other
	Repeat               // neighbours read one element
	Strided              // neighbours are a stride apart; see also Near
)

// Operand is an array that a kernel reads.
type Operand struct {
	Type  string // MSL
	Class Class
}

// Step computes one value of a expression.
type Step struct {
	Op   string // the op's name, for the kernel's header
	Type string // MSL; the value is converted to it
	Text string // MSL expression of $0, $1, ...
	Args []int  // what they stand for: operands come first, then steps
}

// Expression is a typed expression DAG: the values of element-wise ops over one shape.
type Expression struct {
	Operands []Operand
	Steps    []Step
	Outputs  []int   // values that are written, each to its own buffer
	Out      []Class // their classes: Linear, Unit, Strided or Near
	Fold     Fold    // of a general kernel
	Rows     bool    // a SIMD-group of a general kernel takes several rows
}

// Fold is a short dimension that every lane goes through: Size is 0 where there is none. The strides of
// operands and outputs along it are in elements.
type Fold struct {
	Size    int
	Strides []int
}

// Key appends to b text that tells expressions apart: two expressions of equal keys print alike.
func (p *Expression) Key(b []byte) []byte {
	for _, o := range p.Operands {
		b = append(b, o.Type...)
		b = append(b, '0'+byte(o.Class))
	}
	for i := range p.Steps {
		s := &p.Steps[i]
		b = append(b, ';')
		b = append(b, s.Op...)
		b = append(b, ' ')
		b = append(b, s.Type...)
		b = append(b, '=')
		b = append(b, s.Text...)
		for _, a := range s.Args {
			b = append(b, ',')
			b = strconv.AppendInt(b, int64(a), 10)
		}
	}
	for i, o := range p.Outputs {
		b = append(b, '>')
		b = strconv.AppendInt(b, int64(o), 10)
		b = append(b, '0'+byte(p.Out[i]))
	}
	if p.Fold.Size > 0 {
		b = append(b, '*')
		b = strconv.AppendInt(b, int64(p.Fold.Size), 10)
		for _, s := range p.Fold.Strides {
			b = append(b, ',')
			b = strconv.AppendInt(b, int64(s), 10)
		}
	}
	if p.Rows {
		b = append(b, '=')
	}
	return b
}

// typeOf is the MSL type of a value.
func (p *Expression) typeOf(v int) string {
	if v < len(p.Operands) {
		return p.Operands[v].Type
	}
	return p.Steps[v-len(p.Operands)].Type
}

// Float64 reports whether the expression uses double, which needs a compile option.
func (p *Expression) Float64() bool {
	for _, o := range p.Operands {
		if o.Type == "double" {
			return true
		}
	}
	for i := range p.Steps {
		if p.Steps[i].Type == "double" {
			return true
		}
	}
	return false
}

// expand replaces $0, $1, ... in an expression by arg's text and $i by index.
func expand(text string, arg func(n int) string, index string) string {
	at := strings.IndexByte(text, '$')
	if at < 0 {
		return text
	}
	var b strings.Builder
	for at >= 0 {
		b.WriteString(text[:at])
		text = text[at+1:]
		end := 0
		for end < len(text) && text[end] >= '0' && text[end] <= '9' {
			end++
		}
		switch {
		case end > 0:
			n, _ := strconv.Atoi(text[:end]) // digits only; what is too large is the largest int, which no operand has
			b.WriteString(arg(n))
		case strings.HasPrefix(text, "i"):
			b.WriteString(index)
			end = 1
		default:
			b.WriteByte('$')
		}
		text = text[end:]
		at = strings.IndexByte(text, '$')
	}
	b.WriteString(text)
	return b.String()
}

// printer writes a kernel.
type printer struct {
	strings.Builder
	params int
	wide   bool   // indices are 64 bits
	suffix string // of the names of values that are printed several times
}

func (w *printer) line(parts ...string) {
	for _, s := range parts {
		w.WriteString(s)
	}
	w.WriteByte('\n')
}

// index is the type of indices.
func (w *printer) index() string {
	if w.wide {
		return "long"
	}
	return "int"
}

// header begins a kernel: the names of the ops, and no contraction, so that fused and separate kernels agree.
func (w *printer) header(p *Expression, extra string) {
	w.WriteString("//")
	for i := range p.Steps {
		w.WriteByte(' ')
		w.WriteString(p.Steps[i].Op)
	}
	if extra != "" {
		w.WriteByte(' ')
		w.WriteString(extra)
	}
	w.line("\n#pragma clang fp contract(off)")
}

// param declares a buffer parameter.
func (w *printer) param(decl string) {
	w.line("    ", decl, " [[buffer(", strconv.Itoa(w.params), ")]],")
	w.params++
}

// operands declares the parameters of operands and outputs.
func (w *printer) operands(p *Expression) {
	for k, o := range p.Operands {
		if o.Class == Scalar {
			w.param("constant " + o.Type + "& a" + strconv.Itoa(k))
		} else {
			w.param("device const " + o.Type + "* a" + strconv.Itoa(k))
		}
	}
	for k, v := range p.Outputs {
		w.param("device " + p.typeOf(v) + "* o" + strconv.Itoa(k))
	}
}

const positions = `    uint group [[threadgroup_position_in_grid]],
    uint sg [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
`

// value is the name of a value's variable.
func (w *printer) value(v int) string { return "v" + strconv.Itoa(v) + w.suffix }

// steps prints the computation of all steps.
func (w *printer) steps(p *Expression, indent string) {
	for i := range p.Steps {
		s := &p.Steps[i]
		text := expand(s.Text, func(n int) string {
			if n >= len(s.Args) {
				return "missing_operand_" + strconv.Itoa(n)
			}
			return w.value(s.Args[n])
		}, "x")
		w.line(indent, "const ", s.Type, " ", w.value(len(p.Operands)+i), " = static_cast<", s.Type, ">(", text, ");")
	}
}
