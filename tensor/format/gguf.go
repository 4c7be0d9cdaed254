package format

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/mlxlua/mlxlua/tensor"
)

// A .gguf file is a header, metadata, what there is of tensors, and from the next multiple of an alignment on the
// tensors' bytes. Its numbers are little-endian; it has a version, and a change of the format another.
const (
	ggufMagic     = "GGUF"
	ggufVersion   = 3 // what is written; 2 differs in nothing that a little-endian file has
	ggufAlignment = 32
	ggufMaxRank   = 8
)

// alignmentKey is the metadata that gives another alignment.
const alignmentKey = "general.alignment"

// LoadGGUF is the arrays in a .gguf file by their names, and the file's metadata: arrays without dimensions (for
// numbers and booleans) or with one, strings, and []string. float64 metadata are float32, as in MLX. It fails if the
// file is cut short, or says of itself what cannot be.
//
// Tensors of plain types lie in the file's pages (see LoadSafetensors). Of the quantised types Q4_0, Q4_1 and Q8_0 give
// the packed matrix, scales and biases that MLX's quantized_matmul takes in groups of 32, under the names x.weight,
// x.scales and x.biases for x.weight, and MXFP4 the first two for its mode "mxfp4". All others are float16, decoded
// when they are used.
func LoadGGUF(path string, ctx ...*tensor.Ctx) (map[string]*tensor.Array, map[string]any, error) {
	c := tensor.Call(ctx)
	f, err := openFile(path)
	if err != nil {
		return nil, nil, c.Errorf("load", "%w", err)
	}
	defer f.close()
	return gguf(c, f, nil)
}

// LoadGGUFBlocks is LoadGGUF, but tensors of the types whose blocks quantized products read stay as they are: uint8
// under the tensor's name, with the bytes of a row in the last dimension, in the file's pages. Modes says which mode of
// quantization each of them has.
func LoadGGUFBlocks(path string, ctx ...*tensor.Ctx) (arrays map[string]*tensor.Array, metadata map[string]any,
	modes map[string]string, err error) {
	c := tensor.Call(ctx)
	f, err := openFile(path)
	if err != nil {
		return nil, nil, nil, c.Errorf("load", "%w", err)
	}
	defer f.close()
	modes = map[string]string{}
	arrays, metadata, err = gguf(c, f, modes)
	return arrays, metadata, modes, err
}

// ReadGGUF is LoadGGUF of a stream, all of which it reads.
func ReadGGUF(r io.Reader, ctx ...*tensor.Ctx) (map[string]*tensor.Array, map[string]any, error) {
	c := tensor.Call(ctx)
	f, err := readStream(r, "the stream")
	if err != nil {
		return nil, nil, c.Errorf("load", "%w", err)
	}
	return gguf(c, f, nil)
}

// gguf reads a file. With modes tensors in blocks stay so, and their modes are added to it.
func gguf(c *tensor.Ctx, f *contents, modes map[string]string) (map[string]*tensor.Array, map[string]any, error) {
	g := &ggufReader{c: c, metadata: map[string]any{}}
	err := f.guard(func(b []byte) error {
		g.b = b
		return g.read()
	})
	g.b = nil
	if err != nil {
		return nil, nil, c.Errorf("load", "%s: %w", f.name, err)
	}
	out := make(map[string]*tensor.Array, len(g.tensors))
	for _, t := range g.tensors {
		if mode := t.kind.mode(); modes != nil && mode != "" {
			t.asBytes()
			modes[t.name] = mode
		}
		if err := t.addTo(out, c, f); err != nil {
			return nil, nil, c.Errorf("load", "%s: tensor %.99q: %w", f.name, t.name, err)
		}
	}
	return out, g.metadata, nil
}

// ggufTensor is a tensor's place in a file.
type ggufTensor struct {
	placed
	kind ggufType
}

// ggufReader reads all of a file but the tensors.
type ggufReader struct {
	c        *tensor.Ctx
	b        []byte
	at       int
	metadata map[string]any
	tensors  []ggufTensor
}

