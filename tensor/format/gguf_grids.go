package format

import (
	_ "embed"
	"encoding/binary"
	"math/bits"
	"sync"

	"github.com/mlxlua/mlxlua/tensor"
)

// The types IQ1 to IQ3 code several elements as one point of a grid, and their signs apart. The points are part of the
// format. testdata/make_gguf.py made the file, and says how they lie in it.

//go:embed gguf_grids.bin
var gridText []byte

// grid is points of so many coordinates each.
type grid struct {
	values []float32 // that a coordinate may have
	at, n  int       // its points in gridText
	width  int       // coordinates of a point
	points func() []float32
}

func newGrid(at, n, width int, values ...float32) *grid {
	g := &grid{values: values, at: at, n: n, width: width}
	g.points = sync.OnceValue(g.unpack)
	return g
}

var (
	grid2XXS = newGrid(0, 256, 8, 8, 25, 43)
	grid2XS  = newGrid(512, 512, 8, 8, 25, 43)
	grid2S   = newGrid(1536, 1024, 8, 8, 25, 43)
	grid3XXS = newGrid(3584, 256, 4, 4, 12, 20, 28, 36, 44, 52, 62)
	grid3S   = newGrid(4096, 512, 4, 1, 3, 5, 7, 9, 11, 13, 15)
	grid1    = newGrid(5120, 2048, 8, -1, 0, 1)
)

// unpack lists the coordinates of all points.
func (g *grid) unpack() []float32 {
	size := 2 // bits of a coordinate
	if len(g.values) > 4 {
		size = 4
	}
	out := make([]float32, g.n*g.width)
	for i := range out {
		bit := i * size
		out[i] = g.values[gridText[g.at+bit/8]>>(bit%8)&(1<<size-1)]
	}
	return out
}

// point is point i.
func (g *grid) point(i int) []float32 { return g.points()[i*g.width:][:g.width] }

// signed writes d times the coordinates of a point, with the signs that bits of signs from the lowest on give.
func signed(out []float32, d float32, point []float32, signs byte) {
	for i, v := range point {
		if v *= d; signs>>i&1 != 0 {
			v = -v
		}
		out[i] = v
	}
}

// evenSigns are eight signs of which seven are given: an even number of them is negative.
func evenSigns(seven uint32) byte {
	seven &= 127
	return byte(seven | uint32(bits.OnesCount32(seven))&1<<7)
}

// nibble is code i of 4 bits, two to a byte, the lower ones first.
func nibble(b []byte, i int) byte { return b[i/2] >> (i % 2 * 4) & 15 }

func iq2xxs(b []byte, out []float32) {
	d := half(b)
	for i := range 8 {
		codes := b[2+8*i:]
		rest := binary.LittleEndian.Uint32(codes[4:])
		db := d * (0.5 + float32(rest>>28)) * 0.25
		for l := range 4 {
			signed(out[32*i+8*l:], db, grid2XXS.point(int(codes[l])), evenSigns(rest>>(7*l)))
		}
	}
}

func iq2xs(b []byte, out []float32) {
	d, scales := half(b), b[66:74]
	for k := range 32 {
		q := binary.LittleEndian.Uint16(b[2+2*k:])
		db := d * (0.5 + float32(nibble(scales, k/2))) * 0.25
		signed(out[8*k:], db, grid2XS.point(int(q&511)), evenSigns(uint32(q>>9)))
	}
}

func iq2s(b []byte, out []float32) {
	d, qs, signs, high, scales := half(b), b[2:34], b[34:66], b[66:74], b[74:82]
	for k := range 32 {
		q := int(qs[k]) | int(high[k/4]>>(k%4*2)&3)<<8
		signed(out[8*k:], d*(0.5+float32(nibble(scales, k/2)))*0.25, grid2S.point(q), signs[k])
	}
}

func iq3xxs(b []byte, out []float32) {
	d := half(b)
	for i := range 8 {
		rest := binary.LittleEndian.Uint32(b[66+4*i:])
		db := d * (0.5 + float32(rest>>28)) * 0.5
		for l := range 8 {
			signs := evenSigns(rest>>(l/2*7)) >> (l % 2 * 4)
			signed(out[32*i+4*l:], db, grid3XXS.point(int(b[2+8*i+l])), signs)
		}
	}
}

func iq3s(b []byte, out []float32) {
	d, qs, high, signs, scales := half(b), b[2:66], b[66:74], b[74:106], b[106:110]
	for k := range 64 {
		q := int(qs[k]) | int(high[k/8]>>(k%8)&1)<<8
		db := d * float32(1+2*int(nibble(scales, k/8)))
		signed(out[4*k:], db, grid3S.point(q), signs[k/2]>>(k%2*4))
	}
}

// oneBit writes a run of eight elements: a point between the values, moved to one side.
func oneBit(out []float32, d float32, code int, down bool) {
	delta := float32(0.125)
	if down {
		delta = -delta
	}
	for i, v := range grid1.point(code) {
		out[i] = d * (v + delta)
	}
}

func iq1s(b []byte, out []float32) {
	d := half(b)
	for k := range 32 {
		high := binary.LittleEndian.Uint16(b[34+k/4*2:])
		code := int(b[2+k]) | int(high>>(k%4*3)&7)<<8
		oneBit(out[8*k:], d*float32(2*(high>>12&7)+1), code, high>>15 != 0)
	}
}

func iq1m(b []byte, out []float32) {
	scales := b[48:56] // of 3 bits, four to two bytes, and in the rest the parts of a float16
	word := func(i int) uint16 { return binary.LittleEndian.Uint16(scales[2*i:]) }
	d := tensor.Float16Value(word(0)>>12 | word(1)>>12<<4 | word(2)>>12<<8 | word(3)>>12<<12)
	for k := range 32 {
		high := nibble(b[32:48], k)
		scale := word(k/8) >> (k / 2 % 4 * 3) & 7
		oneBit(out[8*k:], d*float32(2*scale+1), int(b[k])|int(high&7)<<8, high&8 != 0)
	}
}

// nonLinear are the values of codes of 4 bits that lie closer to each other near 0.
var nonLinear = [16]float32{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}

func iq4nl(b []byte, out []float32) { nonLinearRun(b[2:18], half(b), out) }

func nonLinearRun(b []byte, d float32, out []float32) {
	for j, q := range b {
		out[j], out[j+16] = d*nonLinear[q&15], d*nonLinear[q>>4]
	}
}

func iq4xs(b []byte, out []float32) {
	d, high, low := half(b), binary.LittleEndian.Uint16(b[2:]), b[4:8]
	for i := range 8 {
		scale := int(nibble(low, i)) | int(high>>(2*i)&3)<<4
		nonLinearRun(b[8+16*i:][:16], d*float32(scale-32), out[32*i:])
	}
}
