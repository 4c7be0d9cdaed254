package format

import (
	"encoding/binary"
	"math"
	"strings"

	"github.com/mlxlua/mlxlua/tensor"
)

// ggufType is a type of a tensor's elements in .gguf files.
type ggufType struct {
	name   string
	block  int // elements that are coded together; tensors have whole blocks in their last dimension
	bytes  int // of a block
	dtype  tensor.DType
	packed *ggufPacking                  // it is read as arrays for mx.quantized_matmul
	decode func(b []byte, out []float32) // it is read as float16; out is one block
	blocks bool                          // quantized products have a mode for its blocks
}

// mode is that mode: the type's name in small letters; "" if there is none.
func (k ggufType) mode() string {
	if !k.blocks {
		return ""
	}
	return strings.ToLower(k.name)
}

// ofMode is the type that has a mode.
func ofMode(mode string) (number uint32, kind ggufType, ok bool) {
	for number, kind := range ggufTypes {
		if kind.blocks && kind.mode() == mode {
			return number, kind, true
		}
	}
	return 0, kind, false
}

// superBlock is how many elements the blocks of the later types have.
const superBlock = 256

// ggufTypes are the types by their numbers in files. Q8_1 and Q8_K are not among them: they are of intermediate
// results.
var ggufTypes = map[uint32]ggufType{
	0:  {name: "F32", block: 1, bytes: 4, dtype: tensor.Float32},
	1:  {name: "F16", block: 1, bytes: 2, dtype: tensor.Float16},
	24: {name: "I8", block: 1, bytes: 1, dtype: tensor.Int8},
	25: {name: "I16", block: 1, bytes: 2, dtype: tensor.Int16},
	26: {name: "I32", block: 1, bytes: 4, dtype: tensor.Int32},
	27: {name: "I64", block: 1, bytes: 8, dtype: tensor.Int64},
	28: {name: "F64", block: 1, bytes: 8, dtype: tensor.Float64},
	30: {name: "BF16", block: 1, bytes: 2, dtype: tensor.BFloat16},
	2:  {name: "Q4_0", block: 32, bytes: 18, packed: &ggufPacking{4, true, q4x0}, blocks: true},
	3:  {name: "Q4_1", block: 32, bytes: 20, packed: &ggufPacking{4, true, q4x1}, blocks: true},
	8:  {name: "Q8_0", block: 32, bytes: 34, packed: &ggufPacking{8, true, q8x0}, blocks: true},
	39: {name: "MXFP4", block: 32, bytes: 17, packed: &ggufPacking{4, false, mxfp4}},
	6:  {name: "Q5_0", block: 32, bytes: 22, decode: q5x0, blocks: true},
	7:  {name: "Q5_1", block: 32, bytes: 24, decode: q5x1, blocks: true},
	10: {name: "Q2_K", block: superBlock, bytes: 84, decode: q2k, blocks: true},
	11: {name: "Q3_K", block: superBlock, bytes: 110, decode: q3k, blocks: true},
	12: {name: "Q4_K", block: superBlock, bytes: 144, decode: q4k, blocks: true},
	13: {name: "Q5_K", block: superBlock, bytes: 176, decode: q5k, blocks: true},
	14: {name: "Q6_K", block: superBlock, bytes: 210, decode: q6k, blocks: true},
	16: {name: "IQ2_XXS", block: superBlock, bytes: 66, decode: iq2xxs},
	17: {name: "IQ2_XS", block: superBlock, bytes: 74, decode: iq2xs},
	18: {name: "IQ3_XXS", block: superBlock, bytes: 98, decode: iq3xxs},
	19: {name: "IQ1_S", block: superBlock, bytes: 50, decode: iq1s},
	20: {name: "IQ4_NL", block: 32, bytes: 18, decode: iq4nl},
	21: {name: "IQ3_S", block: superBlock, bytes: 110, decode: iq3s},
	22: {name: "IQ2_S", block: superBlock, bytes: 82, decode: iq2s},
	23: {name: "IQ4_XS", block: superBlock, bytes: 136, decode: iq4xs},
	29: {name: "IQ1_M", block: superBlock, bytes: 56, decode: iq1m},
	34: {name: "TQ1_0", block: superBlock, bytes: 54, decode: tq1},
	35: {name: "TQ2_0", block: superBlock, bytes: 66, decode: tq2},
	40: {name: "NVFP4", block: 64, bytes: 36, decode: nvfp4},
}

// ggufPacking is a type that has the form of MLX's packed matrices in groups of 32: a block is a group.
type ggufPacking struct {
	bits   int
	affine bool // with float16 scales and biases; else MLX's mode mxfp4, with a byte of scale
	// unpack writes a block's codes, in order and low bits first, and gives its scale and bias.
	unpack func(b, codes []byte) (scale, bias uint16)
}

func half(b []byte) float32 { return tensor.Float16Value(binary.LittleEndian.Uint16(b)) }

// nibbles puts 32 codes of 4 bits in order: byte j of a block has codes j and j + 16.
func nibbles(b, codes []byte) {
	for j := range 8 {
		codes[j] = b[2*j]&15 | b[2*j+1]<<4
		codes[j+8] = b[2*j]>>4 | b[2*j+1]&0xF0
	}
}

func q4x0(b, codes []byte) (scale, bias uint16) {
	nibbles(b[2:], codes)
	return binary.LittleEndian.Uint16(b), tensor.Float16Bits(-8 * half(b))
}

