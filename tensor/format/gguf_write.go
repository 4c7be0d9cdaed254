package format

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/mlxlua/mlxlua/tensor"
)

// SaveGGUF evaluates arrays and writes them to a .gguf file of version 3 by their names: float32, float16, bfloat16,
// float64 and signed integers. Metadata, which may be nil, are what LoadGGUF gives: arrays of at most one dimension
// (bool, integers, float32), strings and []string. Modes, which may be nil, names those arrays of uint8 that are
// blocks, as LoadGGUFBlocks does. The file appears, or is replaced, when all of it has been written.
func SaveGGUF(ctx context.Context, path string, arrays map[string]*tensor.Array, metadata map[string]any,
	modes map[string]string) error {
	if err := Evaluate(ctx, arrays); err != nil {
		return err
	}
	return WriteFile("save_gguf", path, func(w io.Writer) error { return WriteGGUF(ctx, w, arrays, metadata, modes) })
}

// WriteGGUF is SaveGGUF to a stream.
func WriteGGUF(ctx context.Context, w io.Writer, arrays map[string]*tensor.Array, metadata map[string]any,
	modes map[string]string) error {
	g := &ggufWriter{align: ggufAlignment}
	names := slices.Sorted(maps.Keys(arrays))
	for _, name := range slices.Sorted(maps.Keys(modes)) {
		if arrays[name] == nil {
			return fmt.Errorf("there is no tensor %.99q, which is to be blocks of mode %.99q", name, modes[name])
		}
	}
	g.Write([]byte(ggufMagic))
	g.u32(ggufVersion)
	g.u64(uint64(len(names)))
	g.u64(uint64(len(metadata)))
	for _, key := range slices.Sorted(maps.Keys(metadata)) {
		g.text(key)
		if err := g.value(ctx, key, metadata[key]); err != nil {
			return fmt.Errorf("the metadata %.99q: %w", key, err)
		}
	}
	at := int64(0)
	for _, name := range names {
		n, err := g.tensor(name, arrays[name].Spec(), at, modes[name])
		if err != nil {
			return fmt.Errorf("tensor %.99q: %w", name, err)
		}
		at += n + g.padding(n)
	}
	g.Write(make([]byte, g.padding(int64(g.Len()))))
	if _, err := w.Write(g.Bytes()); err != nil {
		return err
	}
	for _, name := range names {
		if err := writeElements(ctx, w, arrays[name]); err != nil {
			return fmt.Errorf("tensor %.99q: %w", name, err)
		}
		if _, err := w.Write(make([]byte, g.padding(arrays[name].Spec().NBytes()))); err != nil {
			return err
		}
	}
	return nil
}

// ggufWriter makes all of a file but the tensors.
type ggufWriter struct {
	bytes.Buffer
	align int64
}

func (g *ggufWriter) u32(v uint32) { g.Write(binary.LittleEndian.AppendUint32(nil, v)) }

func (g *ggufWriter) u64(v uint64) { g.Write(binary.LittleEndian.AppendUint64(nil, v)) }

func (g *ggufWriter) text(s string) {
	g.u64(uint64(len(s)))
	g.WriteString(s)
}

// padding is how many bytes follow n to make a multiple of the alignment.
func (g *ggufWriter) padding(n int64) int64 { return -n & (g.align - 1) }

// value writes the type and the value of metadata.
func (g *ggufWriter) value(ctx context.Context, key string, v any) error {
	switch v := v.(type) {
	case string:
		g.u32(ggufString)
		g.text(v)
		return nil
	case []string:
		g.u32(ggufArray)
		g.u32(ggufString)
		g.u64(uint64(len(v)))
		for _, s := range v {
			g.text(s)
		}
		return nil
	case *tensor.Array:
		return g.numbers(ctx, key, v)
	}
	return fmt.Errorf("it is a %T, want an array, a string or strings", v)
}

// numbers writes an array as metadata.
func (g *ggufWriter) numbers(ctx context.Context, key string, x *tensor.Array) error {
	if err := x.Err(); err != nil {
		return err
	}
	spec, found := x.Spec(), false
	for number, d := range ggufValues {
		if d != spec.DType {
			continue
		}
		found = true
		if len(spec.Shape) == 1 {
			g.u32(ggufArray)
			g.u32(number)
			g.u64(uint64(spec.Shape[0]))
		} else {
			g.u32(number)
		}
	}
	if !found || len(spec.Shape) > 1 {
		return fmt.Errorf("it is an array %v, want at most one dimension of bools, integers, float32 or float64", spec)
	}
	b, err := x.Bytes(ctx)
	if err != nil {
		return err
	}
	g.Write(b)
	if key != alignmentKey {
		return nil
	}
	if g.align, err = alignmentOf(spec, b); err != nil {
		return err
	}
	return nil
}

// alignmentOf is the alignment that an array says.
func alignmentOf(spec tensor.Spec, b []byte) (int64, error) {
	if spec.DType != tensor.Uint32 || len(spec.Shape) != 0 {
		return 0, fmt.Errorf("it is an array %v, want one uint32", spec)
	}
	n := int64(binary.LittleEndian.Uint32(b))
	if n == 0 || n&(n-1) != 0 {
		return 0, fmt.Errorf("it is %d, want a power of two", n)
	}
	return n, nil
}

// tensor writes what there is of a tensor that lies at a place of the data, and gives its length. One with a mode is
// blocks.
func (g *ggufWriter) tensor(name string, spec tensor.Spec, at int64, mode string) (int64, error) {
	if len(spec.Shape) > ggufMaxRank {
		return 0, fmt.Errorf("it has %d dimensions, at most %d are possible", len(spec.Shape), ggufMaxRank)
	}
	number, shape, err := typeOf(spec, mode)
	if err != nil {
		return 0, err
	}
	g.text(name)
	g.u32(uint32(len(shape)))
	for i := len(shape) - 1; i >= 0; i-- { // the last dimension comes first
		g.u64(uint64(shape[i]))
	}
	g.u32(number)
	g.u64(uint64(at))
	return spec.NBytes(), nil
}

// typeOf is the number of the type that an array is written as, and the shape of the tensor.
func typeOf(spec tensor.Spec, mode string) (number uint32, shape tensor.Shape, err error) {
	if mode == "" {
		for number, kind := range ggufTypes {
			if kind.block == 1 && kind.dtype == spec.DType {
				return number, spec.Shape, nil
			}
		}
		return 0, nil, fmt.Errorf("the format has no type for %v", spec.DType)
	}
	number, kind, ok := ofMode(mode)
	if !ok {
		return 0, nil, fmt.Errorf("%.99q is no mode of blocks", mode)
	}
	last := len(spec.Shape) - 1
	if spec.DType != tensor.Uint8 || last < 0 || spec.Shape[last]%kind.bytes != 0 {
		return 0, nil, fmt.Errorf("it is %v, want uint8 with a last dimension of whole blocks of %d bytes for mode %s", spec,
			kind.bytes, mode)
	}
	shape = spec.Shape.Clone()
	shape[last] = shape[last] / kind.bytes * kind.block
	return number, shape, nil
}
