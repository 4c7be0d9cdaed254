package export

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"regexp"
	"slices"

	"github.com/mlxlua/mlxlua/compile"
	"github.com/mlxlua/mlxlua/tensor"
)

// Load reads a file that Save wrote.
func Load(path string) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("[import_function] cannot open the file: %w", err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = errors.New("it is no regular file")
	}
	if err != nil {
		return nil, fmt.Errorf("[import_function] %s: %w", path, err)
	}
	file, err := Read(f, st.Size())
	if err != nil {
		return nil, fmt.Errorf("[import_function] %s: %w", path, err)
	}
	return file, nil
}

// mlxVersion is the version of MLX that wrote a file of a function, which such files begin with: its length, and its
// text. "" where MLX did not.
func mlxVersion(from io.ReaderAt) string {
	var b [8 + 32]byte
	n, _ := from.ReadAt(b[:], 0)
	if n < 8 {
		return ""
	}
	text := b[8:n]
	length := binary.LittleEndian.Uint64(b[:])
	if length > uint64(len(text)) || !numbered.Match(text[:length]) {
		return ""
	}
	return string(text[:length])
}

// numbered is the text of a version.
var numbered = regexp.MustCompile(`^[0-9]+(\.[0-9]+)+[.a-z0-9+-]*$`)

// Read reads what Write wrote, of that size. What is damaged is an error.
func Read(from io.ReaderAt, size int64) (*File, error) {
	if v := mlxVersion(from); v != "" {
		return nil, fmt.Errorf("MLX %s wrote this function, and MLX alone reads that: export it again with "+
			"mx.export_function, from Lua; arrays go from one to the other as .safetensors or .npz", v)
	}
	if size < int64(headerSize+footerSize) {
		return nil, fmt.Errorf("%d bytes are no exported function", size)
	}
	head := make([]byte, headerSize)
	if _, err := from.ReadAt(head, 0); err != nil {
		return nil, err
	}
	if string(head[:len(magic)]) != magic {
		return nil, fmt.Errorf("it begins with %q: that is no function that mx.export_function wrote", head[:len(magic)])
	}
	if v := binary.LittleEndian.Uint32(head[len(magic):]); v != version {
		return nil, fmt.Errorf("it has format version %d, and this program reads version %d: export the function again",
			v, version)
	}
	foot := make([]byte, footerSize)
	if _, err := from.ReadAt(foot, size-int64(footerSize)); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint64(foot)
	if string(foot[12:]) != magic || n > uint64(size)-uint64(headerSize+footerSize) {
		return nil, errors.New("its end is missing or damaged")
	}
	about := make([]byte, n)
	start := size - int64(footerSize) - int64(n)
	if _, err := from.ReadAt(about, start); err != nil {
		return nil, err
	}
	if crc32.Checksum(about, castagnoli) != binary.LittleEndian.Uint32(foot[8:]) {
		return nil, errors.New("the description of the function is damaged: its checksum is wrong")
	}
	r := &reader{b: about, from: from, data: start}
	file := r.file()
	if r.err == nil && len(r.b) > 0 {
		r.fail("%s follow the description", tensor.Count(len(r.b), "byte"))
	}
	if r.err != nil {
		return nil, r.err
	}
	return file, nil
}

// reader reads the description of a file. After an error it reads zeros.
type reader struct {
	b       []byte
	from    io.ReaderAt
	at      int64 // of the next constant
	data    int64 // where constants end
	err     error
	consts  []*tensor.Array
	ops     []*tensor.Op
	outputs int
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
	r.b = nil
}

func (r *reader) int() int {
	n, rest, err := tensor.ParseInt(r.b)
	if err != nil {
		r.fail("the description is cut off")
	}
	r.b = rest
	return n
}

func (r *reader) text() string {
	text, rest, err := tensor.ParseText(r.b)
	if err != nil {
		r.fail("the description is cut off")
	}
	r.b = rest
	return text
}

// count is how many things follow, of which each takes a byte at least.
func (r *reader) count(what string) int {
	n := r.int()
	if n < 0 || n > len(r.b) {
		r.fail("%d %s do not fit into %d bytes", n, what, len(r.b))
		return 0
	}
	return n
}

func (r *reader) spec() (s tensor.Spec) {
	rest, err := s.DType.ParseAttr(r.b)
	if err != nil {
		r.fail("a spec: %w", err)
		return s
	}
	r.b = rest
	s.Shape = make(tensor.Shape, r.count("dimensions"))
	for i := range s.Shape {
		s.Shape[i] = r.int()
	}
	if err := s.Shape.Check(s.DType); err != nil {
		r.fail("a spec: %w", err)
	}
	return s
}