func q4x1(b, codes []byte) (scale, bias uint16) {
	nibbles(b[4:], codes)
	return binary.LittleEndian.Uint16(b), binary.LittleEndian.Uint16(b[2:])
}

func q8x0(b, codes []byte) (scale, bias uint16) {
	for j := range 32 {
		codes[j] = b[2+j] ^ 0x80
	}
	return binary.LittleEndian.Uint16(b), tensor.Float16Bits(-128 * half(b))
}

func mxfp4(b, codes []byte) (scale, bias uint16) {
	nibbles(b[1:], codes)
	return uint16(b[0]), 0
}

// The decoders. Where a product is added to something it is rounded first, by a conversion: a fused operation would
// give other bits on some processors.

func q5x0(b []byte, out []float32) {
	d, high := half(b), binary.LittleEndian.Uint32(b[2:])
	for j, q := range b[6:22] {
		out[j] = d * float32(int(uint32(q&15)|high>>j&1<<4)-16)
		out[j+16] = d * float32(int(uint32(q>>4)|high>>(j+16)&1<<4)-16)
	}
}

func q5x1(b []byte, out []float32) {
	d, m, high := half(b), half(b[2:]), binary.LittleEndian.Uint32(b[4:])
	for j, q := range b[8:24] {
		out[j] = float32(d*float32(uint32(q&15)|high>>j&1<<4)) + m
		out[j+16] = float32(d*float32(uint32(q>>4)|high>>(j+16)&1<<4)) + m
	}
}

// pairOf is element i of codes of 2 bits, of which a run of 32 bytes has 128: those of the first 32 lie lowest.
func pairOf(b []byte, i int) byte { return b[i/128*32+i%32] >> (i % 128 / 32 * 2) & 3 }

func q2k(b []byte, out []float32) {
	scales, qs, d, dmin := b[:16], b[16:80], half(b[80:]), half(b[82:])
	for i := range out {
		s := scales[i/16]
		out[i] = float32(float32(d*float32(s&15))*float32(pairOf(qs, i))) - float32(dmin*float32(s>>4))
	}
}

func q3k(b []byte, out []float32) {
	high, qs, scales, d := b[:32], b[32:96], b[96:108], half(b[108:])
	for i := range out {
		k := i / 16
		s := int(scales[k%8]>>(k/8*4)&15 | scales[8+k%4]>>(k/4*2)&3<<4)
		q := int(pairOf(qs, i))
		if high[i%32]>>(i/32)&1 == 0 {
			q -= 4
		}
		out[i] = float32(d*float32(s-32)) * float32(q)
	}
}

// kScales are scale and minimum j of the eight of 6 bits that twelve bytes hold.
func kScales(s []byte, j int) (scale, least float32) {
	if j < 4 {
		return float32(s[j] & 63), float32(s[j+4] & 63)
	}
	return float32(s[j+4]&15 | s[j-4]>>2&0x30), float32(s[j+4]>>4 | s[j]>>2&0x30)
}

func q4k(b []byte, out []float32) { kBlock(b, nil, b[16:144], out) }

func q5k(b []byte, out []float32) { kBlock(b, b[16:48], b[48:176], out) }

// kBlock decodes codes of 4 bits and, with high, a fifth.
func kBlock(b, high, qs []byte, out []float32) {
	d, dmin := half(b), half(b[2:])
	for j := range 8 {
		scale, least := kScales(b[4:16], j)
		scale, least = d*scale, dmin*least
		for l := range 32 {
			q := qs[j/2*32+l] >> (j % 2 * 4) & 15
			if high != nil {
				q |= high[l] >> j & 1 << 4
			}
			out[j*32+l] = float32(scale*float32(q)) - least
		}
	}
}

func q6k(b []byte, out []float32) {
	low, high, scales, d := b[:128], b[128:192], b[192:208], half(b[208:])
	for i := range out {
		q := int(low[i/128*64+i%64]>>(i%128/64*4)&15|pairOf(high, i)<<4) - 32
		out[i] = float32(d*float32(int8(scales[i/16]))) * float32(q)
	}
}

// threefold are the powers of three: a byte holds five digits of that base, as a fraction of 256.
var threefold = [5]byte{1, 3, 9, 27, 81}

func tq1(b []byte, out []float32) {
	d := half(b[52:])
	at := 0
	for _, part := range [][]byte{b[:32], b[32:48], b[48:52]} {
		for _, power := range threefold {
			for _, q := range part {
				if at == len(out) { // the last four bytes have four digits each
					return
				}
				out[at] = d * float32(int(uint16(q*power)*3>>8)-1)
				at++
			}
		}
	}
}

func tq2(b []byte, out []float32) {
	d := half(b[64:])
	for i := range out {
		out[i] = d * float32(int(pairOf(b, i))-1)
	}
}

// e2m1 is twice the value of a float of 4 bits.
var e2m1 = [16]float32{0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12}

func nvfp4(b []byte, out []float32) {
	for i := range 4 {
		d := e4m3(b[i]) / 2
		for k, q := range b[4+8*i : 12+8*i] {
			out[16*i+k], out[16*i+8+k] = d*e2m1[q&15], d*e2m1[q>>4]
		}
	}
}

// e4m3 is the value of a scale, a float of 8 bits of which the sign has no meaning; NaN counts as 0.
func e4m3(v byte) float32 {
	exponent, digits := int(v>>3&15), float64(v&7)
	switch {
	case v == 0x7F:
		return 0
	case exponent == 0:
		return float32(math.Ldexp(digits, -9))
	}
	return float32(math.Ldexp(8+digits, exponent-10))
}
