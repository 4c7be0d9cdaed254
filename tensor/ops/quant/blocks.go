package quant

import (
	_ "embed"
	"fmt"

	"github.com/mlxlua/mlxlua/tensor"
)

// Matrices in llama.cpp's blocks, as .gguf files have them: a row is blocks of bytes one after the other, and a block
// holds the codes of its elements with their scales.

// blocks says what the bytes of a block mean, in the words of blocks.metal.
type blocks struct {
	name     string
	elements int
	bits     int // of a code
	bytes    int
	run      int    // neighbours that share a factor: 16, 32 or a multiple
	code     string // of an element
	zero     int    // the code of 0
	factor   string // of a run
	least    string // what is taken from a run's elements, "" if nothing is
}

// The factors and least values of eight runs, of 6 bits each, in twelve bytes: the low bits of the latter four of
// either lie together, their high bits above the former four.
const (
	sixBitFactor = "HALF(0) * ACC(NUMBERS(4, 4, 4, j + j / 4 * 12) | NUMBERS(4, 2, 4, j + 8) << 4)"
	sixBitLeast  = "HALF(2) * ACC(NUMBERS(4, 4, 4, j + 8 + j / 4 * 8) | NUMBERS(4, 2, 4, j + 24) << 4)"
)

// blockTypes are the types of blocks, each a mode. An element is factor * (code - zero) - least, in llama.cpp's order
// of operations; the product is exact in float32.
var blockTypes = []blocks{
	{name: "q4_0", elements: 32, bits: 4, bytes: 18, run: 32, code: "CODES(2, 4, 16)", zero: 8, factor: "HALF(0)"},
	{name: "q4_1", elements: 32, bits: 4, bytes: 20, run: 32, code: "CODES(4, 4, 16)", factor: "HALF(0)",
		least: "-HALF(2)"},
	{name: "q5_0", elements: 32, bits: 5, bytes: 22, run: 32, code: "CODES(6, 4, 16) | CODES(2, 1, 1) << 4",
		zero: 16, factor: "HALF(0)"},
	{name: "q5_1", elements: 32, bits: 5, bytes: 24, run: 32, code: "CODES(8, 4, 16) | CODES(4, 1, 1) << 4",
		factor: "HALF(0)", least: "-HALF(2)"},
	{name: "q8_0", elements: 32, bits: 8, bytes: 34, run: 32, code: "CODES(2, 8, 32) ^ 128", zero: 128,
		factor: "HALF(0)"},
	{name: "q2_k", elements: 256, bits: 2, bytes: 84, run: 16, code: "CODES(16, 2, 32)",
		factor: "HALF(80) * ACC(NUMBERS(0, 4, 16, j))", least: "HALF(82) * ACC(NUMBERS(0, 4, 16, j + 16))"},
	{name: "q3_k", elements: 256, bits: 3, bytes: 110, run: 16, code: "CODES(32, 2, 32) | CODES(0, 1, 32) << 2",
		zero: 4, factor: "HALF(108) * ACC((NUMBERS(96, 4, 8, j) | NUMBERS(104, 2, 4, j) << 4) - 32)"},
	{name: "q4_k", elements: 256, bits: 4, bytes: 144, run: 32, code: "CODES(16, 4, 32)", factor: sixBitFactor,
		least: sixBitLeast},
	{name: "q5_k", elements: 256, bits: 5, bytes: 176, run: 32, code: "CODES(48, 4, 32) | CODES(16, 1, 32) << 4",
		factor: sixBitFactor, least: sixBitLeast},
	{name: "q6_k", elements: 256, bits: 6, bytes: 210, run: 16, code: "CODES(0, 4, 64) | CODES(128, 2, 32) << 4",
		zero: 32, factor: "HALF(208) * ACC(as_type<char>(b[192 + j + r]))"},
}

// BlockModes are the modes of matrices in llama.cpp's blocks, which are uint8: a row is whole blocks.
func BlockModes() []string {
	names := make([]string, len(blockTypes))
	for i, b := range blockTypes {
		names[i] = b.name
	}
	return names
}

// BlockSize is how many elements a block of a mode has, in how many bytes, with how many bits in a code; ok is whether
// the mode is of blocks.
func BlockSize(mode string) (elements, bytes, bits int, ok bool) {
	for _, b := range blockTypes {
		if b.name == mode {
			return b.elements, b.bytes, b.bits, true
		}
	}
	return 0, 0, 0, false
}

func blockFormats() []packedFormat {
	out := make([]packedFormat, len(blockTypes))
	for i, b := range blockTypes {
		out[i] = packedFormat{b.name, []int{b.elements}, []int{b.bits}, b.elements, b.bits}
	}
	return out
}

// blocks is the type of the blocks that a mode has, nil if it has none.
func (a quantAttrs) blocks() *blocks {
	if a.Mode < firstBlocks {
		return nil
	}
	return &blockTypes[a.Mode-firstBlocks]
}

// Macros says to a kernel what blocks.metal asks for.
func (a quantAttrs) Macros() string {
	b := a.blocks()
	if b == nil {
		return "#define BLOCKS 0\n"
	}
	text := fmt.Sprintf("#define BLOCKS 1\n#define BYTES %d\n#define RUN %d\n#define CODE %s\n#define ZERO %d\n"+
		"#define FACTOR %s\n", b.bytes, b.run, b.code, b.zero, b.factor)
	if b.least != "" {
		text += fmt.Sprintf("#define LEAST %s\n", b.least)
	}
	return text
}

//go:embed blocks.metal
var blocksText string

// checkBlocks returns what is wrong with a matrix of blocks; cols is the elements of a row.
func (a quantAttrs) checkBlocks(w tensor.Spec) (cols int, err error) {
	name, b := formats[a.Mode].name, a.blocks()
	if w.DType != tensor.Uint8 {
		return 0, fmt.Errorf("the packed matrix has dtype %v, want uint8 for the blocks of mode %s", w.DType, name)
	}
	last := len(w.Shape) - 1
	if last < 1 || w.Shape[last]%b.bytes != 0 {
		return 0, fmt.Errorf("a packed matrix of shape %v has no rows of whole blocks: those of mode %s have %d bytes",
			w.Shape, name, b.bytes)
	}
	return w.Shape[last] / b.bytes * b.elements, nil
}

// contiguous are the first n inputs of a call as they are read: the packed matrix is input at, behind which its scales
// and biases come. Blocks stand for these, too, and are not made contiguous thrice.
func (a quantAttrs) contiguous(r *tensor.Run, n, at int) ([]tensor.Operand, error) {
	if a.blocks() == nil {
		return r.AllContiguous(n)
	}
	in, err := r.AllContiguous(at + 1)
	for err == nil && len(in) < n {
		in = append(in, in[at])
	}
	return in, err
}
