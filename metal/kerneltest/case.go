// Package kerneltest makes random kernels for comparing executors: Metal texts that end, and whose result depends on
// nothing but their inputs (no races, no use of the order in which atomics happen, no payloads of NaNs). All stay in
// bounds but for a few that reach Threadgroups, which fault on every executor or on none.
package kerneltest

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"github.com/mlxlua/mlxlua/metal/kir"
)

// Reach is how far the threads of a program work together.
type Reach int

// The reaches.
const (
	Threads      Reach = iota // each thread works on its own
	Simdgroups                // and the lanes of a SIMD-group exchange values
	Threadgroups              // and threads share memory, wait for each other, and change memory atomically
)

// Case is a kernel named k and how to launch it. One that does not reach Threadgroups may be given another launch.
type Case struct {
	Seed        uint64 // of the contents of the buffers, and of the text unless it was changed by hand
	Text        string
	Grid        [3]int
	Threadgroup [3]int
}

// Limits of a Case, which its text relies on.
const (
	slots     = 16  // elements of each output for every thread
	inputs    = 256 // elements of the device inputs
	constants = 64  // elements of the constant inputs
	structs   = 32  // elements of the input of structures
	counters  = 16  // shared atomics
	rows      = 64  // of the large inputs: more than a SIMD-group's lanes
	rowWords  = 256 // 4-byte words of such a row: a stride of 1 KiB
	odd       = 3   // more elements at its end, so that it does not end where a vector does
	each      = 12  // floats of the output of runs for every thread
)

// buffers are the parameters, in the order of Buffers.
var buffers = []struct {
	param  string
	bytes  int
	thread int // more bytes for each thread of the grid
	align  int // of its offset
}{
	{"device const int *gi", 4 * inputs, 0, 4},
	{"device const float *gf", 4 * inputs, 0, 4},
	{"constant int *ci", 4 * constants, 0, 4},
	{"constant float *cf", 4 * constants, 0, 4},
	{"device const S *gs", 24 * structs, 0, 4},
	{"device const half *gh", 2 * inputs, 0, 2},
	{"device const uchar *gb", inputs, 0, 1},
	{"device int *oi", 0, 4 * slots, 4},
	{"device float *of", 0, 4 * slots, 4},
	{"device ulong *ol", 0, 8 * slots, 8},
	{"device half *oh", 0, 2 * slots, 2},
	{"device uchar *ob", 0, slots, 1},
	{"device atomic_uint *au", 4 * counters, 0, 4},
	{"device atomic_int *ai", 4 * counters, 0, 4},
	{"device atomic_uint *own", 0, 4, 4},
	{"device const float *gm", 4 * large, 0, 4},
	{"device const uint *gw", 4 * large, 0, 4},
	{"device const half *gq", 2 * large, 0, 2},
	{"device const bfloat *gz", 2 * inputs, 0, 2},
	{"device float *om", 0, 4 * each, 4},
	{"device atomic_float *fa", 4 * counters, 0, 4},
	{"device atomic_bool *fl", counters, 1, 1},
	{"constant long *ws", 8 * wordCount, 0, 8},
	{"constant int *wd", 4 * wordCount, 0, 4},
	{"constant int &wn", 4, 0, 4},
}

// The words that programs index by: strides ws, sizes wd, the number of dimensions wn. A launch gives their bytes with
// it (Fixed). The first four strides and sizes keep sums of all four dimensions within middle elements of a place,
// ws[unit] is 1, ws[huge] leads out of any buffer.
const (
	wordCount = 8
	middle    = 8192
	unit      = 6
	huge      = 7
)

// Fixed says which of Buffers a launch gives with it: nobody writes them while it runs.
func Fixed(buffer int) bool {
	p := buffers[buffer].param
	return p[len(p)-2] == 'w' && p[0] == 'c'
}

// words writes the contents of ws, wd or wn.
func words(r *rand.Rand, b []byte, param string) {
	strides := []int64{1, 1, 1, 0, 2, 3, 7, 12, 15, -1, -2, -12}
	sizes := []uint32{1, 2, 3, 5, 8, 16, 24, 32, 32, 48, 60, 64}
	switch param[len(param)-1] {
	case 'n':
		binary.LittleEndian.PutUint32(b, uint32(r.IntN(5)))
	case 'd':
		for i := range wordCount {
			binary.LittleEndian.PutUint32(b[4*i:], sizes[r.IntN(len(sizes))])
		}
	default:
		for i := range wordCount {
			v := strides[r.IntN(len(strides))]
			switch i {
			case unit:
				v = 1
			case huge:
				v = []int64{1 << 31, 1 << 33, 1 << 61, -1 << 31, -1 << 40, 1<<63 - 1}[r.IntN(6)]
			}
			binary.LittleEndian.PutUint64(b[8*i:], uint64(v))
		}
	}
}

