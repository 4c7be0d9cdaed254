package quant

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

// Quantization says how a matrix is packed: GroupSize neighbours of a row share a scale, an element has Bits bits.
// Mode is "affine", which "" means too, "mxfp4", "mxfp8", "nvfp4", or one of [BlockModes]; the zero value of GroupSize
// and Bits means the mode's default. GlobalScale, for nvfp4, is one float32 that groups have as a factor beside their
// scales; nil: none.
type Quantization struct {
	GroupSize, Bits int
	Mode            string
	GlobalScale     *tensor.Array
}

// quantization reads the parameters group_size, bits and mode of a call, from i on, and global_scale if there is one.
func quantization(a *sig.Args, i, global int) (Quantization, error) {
	for k, name := range []string{"group_size", "bits"} {
		if a.Given(i+k) && a.Int(i+k) <= 0 {
			return Quantization{}, fmt.Errorf("%s is %d, want a positive number", name, a.Int(i+k))
		}
	}
	q := Quantization{GroupSize: a.Int(i), Bits: a.Int(i + 1), Mode: a.Text(i + 2)}
	if global >= 0 {
		q.GlobalScale = a.Array(global)
	}
	return q, nil
}

// mode is what the bits of an element and of a scale mean, as packing.metal says. It counts formats, which from
// firstBlocks on are those of blocks.go.
type mode uint8

const (
	affine mode = iota
	mxfp4
	mxfp8
	nvfp4
	firstBlocks
)

// formats are the modes with the sizes of groups and of elements that they permit.
var formats = append([]packedFormat{
	affine: {"affine", []int{32, 64, 128}, []int{1, 2, 3, 4, 5, 6, 8}, 64, 4},
	mxfp4:  {"mxfp4", []int{32}, []int{4}, 32, 4},
	mxfp8:  {"mxfp8", []int{32}, []int{8}, 32, 8},
	nvfp4:  {"nvfp4", []int{16}, []int{4}, 16, 4},
}, blockFormats()...)

type packedFormat struct {
	name                    string
	groups, bits            []int
	defaultGroup, wantsBits int
}

// quantAttrs is a Quantization that was checked.
type quantAttrs struct {
	Group, Bits int
	Mode        mode
}

// resolve fills in the defaults and refuses what is not supported.
func (q Quantization) resolve() (quantAttrs, error) {
	name := q.Mode
	if name == "" {
		name = "affine"
	}
	a := quantAttrs{Group: q.GroupSize, Bits: q.Bits, Mode: mode(len(formats))}
	for m := range formats {
		if formats[m].name == name {
			a.Mode = mode(m)
		}
	}
	if int(a.Mode) == len(formats) {
		return a, fmt.Errorf("unknown mode %q, want %s", name, modes())
	}
	f := formats[a.Mode]
	if a.Group == 0 {
		a.Group = f.defaultGroup
	}
	if a.Bits == 0 {
		a.Bits = f.wantsBits
	}
	if !slices.Contains(f.groups, a.Group) {
		return a, fmt.Errorf("group_size is %d, want %s for mode %s", a.Group, choice(f.groups), name)
	}
	if !slices.Contains(f.bits, a.Bits) {
		return a, fmt.Errorf("bits is %d, want %s for mode %s", a.Bits, choice(f.bits), name)
	}
	return a, nil
}

// modes lists the modes for an error.
func modes() string {
	names := make([]string, len(formats))
	for i, f := range formats {
		names[i] = f.name
	}
	return choice(names)
}