// take is the next n bytes, which what is made of.
func (g *ggufReader) take(n uint64, what string) ([]byte, error) {
	if n > uint64(len(g.b)-g.at) {
		return nil, fmt.Errorf("the file ends within %s: at byte %d, %d bytes are to follow, and %d are there", what, g.at,
			n, len(g.b)-g.at)
	}
	g.at += int(n)
	return g.b[g.at-int(n) : g.at], nil
}

func (g *ggufReader) u32(what string) (uint32, error) {
	b, err := g.take(4, what)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint32(b), nil
}

func (g *ggufReader) u64(what string) (uint64, error) {
	b, err := g.take(8, what)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint64(b), nil
}

func (g *ggufReader) text(what string) (string, error) {
	n, err := g.u64(what)
	if err != nil {
		return "", err
	}
	b, err := g.take(n, what)
	return string(b), err
}

func (g *ggufReader) read() error {
	const what = "its header"
	if !bytes.HasPrefix(g.b, []byte(ggufMagic)) {
		return fmt.Errorf("no .gguf file: it does not start with %s", ggufMagic)
	}
	g.at = len(ggufMagic)
	version, err := g.u32(what)
	if err != nil {
		return err
	}
	if version != 2 && version != ggufVersion {
		if version&0xFFFF == 0 {
			return errors.New("it is a big-endian .gguf file, want a little-endian one")
		}
		return fmt.Errorf(".gguf version %d is not 2 or 3", version)
	}
	tensors, err := g.u64(what)
	if err != nil {
		return err
	}
	entries, err := g.u64(what)
	if err != nil {
		return err
	}
	for range entries {
		if err := g.entry(); err != nil {
			return err
		}
	}
	for i := range tensors {
		if err := g.tensor(i); err != nil {
			return err
		}
	}
	return g.place()
}

// entry reads a key of the metadata and its value.
func (g *ggufReader) entry() error {
	key, err := g.text("a key of the metadata")
	if err != nil {
		return err
	}
	if g.metadata[key] != nil {
		return fmt.Errorf("the metadata have %.99q twice", key)
	}
	what := fmt.Sprintf("the metadata %.99q", key)
	kind, err := g.u32(what)
	if err != nil {
		return err
	}
	g.metadata[key], err = g.value(kind, what)
	return err
}

// Types of metadata.
const (
	ggufBool    = 7
	ggufString  = 8
	ggufArray   = 9
	ggufFloat64 = 12
)

// ggufValues are the dtypes of metadata by the numbers of their types.
var ggufValues = map[uint32]tensor.DType{
	0: tensor.Uint8, 1: tensor.Int8, 2: tensor.Uint16, 3: tensor.Int16, 4: tensor.Uint32, 5: tensor.Int32,
	6: tensor.Float32, ggufBool: tensor.Bool, 10: tensor.Uint64, 11: tensor.Int64, ggufFloat64: tensor.Float64,
}

// value reads a value of the metadata.
func (g *ggufReader) value(kind uint32, what string) (any, error) {
	switch kind {
	case ggufString:
		return g.text(what)
	case ggufArray:
		return g.list(what)
	}
	return g.numbers(kind, 1, tensor.Shape{}, what)
}

// numbers reads numbers or booleans.
func (g *ggufReader) numbers(kind uint32, n uint64, shape tensor.Shape, what string) (any, error) {
	d, ok := ggufValues[kind]
	if !ok {
		return nil, fmt.Errorf("%s: its type is %d, which is none", what, kind)
	}
	if n > uint64(len(g.b)) { // so that the product cannot overflow
		n = math.MaxInt64 / 8
	}
	b, err := g.take(n*uint64(d.Size()), what)
	if err != nil {
		return nil, err
	}
	b = slices.Clone(b)
	switch d {
	case tensor.Bool:
		normalizeBools(b)
	case tensor.Float64:
		d = tensor.Float32
		for i := range int(n) {
			v := math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
			binary.LittleEndian.PutUint32(b[4*i:], math.Float32bits(float32(v)))
		}
		b = b[:4*n]
	}
	x := tensor.FromBytes(g.c, tensor.Spec{Shape: shape, DType: d}, b)
	return x, x.Err()
}

