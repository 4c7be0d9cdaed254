package kir

import (
	"fmt"
	"math"
	"strings"
)

// String returns the module as text: its kernels one after another.
func (m *Module) String() string {
	var b strings.Builder
	for i, k := range m.Kernels {
		if i > 0 {
			b.WriteByte('\n')
		}
		printKernel(&b, k, m.Files)
	}
	return b.String()
}

// String returns the kernel as text: declarations, then one instruction a line, indented by nesting. The text is for
// people and tests; nothing reads it back.
func (k *Kernel) String() string {
	var b strings.Builder
	printKernel(&b, k, nil)
	return b.String()
}

func printKernel(b *strings.Builder, k *Kernel, files []string) {
	fmt.Fprintf(b, "kernel %s", k.Name)
	if k.MaxThreads != 0 {
		fmt.Fprintf(b, " maxthreads %d", k.MaxThreads)
	}
	if k.Threads != [3]int{} {
		fmt.Fprintf(b, " threads %v", k.Threads)
	}
	b.WriteByte('\n')
	for i, p := range k.Params {
		fmt.Fprintf(b, "  param %d %s: %s %s", i, p.Name, p.Space, p.Elem)
		if p.ElemSize != p.Elem.Size() {
			fmt.Fprintf(b, " x %d bytes", p.ElemSize)
		}
		fmt.Fprintf(b, " index %d", p.Index)
		if p.MinBytes != 0 {
			fmt.Fprintf(b, " min %d", p.MinBytes)
		}
		for _, f := range []struct {
			set  bool
			name string
		}{{p.Read, "read"}, {p.Write, "write"}, {p.Atomic, "atomic"}, {p.ReadOnly, "const"}} {
			if f.set {
				b.WriteString(" " + f.name)
			}
		}
		b.WriteByte('\n')
	}
	for i, v := range k.Vars {
		fmt.Fprintf(b, "  var %d %s: %s\n", i, v.Name, v.Type)
	}
	for i, r := range k.Regions {
		fmt.Fprintf(b, "  region %d %s: %s %s, %d bytes, align %d\n", i, r.Name, r.Space, r.Elem, r.Size, r.Align)
	}
	p := printer{b: b, k: k, files: files}
	if k.Body != nil {
		p.block(k.Body, 1)
	}
}

type printer struct {
	b     *strings.Builder
	k     *Kernel
	files []string
	line  Pos // of the last instruction printed
}

func (p *printer) block(bl *Block, depth int) {
	for _, in := range bl.Instrs {
		p.instr(in, depth)
	}
}

func (p *printer) instr(in *Instr, depth int) {
	b := p.b
	b.WriteString(strings.Repeat("  ", depth))
	if in == nil {
		b.WriteString("nil\n")
		return
	}
	if in.Type != Void {
		fmt.Fprintf(b, "%%%d = ", in.ID)
	}
	b.WriteString(in.Op.String())
	if in.Type != Void {
		fmt.Fprintf(b, " %s", in.Type)
	}
	p.details(in)
	for i, a := range in.Args {
		if i > 0 {
			b.WriteByte(',')
		}
		if a == nil {
			b.WriteString(" nil")
		} else {
			fmt.Fprintf(b, " %%%d", a.ID)
		}
	}
	if in.Op == PtrAdd && in.Imm != 0 {
		fmt.Fprintf(b, ", %+d", int64(in.Imm))
	}
	if in.Target != nil {
		fmt.Fprintf(b, " L%d", in.Target.ID)
	}
	if in.Op == BlockOp || in.Op == Loop {
		fmt.Fprintf(b, " L%d", in.ID)
	}
	if in.Pos.Line != 0 && (in.Pos.Line != p.line.Line || in.Pos.File != p.line.File) {
		p.line = in.Pos
		name := fmt.Sprint(in.Pos.File)
		if int(in.Pos.File) < len(p.files) {
			name = p.files[in.Pos.File]
		}
		fmt.Fprintf(b, "  ; %s:%d", name, in.Pos.Line)
	}
	b.WriteByte('\n')
	if in.Body != nil {
		p.block(in.Body, depth+1)
	}
	if in.Else != nil {
		b.WriteString(strings.Repeat("  ", depth) + "else\n")
		p.block(in.Else, depth+1)
	}
}

// details prints what Mode and Imm mean to the operation.
func (p *printer) details(in *Instr) {
	b := p.b
	named := func(n int, name func(int) string) {
		if in.Imm < uint64(n) {
			fmt.Fprintf(b, " %s", name(int(in.Imm)))
		} else {
			fmt.Fprintf(b, " ?%d", in.Imm)
		}
	}
	switch in.Op {
	case Const:
		b.WriteString(" " + constText(in.Type, in.Imm))
	case Builtin:
		fmt.Fprintf(b, " %s", in.Mode)
		if in.Mode.Components() == 3 && in.Imm < 3 {
			b.WriteString("." + "xyz"[in.Imm:in.Imm+1])
		}
	case VarGet, VarSet:
		named(len(p.k.Vars), func(i int) string { return fmt.Sprintf("v%d(%s)", i, p.k.Vars[i].Name) })
	case ParamAddr:
		named(len(p.k.Params), func(i int) string { return p.k.Params[i].Name })
	case RegionAddr:
		named(len(p.k.Regions), func(i int) string { return p.k.Regions[i].Name })
	case AtomicRMW, Reduce, ScanInclusive, ScanExclusive:
		fmt.Fprintf(b, " %s", in.Mode)
	case MatMulAcc:
		fmt.Fprintf(b, " %s element %d,", in.Mode, in.Imm)
	case Barrier, SimdBarrier, Fence:
		if in.Mode&MemDevice != 0 {
			b.WriteString(" device")
		}
		if in.Mode&MemThreadgroup != 0 {
			b.WriteString(" threadgroup")
		}
	}
	if in.Op.Convergent() && in.Op != MatMulAcc && in.Imm == 4 {
		b.WriteString(" quad")
	}
}

// constText writes a constant's bits as a number that reads back to the same bits, or as hexadecimal bits.
func constText(t Type, bits uint64) string {
	switch {
	case t == Bool:
		return fmt.Sprint(bits != 0)
	case t.IsFloat():
		f := ToFloat64(t, bits)
		if math.IsNaN(f) {
			return fmt.Sprintf("nan:%#x", bits)
		}
		if t == F64 {
			return fmt.Sprint(f)
		}
		return fmt.Sprint(float32(f))
	case t.IsInt() && t.IsSigned():
		return fmt.Sprint(signExtend(t, bits))
	case t.IsPtr():
		return fmt.Sprintf("%#x", bits)
	}
	return fmt.Sprint(bits)
}
