package export

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"slices"

	"github.com/mlxlua/mlxlua/compile"
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/format"
)

// Inputs are what a function is called with.
type Inputs struct {
	Positional []*tensor.Array
	Named      map[string]*tensor.Array
}

// names are the names in their order.
func (in Inputs) names() []string {
	names := make([]string, 0, len(in.Named))
	for name := range in.Named {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// list is all inputs: the positional ones, then the named ones in their order.
func (in Inputs) list() []*tensor.Array {
	out := slices.Clone(in.Positional)
	for _, name := range in.names() {
		out = append(out, in.Named[name])
	}
	return out
}

// Trace is a call of a function as it was recorded.
type Trace struct {
	Positional int      // how many inputs have no name
	Names      []string // of the inputs that follow, in order
	Inputs     []tensor.Spec
	Outputs    []tensor.Spec // in the recorded call
	Program    *compile.Program
}

// Func is a function to export.
type Func func(in Inputs) ([]*tensor.Array, error)

// Record calls f with stand-ins for the inputs and gives what it did. place is the line that runs, nil if nobody knows.
func Record(c *tensor.Ctx, f Func, in Inputs, place func() tensor.Place) (*Trace, error) {
	c = tensor.Call([]*tensor.Ctx{c})
	t := &Trace{Positional: len(in.Positional), Names: in.names()}
	for i, x := range in.list() {
		if x == nil {
			return nil, c.Errorf("export_function", "input %d is nil", i)
		}
		if err := x.Err(); err != nil {
			return nil, err
		}
		t.Inputs = append(t.Inputs, x.Spec())
	}
	var err error
	t.Program, err = compile.Record(c, func(xs []*tensor.Array) ([]*tensor.Array, error) {
		outs, err := f(t.inputs(xs))
		if err != nil {
			return nil, err
		}
		for _, y := range outs {
			if y != nil {
				t.Outputs = append(t.Outputs, y.Spec())
			}
		}
		return outs, nil
	}, t.Inputs, place)
	if err != nil {
		return nil, err
	}
	return t, nil
}

// inputs sorts a list of inputs.
func (t *Trace) inputs(xs []*tensor.Array) Inputs {
	in := Inputs{Positional: xs[:t.Positional], Named: map[string]*tensor.Array{}}
	for i, name := range t.Names {
		in.Named[name] = xs[t.Positional+i]
	}
	return in
}

// File is what a file holds.
type File struct {
	Metadata  string
	Shapeless bool // traces serve inputs of other shapes too
	Traces    []*Trace
}

// Save writes a file: under another name first, so that at no time there is half a file at path.
func (f *File) Save(ctx context.Context, path string) error {
	return format.WriteFile("export_function", path, func(w io.Writer) error { return f.Write(ctx, w) })
}

// Write writes what Save writes. Constants are evaluated; equal ones are written once.
func (f *File) Write(ctx context.Context, w io.Writer) error {
	out := &writer{w: w, consts: map[tensor.Value]int{}, ops: map[*tensor.Op]int{}, equal: map[contents]int{}}
	out.write(binary.LittleEndian.AppendUint32([]byte(magic), version))
	out.pad()
	var traces []byte
	for i, t := range f.Traces {
		var err error
		if traces, err = out.trace(ctx, traces, t); err != nil {
			return fmt.Errorf("trace %d: %w", i+1, err)
		}
	}
	about := tensor.AppendInt(tensor.AppendText(nil, f.Metadata), flag(f.Shapeless))
	about = append(tensor.AppendInt(about, out.next), out.constText...)
	about = append(tensor.AppendInt(about, len(out.ops)), out.opText...)
	about = append(tensor.AppendInt(about, len(f.Traces)), traces...)
	out.write(about)
	end := binary.LittleEndian.AppendUint64(nil, uint64(len(about)))
	end = binary.LittleEndian.AppendUint32(end, crc32.Checksum(about, castagnoli))
	out.write(append(end, magic...))
	return out.err
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}

// writer writes constants to w as it comes to them, and what the description says of them and of ops to texts.
type writer struct {
	w         io.Writer
	written   int64
	err       error
	consts    map[tensor.Value]int
	equal     map[contents]int
	next      int // how many have been written
	ops       map[*tensor.Op]int
	constText []byte
	opText    []byte
}

func (w *writer) write(b []byte) {
	if w.err != nil {
		return
	}
	n, err := w.w.Write(b)
	w.written, w.err = w.written+int64(n), err
}

// pad writes zeros up to the next place where a constant may begin.
func (w *writer) pad() {
	w.write(make([]byte, (alignment-w.written%alignment)%alignment))
}

// contents are equal for equal constants.
type contents struct {
	spec string
	hash [sha256.Size]byte
}

// constant is the number of a constant, which is written unless it, or an equal one, has been.
func (w *writer) constant(ctx context.Context, x *tensor.Array) (int, error) {
	if i, ok := w.consts[x.Value()]; ok {
		return i, nil
	}
	b, err := x.Bytes(ctx)
	if err != nil {
		return 0, err
	}
	key := contents{fmt.Sprint(x.Spec()), sha256.Sum256(b)}
	if i, ok := w.equal[key]; ok {
		w.consts[x.Value()] = i
		return i, nil
	}
	i := w.next
	w.next++
	w.consts[x.Value()] = i
	w.equal[key] = i
	w.write(b)
	w.pad()
	w.constText = tensor.AppendInt(appendSpec(w.constText, x.Spec()), int(crc32.Checksum(b, castagnoli)))
	return i, w.err
}

// op is the number of an op.
func (w *writer) op(p *tensor.Op) (int, error) {
	if i, ok := w.ops[p]; ok {
		return i, nil
	}
	schema, err := p.AttrSchema()
	if err != nil {
		return 0, err
	}
	i := len(w.ops)
	w.ops[p] = i
	w.opText = tensor.AppendText(tensor.AppendText(w.opText, p.Name()), schema)
	return i, nil
}

// trace appends a trace's text to b.
func (w *writer) trace(ctx context.Context, b []byte, t *Trace) ([]byte, error) {
	b = tensor.AppendInt(tensor.AppendInt(b, t.Positional), len(t.Names))
	for _, name := range t.Names {
		b = tensor.AppendText(b, name)
	}
	b = appendSpecs(b, t.Inputs)
	b = appendSpecs(b, t.Outputs)
	g := t.Program.Graph(len(t.Inputs))
	consts := make([]int, len(g.Consts))
	var err error
	for i, x := range g.Consts {
		if err := ctx.Err(); err != nil {
			return nil, context.Cause(ctx)
		}
		if consts[i], err = w.constant(ctx, x); err != nil {
			return nil, err
		}
	}
	refs := func(rs []compile.Ref) {
		b = tensor.AppendInt(b, len(rs))
		for _, r := range rs {
			b = appendRef(b, r, consts)
		}
	}
	specs, err := t.specs(ctx, g)
	if err != nil {
		return nil, err
	}
	b = tensor.AppendInt(b, len(g.Steps))
	for _, s := range g.Steps {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		op, err := w.op(s.Op)
		if err != nil {
			return nil, err
		}
		b = tensor.AppendInt(tensor.AppendInt(b, op), s.Outs)
		refs(s.In)
		in := make([]tensor.Spec, len(s.In))
		for i, r := range s.In {
			in[i] = specs[r]
		}
		attrs, err := s.Op.AppendAttrs(nil, s.Attrs, in)
		if err != nil {
			return nil, err
		}
		b = appendSpecs(tensor.AppendText(b, string(attrs)), s.Fixed)
	}
	refs(g.Outs)
	b = tensor.AppendInt(b, len(g.Guards))
	for _, d := range g.Guards {
		b = appendRef(b, d.Of, consts)
		b = tensor.AppendText(tensor.AppendInt(tensor.AppendInt(tensor.AppendInt(b, d.Axis), d.Size), d.After), d.Where)
	}
	return b, nil
}

// specs are those of all values of a graph, at the inputs it was recorded for.
func (t *Trace) specs(ctx context.Context, g *compile.Graph) (map[compile.Ref]tensor.Spec, error) {
	at := tensor.NewTrace("export", nil)
	defer at.End()
	values := map[compile.Ref]*tensor.Array{}
	for i, s := range t.Inputs {
		values[compile.Ref{Kind: 'i', I: i}] = at.Placeholder(&tensor.Ctx{}, s)
	}
	for i, x := range g.Consts {
		values[compile.Ref{Kind: 'c', I: i}] = x
	}
	slots := 0
	for _, s := range g.Steps {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		in, outs := make([]*tensor.Array, len(s.In)), make([]*tensor.Array, s.Outs)
		for i, r := range s.In {
			in[i] = values[r]
		}
		call := tensor.Replayed{Op: s.Op, Attrs: s.Attrs}
		call.Into(&tensor.Ctx{}, outs, in)
		for i, y := range outs {
			if err := y.Err(); err != nil {
				return nil, err
			}
			values[compile.Ref{Kind: 's', I: slots + i}] = y
		}
		if slots += s.Outs; slots > mostOutputs {
			return nil, fmt.Errorf("the calls have more than %d outputs", mostOutputs)
		}
	}
	out := make(map[compile.Ref]tensor.Spec, len(values))
	for r, x := range values {
		out[r] = x.Spec()
	}
	return out, nil
}

func appendRef(b []byte, r compile.Ref, consts []int) []byte {
	i := r.I
	if r.Kind == 'c' {
		i = consts[i]
	}
	return tensor.AppendInt(append(b, r.Kind), i)
}

// appendSpec appends a dtype and a shape.
func appendSpec(b []byte, s tensor.Spec) []byte {
	b, _ = s.DType.AppendAttr(b, nil) // it cannot fail
	b = tensor.AppendInt(b, len(s.Shape))
	for _, n := range s.Shape {
		b = tensor.AppendInt(b, n)
	}
	return b
}

func appendSpecs(b []byte, specs []tensor.Spec) []byte {
	b = tensor.AppendInt(b, len(specs))
	for _, s := range specs {
		b = appendSpec(b, s)
	}
	return b
}