// large is how many elements the large inputs have.
const large = rows*rowWords + odd

// The interesting numbers that inputs are full of.
var (
	edgeInts   = []uint32{0, 1, 2, 3, 7, 31, 32, 255, 256, 1 << 15, 1 << 16, 1 << 31, 1<<31 - 1, 1<<32 - 1, 1<<32 - 2}
	edgeFloats = []float64{0, math.Copysign(0, -1), 1, -1, 0.5, 1.5, 2.5, -2.5, 3e38, -3e38, 1e-40, -1e-45,
		65504, 65520,
		1e-7, math.Inf(1), math.Inf(-1), math.NaN(), 2147483648, -2147483648, 4294967296, 9.3e18, 16777217, 0.1}
)

// Buffers returns the contents of the buffers at launch, in the order of the kernel's parameters.
func (c *Case) Buffers() [][]byte {
	r := rand.New(rand.NewPCG(c.Seed, 3))
	all := make([][]byte, len(buffers))
	for i, b := range buffers {
		size := b.bytes + b.thread*c.Grid[0]*c.Grid[1]*c.Grid[2]
		all[i] = make([]byte, size+64)[b.align*int(c.Seed+uint64(i))%64:][:size] // bound at any offset that is allowed
		if !strings.Contains(b.param, "const") {
			continue
		}
		width, float := 4, strings.Contains(b.param, "float")
		switch {
		case Fixed(i):
			words(r, all[i], b.param)
			continue
		case b.bytes >= 2*large:
			fill(r, all[i], b.param)
			continue
		case strings.Contains(b.param, "bfloat"):
			for at := 0; at < b.bytes; at += 2 { // the upper halves of floats
				binary.LittleEndian.PutUint16(all[i][at:], uint16(number(r, true, 4)>>16))
			}
			continue
		case strings.Contains(b.param, "half"):
			width, float = 2, true
		case strings.Contains(b.param, "uchar"):
			width = 1
		case strings.Contains(b.param, " S "): // every third word is a float
			width = 4
		}
		for at := 0; at < b.bytes; at += width {
			isFloat := float || strings.Contains(b.param, " S ") && at/4%3 == 1
			v := number(r, isFloat, width)
			for k := range width {
				all[i][at+k] = byte(v >> (8 * k))
			}
		}
	}
	return all
}

// Bind returns those of the contents of buffers that a kernel has as parameters, and which of them a launch gives with
// it.
func Bind(k *kir.Kernel, all [][]byte) (bound [][]byte, fixed []bool) {
	for _, p := range k.Params {
		i := p.Index % len(all)
		bound, fixed = append(bound, all[i]), append(fixed, Fixed(i))
	}
	return bound, fixed
}

// fill writes the elements of a large input: numbers that many of can be added up without becoming NaN.
func fill(r *rand.Rand, b []byte, param string) {
	for at := 0; at+4 <= len(b); at += 4 {
		v := r.Uint32()
		switch {
		case strings.Contains(param, "half"): // both from 1 to 4 or -4
			v = v&0x87ff87ff | 0x3c003c00
		case strings.Contains(param, "float"):
			v = math.Float32bits(float32(int32(v)) / (1 << 30))
		}
		binary.LittleEndian.PutUint32(b[at:], v)
	}
}

func number(r *rand.Rand, float bool, width int) uint32 {
	switch {
	case float && width == 2: // no NaN but one
		v := r.Uint32() & 0xffff
		if v&0x7c00 == 0x7c00 {
			v &= 0xfc00
		}
		if r.IntN(3) > 0 {
			v = uint32(0x3c00 + r.IntN(0x1000)) // 1 to 16
		}
		return v
	case float && r.IntN(4) == 0:
		return math.Float32bits(float32(edgeFloats[r.IntN(len(edgeFloats))]))
	case float:
		return math.Float32bits(float32(r.NormFloat64() * math.Pow(10, float64(r.IntN(5)-1))))
	case r.IntN(3) == 0:
		return edgeInts[r.IntN(len(edgeInts))]
	case r.IntN(2) == 0:
		return uint32(r.IntN(64))
	}
	return r.Uint32()
}