// list reads an array of the metadata.
func (g *ggufReader) list(what string) (any, error) {
	kind, err := g.u32(what)
	if err != nil {
		return nil, err
	}
	n, err := g.u64(what)
	if err != nil {
		return nil, err
	}
	switch kind {
	case ggufString:
		out := []string{}
		for range n {
			s, err := g.text(what)
			if err != nil {
				return nil, err
			}
			out = append(out, s)
		}
		return out, nil
	case ggufArray:
		return nil, fmt.Errorf("%s: an array of arrays is not supported", what)
	}
	return g.numbers(kind, n, tensor.Shape{int(min(n, math.MaxInt))}, what)
}

// tensor reads what there is of tensor i.
func (g *ggufReader) tensor(i uint64) error {
	name, err := g.text(fmt.Sprintf("the name of tensor %d", i))
	if err != nil {
		return err
	}
	what := fmt.Sprintf("what there is of tensor %.99q", name)
	rank, err := g.u32(what)
	if err != nil {
		return err
	}
	if rank > ggufMaxRank {
		return fmt.Errorf("tensor %.99q has %d dimensions, at most %d are accepted", name, rank, ggufMaxRank)
	}
	sizes := make([]uint64, rank)
	for k := range sizes { // the last dimension comes first
		if sizes[len(sizes)-1-k], err = g.u64(what); err != nil {
			return err
		}
	}
	number, err := g.u32(what)
	if err != nil {
		return err
	}
	offset, err := g.u64(what)
	if err != nil {
		return err
	}
	t, err := newGGUFTensor(sizes, number, offset)
	if err != nil {
		return fmt.Errorf("tensor %.99q: %w", name, err)
	}
	t.name = name
	g.tensors = append(g.tensors, t)
	return nil
}

func newGGUFTensor(sizes []uint64, number uint32, offset uint64) (t ggufTensor, err error) {
	kind, ok := ggufTypes[number]
	if !ok {
		return t, fmt.Errorf("its type is %d, which is unknown here", number)
	}
	t.kind = kind
	shape, err := dims(sizes)
	if err != nil {
		return t, err
	}
	t.spec = tensor.Spec{Shape: shape, DType: kind.dtype}
	if kind.block > 1 {
		t.spec.DType = tensor.Float16
		if n := len(shape); n == 0 || shape[n-1]%kind.block != 0 {
			return t, fmt.Errorf("%s has shape %v, want a last dimension of whole blocks of %d", kind.name, shape, kind.block)
		}
	}
	if err := shape.Check(t.spec.DType); err != nil {
		return t, err
	}
	t.begin = int64(min(offset, math.MaxInt64))
	length := int64(shape.Size()/kind.block) * int64(kind.bytes)
	if t.begin > math.MaxInt64-length {
		return t, fmt.Errorf("it begins at byte %d of the data", offset)
	}
	t.end = t.begin + length
	return t, nil
}

// place checks the tensors' places against the file and each other, and makes them places in the file.
func (g *ggufReader) place() error {
	align := int64(ggufAlignment)
	if v, ok := g.metadata[alignmentKey]; ok {
		x, ok := v.(*tensor.Array)
		if !ok {
			return fmt.Errorf("the metadata %.99q is no number", alignmentKey)
		}
		b, err := x.Bytes(context.Background())
		if err != nil {
			return err
		}
		if align, err = alignmentOf(x.Spec(), b); err != nil {
			return fmt.Errorf("the metadata %.99q: %w", alignmentKey, err)
		}
	}
	data := (int64(g.at) + align - 1) &^ (align - 1)
	room := max(int64(len(g.b))-data, 0)
	byPlace := make([]placed, len(g.tensors))
	for i, t := range g.tensors {
		if t.end > room {
			return fmt.Errorf("tensor %.99q lies at bytes %d to %d of the data, of which the file has %d: is it cut short?",
				t.name, t.begin, t.end, room)
		}
		byPlace[i] = t.placed
		g.tensors[i].begin += data
		g.tensors[i].end += data
	}
	sortByPlace(byPlace)
	for i := 1; i < len(byPlace); i++ {
		if t, before := byPlace[i], byPlace[i-1]; t.begin < before.end {
			return fmt.Errorf("tensor %.99q begins at byte %d of the data, within tensor %.99q", t.name, t.begin, before.name)
		}
	}
	return nil
}