func (r *reader) specs() []tensor.Spec {
	var specs []tensor.Spec
	for n := r.count("specs"); n > 0 && r.err == nil; n-- {
		specs = append(specs, r.spec())
	}
	return specs
}

func (r *reader) file() *File {
	f := &File{Metadata: r.text()}
	f.Shapeless = r.int() != 0
	r.at = alignment
	for n := r.count("constants"); n > 0 && r.err == nil; n-- {
		r.constant()
	}
	known := tensor.Ops()
	for n := r.count("ops"); n > 0 && r.err == nil; n-- {
		name, schema := r.text(), r.text()
		op := known[name]
		if op == nil {
			r.fail("it needs the op %q, which this program does not have", name)
			break
		}
		have, err := op.AttrSchema()
		if err != nil || have != schema {
			r.fail("the op %s has the attributes %s in the file, and %s in this program", name, schema, have)
		}
		r.ops = append(r.ops, op)
	}
	for n := r.count("traces"); n > 0 && r.err == nil; n-- {
		f.Traces = append(f.Traces, r.trace())
	}
	return f
}

// constant reads the next constant's spec, and its elements from their place.
func (r *reader) constant() {
	spec, sum := r.spec(), r.int()
	if r.err != nil {
		return
	}
	n := spec.NBytes()
	if n > r.data-r.at {
		r.fail("constant %d, %v, has %d bytes, and %d are there", len(r.consts), spec, n, max(r.data-r.at, 0))
		return
	}
	b := make([]byte, n)
	if _, err := r.from.ReadAt(b, r.at); err != nil && n > 0 {
		r.fail("constant %d: %w", len(r.consts), err)
		return
	}
	if uint32(sum) != crc32.Checksum(b, castagnoli) || int(uint32(sum)) != sum {
		r.fail("constant %d, %v, is damaged: its checksum is wrong", len(r.consts), spec)
		return
	}
	if spec.DType == tensor.Bool && slices.ContainsFunc(b, func(v byte) bool { return v > 1 }) {
		r.fail("constant %d, %v, has bytes that are neither 0 nor 1", len(r.consts), spec)
		return
	}
	x := tensor.FromBytes(nil, spec, b)
	if err := x.Err(); err != nil {
		r.fail("constant %d: %w", len(r.consts), err)
	}
	r.consts = append(r.consts, x)
	r.at += n + (alignment-n%alignment)%alignment
}

func (r *reader) trace() *Trace {
	t := &Trace{Positional: r.int()}
	for n := r.count("names"); n > 0 && r.err == nil; n-- {
		t.Names = append(t.Names, r.text())
	}
	t.Inputs = r.specs()
	t.Outputs = r.specs()
	if t.Positional < 0 || t.Positional+len(t.Names) != len(t.Inputs) {
		r.fail("a trace has %d inputs, %d positional and %d named ones", len(t.Inputs), t.Positional, len(t.Names))
	}
	g := &compile.Graph{Inputs: len(t.Inputs), Consts: r.consts}
	for n := r.count("calls"); n > 0 && r.err == nil; n-- {
		g.Steps = append(g.Steps, r.step())
	}
	g.Outs = r.refs()
	for n := r.count("guards"); n > 0 && r.err == nil; n-- {
		g.Guards = append(g.Guards, compile.Guard{Of: r.ref(), Axis: r.int(), Size: r.int(), After: r.int(), Where: r.text()})
	}
	if r.err != nil {
		return t
	}
	var err error
	if t.Program, err = g.Program(); err != nil {
		r.fail("a trace is damaged: %w", err)
	}
	return t
}

func (r *reader) step() compile.Step {
	op, outs := r.int(), r.int()
	if r.outputs += max(outs, 0); outs < 1 || outs > mostOutputs || r.outputs > mostOutputs {
		r.fail("a call has %d outputs", outs)
	}
	s := compile.Step{Outs: outs, In: r.refs()}
	attrs := r.text()
	s.Fixed = r.specs()
	if op < 0 || op >= len(r.ops) {
		r.fail("there is no op %d", op)
	}
	if r.err != nil {
		return compile.Step{Outs: 1}
	}
	s.Op = r.ops[op]
	var err error
	if s.Attrs, err = s.Op.ParseAttrs([]byte(attrs)); err != nil {
		r.fail("a call of %w", err)
	}
	return s
}

func (r *reader) ref() compile.Ref {
	if len(r.b) == 0 {
		r.fail("the description is cut off")
		return compile.Ref{}
	}
	kind := r.b[0]
	r.b = r.b[1:]
	return compile.Ref{Kind: kind, I: r.int()}
}

func (r *reader) refs() []compile.Ref {
	var refs []compile.Ref
	for n := r.count("values"); n > 0 && r.err == nil; n-- {
		refs = append(refs, r.ref())
	}
	return refs
}