// choice lists numbers or words for an error.
func choice[T any](of []T) string {
	words := make([]string, len(of))
	for i, n := range of {
		words[i] = fmt.Sprint(n)
	}
	last := len(words) - 1
	if last == 0 {
		return words[0]
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// checkGlobal refuses a global scale that the mode does not have or that has another dtype.
func checkGlobal(c *tensor.Ctx, op string, a quantAttrs, scale *tensor.Array) *tensor.Array {
	switch {
	case scale == nil:
		return nil
	case scale.Err() != nil:
		return kit.FailedAs(c, op, scale)
	case a.Mode != nvfp4:
		return tensor.Fail(c, op, "a global scale is for mode nvfp4, the mode is %s", formats[a.Mode].name)
	case scale.DType() != tensor.Float32:
		return tensor.Fail(c, op, "the global scale has dtype %v, want float32", scale.DType())
	}
	return nil
}

// words is what a group takes of a packed matrix: 32-bit words, of blocks bytes.
func (a quantAttrs) words() int {
	if b := a.blocks(); b != nil {
		return b.bytes
	}
	return a.Group * a.Bits / 32
}

// groupsIn is the shape of a packed matrix by its groups; scales is what there is one of for each group.
func (a quantAttrs) groupsIn(scales tensor.Shape) tensor.Shape {
	if a.blocks() == nil {
		return scales
	}
	s := scales.Clone() // of the matrix itself: see packed
	s[len(s)-1] /= a.words()
	return s
}

// packingText defines what the kernels ask for beside GROUP, BITS and MODE.
//
//go:embed packing.metal
var packingText string

// checkPacked returns what is wrong with the shapes and dtypes of a packed matrix; cols is the elements of a row.
func (a quantAttrs) checkPacked(w, scales, biases tensor.Spec) (cols int, err error) {
	if a.blocks() != nil {
		return a.checkBlocks(w)
	}
	if w.DType != tensor.Uint32 {
		return 0, fmt.Errorf("the packed matrix has dtype %v, want uint32", w.DType)
	}
	if !scales.Shape.Equal(biases.Shape) {
		return 0, fmt.Errorf("scales have shape %v, biases %v", scales.Shape, biases.Shape)
	}
	n, m := len(w.Shape)-1, len(scales.Shape)-1
	if n < 1 || m != n || !slices.Equal(w.Shape[:n], scales.Shape[:n]) || w.Shape[n] != scales.Shape[n]*a.words() {
		return 0, fmt.Errorf("a packed matrix of shape %v does not fit scales of shape %v with group_size=%d and bits=%d",
			w.Shape, scales.Shape, a.Group, a.Bits)
	}
	return scales.Shape[n] * a.Group, nil
}

// checkFactors returns what is wrong with the shape of a global scale of matrices: it has one element, or one for each
// matrix of the leading dimensions, with ones behind them (which batches make of it).
func checkFactors(scale tensor.Spec, of tensor.Shape) error {
	s := scale.Shape
	if s.Size() == 1 {
		return nil
	}
	k := 0
	for k < len(s) && len(s) == len(of) && s[k] == of[k] {
		k++
	}
	if len(s) != len(of) || s[k:].Size() != 1 {
		return fmt.Errorf("the global scale has shape %v, want a single number", s)
	}
	return nil
}

// packed checks the arguments that all users of packed matrices take, and returns what stands for scales and biases:
// modes that have no biases give the scales in their place, and those of blocks, which hold their scales, the packed
// matrix for both, so that all modes have the same inputs.
func packed(c *tensor.Ctx, op string, w, scales, biases *tensor.Array, q Quantization) (parts [2]*tensor.Array,
	a quantAttrs, fail *tensor.Array) {
	if f := kit.Unusable(c, op, w); f != nil {
		return parts, a, f
	}
	a, err := q.resolve()
	if err != nil {
		return parts, a, tensor.Fail(c, op, "%w", err)
	}
	name := formats[a.Mode].name
	if a.Mode != affine && biases != nil {
		return parts, a, tensor.Fail(c, op, "mode %s has no biases", name)
	}
	switch {
	case a.blocks() != nil && scales != nil:
		return parts, a, tensor.Fail(c, op, "mode %s has its scales in its blocks, and none beside them", name)
	case a.blocks() != nil:
		return [2]*tensor.Array{w, w}, a, nil
	case scales == nil:
		return parts, a, tensor.Fail(c, op, "mode %s needs scales", name)
	}
	if f := kit.Unusable(c, op, scales); f != nil {
		return parts, a, f
	}
	if a.Mode != affine {
		if scales.DType() != tensor.Uint8 {
			return parts, a, tensor.Fail(c, op, "scales have dtype %v, want uint8 for mode %s", scales.DType(), name)
		}
		return [2]*tensor.Array{scales, scales}, a, nil
	}
	if biases == nil {
		return parts, a, tensor.Fail(c, op, "mode affine needs biases")
	}
	if f := kit.Unusable(c, op, biases); f != nil {
		return parts, a, f
	}
	for i, x := range []*tensor.Array{scales, biases} {
		if f := kit.Floats([]string{"scales", "biases"}[i]+" have dtype").Refused(c, op, x.DType()); f != nil {
			return parts, a, f
		}
	}
	return [2]*tensor.Array{scales, biases}, a, nil
}