// asBytes makes of a tensor in blocks one of its bytes.
func (t *ggufTensor) asBytes() {
	last := len(t.spec.Shape) - 1
	t.spec = tensor.Spec{Shape: t.spec.Shape.Clone(), DType: tensor.Uint8}
	t.spec.Shape[last] = t.spec.Shape[last] / t.kind.block * t.kind.bytes
	t.kind = ggufType{name: t.kind.name, block: 1, bytes: 1, dtype: tensor.Uint8}
}

// addTo makes the tensor's arrays.
func (t *ggufTensor) addTo(out map[string]*tensor.Array, c *tensor.Ctx, f *contents) error {
	add := func(name string, x *tensor.Array) error {
		if out[name] != nil {
			return fmt.Errorf("two arrays are named %.99q", name)
		}
		out[name] = x
		return nil
	}
	switch {
	case t.kind.packed != nil:
		names, arrays, err := t.unpacked(c, f)
		if err != nil {
			return err
		}
		for i, name := range names {
			if err := add(name, arrays[i]); err != nil {
				return err
			}
		}
		return nil
	case t.kind.block == 1:
		x, err := f.array(c, t.spec, t.begin)
		if err != nil {
			return err
		}
		return add(t.name, x)
	}
	if err := tensor.Fits(c, t.spec); err != nil {
		return err
	}
	return add(t.name, f.lazy(c, []tensor.Spec{t.spec}, func(_ []byte, out []tensor.HostOperand) error {
		return t.eachBlock(f, func(i int, block []byte, elements []float32) {
			t.kind.decode(block, elements)
			for k, v := range elements {
				binary.LittleEndian.PutUint16(out[0].Bytes[2*(i*t.kind.block+k):], tensor.Float16Bits(v))
			}
		})
	})[0])
}

// unpacked is the arrays of a tensor that has the form of a packed matrix.
func (t *ggufTensor) unpacked(c *tensor.Ctx, f *contents) ([]string, []*tensor.Array, error) {
	p, block := t.kind.packed, t.kind.block
	last := len(t.spec.Shape) - 1
	codes, scales := t.spec.Shape.Clone(), t.spec.Shape.Clone()
	codes[last] = codes[last] * p.bits / 32
	scales[last] /= block
	prefix := strings.TrimSuffix(t.name, ".weight")
	names := []string{t.name, prefix + ".scales"}
	specs := []tensor.Spec{{Shape: codes, DType: tensor.Uint32}, {Shape: scales, DType: tensor.Uint8}}
	if p.affine {
		names = append(names, prefix+".biases")
		specs[1].DType = tensor.Float16
		specs = append(specs, specs[1])
	}
	for _, spec := range specs {
		if err := fits(c, spec); err != nil {
			return nil, nil, err
		}
	}
	size := block * p.bits / 8
	return names, f.lazy(c, specs, func(_ []byte, out []tensor.HostOperand) error {
		return t.eachBlock(f, func(i int, b []byte, _ []float32) {
			scale, bias := p.unpack(b, out[0].Bytes[i*size:][:size])
			if p.affine {
				binary.LittleEndian.PutUint16(out[1].Bytes[2*i:], scale)
				binary.LittleEndian.PutUint16(out[2].Bytes[2*i:], bias)
			} else {
				out[1].Bytes[i] = byte(scale)
			}
		})
	}), nil
}

// leastShare is how many blocks are worth a goroutine.
const leastShare = 4096

// eachBlock calls decode with the blocks of a tensor and their numbers, on several processors where there are many, and
// with room for a block's elements.
func (t *ggufTensor) eachBlock(f *contents, decode func(i int, block []byte, elements []float32)) error {
	n := t.spec.Shape.Size() / t.kind.block
	workers := max(1, min(runtime.GOMAXPROCS(0), n/leastShare))
	errs := make([]error, workers)
	var wait sync.WaitGroup
	for w := range workers {
		wait.Go(func() {
			errs[w] = f.guard(func(b []byte) error { // each goroutine by itself: a fault is its own
				elements := make([]float32, t.kind.block)
				for i := n * w / workers; i < n*(w+1)/workers; i++ {
					decode(i, b[int(t.begin)+i*t.kind.bytes:][:t.kind.bytes], elements)
				}
				return nil
			})
		})
	}
	wait.Wait()
	return errors.Join(errs...)
}