// Params returns the text of the kernel's buffer parameters.
func params() string {
	var b strings.Builder
	for i, p := range buffers {
		fmt.Fprintf(&b, "%s [[buffer(%d)]], ", p.param, i)
	}
	return b.String()
}

// String returns the case as a file: a first line that says how to launch it, then the text.
func (c *Case) String() string {
	return fmt.Sprintf("// grid %d %d %d threadgroup %d %d %d seed %d\n%s", c.Grid[0], c.Grid[1], c.Grid[2],
		c.Threadgroup[0], c.Threadgroup[1], c.Threadgroup[2], c.Seed, c.Text)
}

// Parse reads what String wrote.
func Parse(file string) (*Case, error) {
	first, text, _ := strings.Cut(file, "\n")
	c := &Case{Text: text}
	_, err := fmt.Sscanf(first, "// grid %d %d %d threadgroup %d %d %d seed %d", &c.Grid[0], &c.Grid[1], &c.Grid[2],
		&c.Threadgroup[0], &c.Threadgroup[1], &c.Threadgroup[2], &c.Seed)
	if err != nil {
		return nil, fmt.Errorf("[kerneltest] the first line does not say how to launch: %q", first)
	}
	return c, nil
}

// shapes are launches worth trying: whole and cut groups of lanes, rows, boxes, edges.
var shapes = [][2][3]int{
	{{32, 1, 1}, {32, 1, 1}}, {{64, 1, 1}, {64, 1, 1}}, {{100, 1, 1}, {32, 1, 1}}, {{1, 1, 1}, {1, 1, 1}},
	{{7, 1, 1}, {7, 1, 1}}, {{130, 1, 1}, {64, 1, 1}}, {{300, 1, 1}, {96, 1, 1}}, {{16, 4, 1}, {8, 4, 1}},
	{{10, 6, 2}, {5, 3, 2}}, {{33, 3, 1}, {33, 1, 1}}, {{64, 4, 1}, {32, 2, 1}}, {{40, 5, 1}, {16, 2, 1}},
	{{20, 7, 1}, {8, 8, 1}}, {{48, 2, 2}, {48, 1, 1}}, {{512, 1, 1}, {256, 1, 1}}, {{70, 3, 1}, {32, 1, 1}},
	{{1024, 1, 1}, {1024, 1, 1}}, {{1500, 1, 1}, {1000, 1, 1}}, {{2, 70, 3}, {1, 32, 1}}, {{66, 3, 3}, {33, 5, 2}},
	{{3, 3, 65}, {2, 2, 32}}, {{512, 2, 1}, {512, 2, 1}}, {{5, 1, 1}, {64, 1, 1}}, {{64, 8, 1}, {64, 4, 1}},
}

// New makes the random case of a seed.
func New(seed uint64, reach Reach) *Case {
	g := &generator{text: &text{r: rand.New(rand.NewPCG(seed, 1))}, reach: reach}
	s := shapes[g.n(len(shapes))]
	return &Case{Seed: seed, Text: g.program(s[1]), Grid: s[0], Threadgroup: s[1]}
}

// Reduce removes lines from a failing case as long as fails says that what is left still fails.
func Reduce(c *Case, fails func(*Case) bool) *Case {
	lines := strings.Split(c.Text, "\n")
	for size := len(lines) / 2; size > 0; {
		removed := false
		for at := 0; at < len(lines); {
			n := min(size, len(lines)-at)
			if size == 1 { // with the block it opens
				n = blockLines(lines[at:])
			}
			rest := append(append([]string{}, lines[:at]...), lines[at+n:]...)
			try := *c
			try.Text = strings.Join(rest, "\n")
			if fails(&try) {
				lines, removed = rest, true
			} else {
				at++
			}
		}
		if size > 1 || !removed {
			size /= 2
		}
	}
	out := *c
	out.Text = strings.Join(lines, "\n")
	return &out
}

// blockLines is how many lines belong to the first one: more than one if it opens a block.
func blockLines(lines []string) int {
	depth := 0
	for i, l := range lines {
		depth += strings.Count(l, "{") - strings.Count(l, "}")
		if depth <= 0 {
			return i + 1
		}
	}
	return 1
}
