//go:build amd64 || arm64

package jit

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mlxlua/mlxlua/internal/brief"
	"github.com/mlxlua/mlxlua/metal/jit/native"
	"github.com/mlxlua/mlxlua/metal/launch"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal/interp"
	"github.com/mlxlua/mlxlua/metal/kerneltest"
	"github.com/mlxlua/mlxlua/metal/msl"
)

// stridedTexts read an element for each thread of a grid of rows and columns; T is their type, I that of indices.
var stridedTexts = map[string]string{
	"strides": `I at = I(gp.y) * I(strides[0]) + I(gp.x) * I(strides[1]);`,
	"sums":    `I at = I(gp.y * 1 + gp.x * I(strides[1]) + gp.y * I(strides[0] - 1));`,
	"loop": `I e = I(gp.x + gp.y * gs.x), at = 0;
             for (int d = ndim - 1; d >= 0; --d) { at += (e % I(shape[d])) * I(strides[d]); e /= I(shape[d]); }`,
}

func stridedText(elem, index, body string) string {
	// Unsigned sums wrap to what signed ones are.
	signed := map[string]string{"uint": "int", "int": "int", "long": "long", "ulong": "long"}[index]
	return fmt.Sprintf(`typedef %s T; typedef %s I;
kernel void k(device const T *in [[buffer(0)]], constant const int *shape [[buffer(1)]],
              constant const int64_t *strides [[buffer(2)]], constant const int &ndim [[buffer(3)]],
              constant const int64_t &origin [[buffer(4)]], device T *out [[buffer(5)]],
              uint2 gp [[thread_position_in_grid]], uint2 gs [[threads_per_grid]]) {
    %s
    out[gp.y * gs.x + gp.x] = in[origin + %s(at)];
}`, elem, index, body, signed)
}

// noise is n random bytes of numbers of any type but NaN.
func noise(n int, seed uint64) []byte {
	b, r := make([]byte, n), rand.New(rand.NewPCG(seed, 1))
	for i := range b {
		b[i] = byte(r.Uint32() & 63)
	}
	return b
}

// TestStridedInputs: each launch reads what Go reads by the same strides, in specializations of
// its own and in the root.
func TestStridedInputs(t *testing.T) {
	t.Parallel()
	brief.OnlyValues(t)
	_, err := Best()
	if err != nil {
		t.Skip(err)
	}
	strides := func(rows, columns int) [][2]int64 {
		c, r := int64(columns), int64(rows)
		return [][2]int64{{c, 1}, {1, r}, {0, 1}, {1, 0}, {0, 0}, {-c, 1}, {c, -1}, {-1, -r}, {2 * c, 2}, {1, 1}, {3, 1000}}
	}
	sizes := map[string]int{"float": 4, "half": 2, "uchar": 1, "ulong": 8}
	const elements = 1 << 18
	data := noise(8*elements, 1)
	for elem, size := range sizes {
		for _, index := range []string{"long", "int", "uint", "ulong"} {
			for name, body := range stridedTexts {
				m, err := msl.Compile(msl.Source{Name: "k", Text: stridedText(elem, index, body)}, msl.Options{})
				require.NoError(t, err)
				for _, level := range Levels() {
					p, err := Prepare(m.Kernels[0], m.Files, Options{Level: level})
					require.NoError(t, err)
					for n, shape := range [][2]int{{33, 96}, {32, 48}, {21, 40}, {30, 35}} {
						for _, s := range strides(shape[0], shape[1]) {
							in := data[:size*elements]
							out := make([]byte, size*shape[0]*shape[1])
							l := launch.Launch{Grid: [3]int{shape[1], shape[0], 1}, Threadgroup: [3]int{32, 4, 1},
								Buffers: [][]byte{in, words(uint32(shape[0]), uint32(shape[1])), longs(s[0], s[1]), words(2),
									longs(elements / 2), out}, Fixed: make([]bool, 6)}
							for i := 1; i < 5; i++ {
								l.Fixed[i] = n != 3 || s[0] > 0
							}
							require.NoError(t, kerneltest.Run(p.NewRun, l, 1))
							want := make([]byte, 0, len(out))
							for y := range int64(shape[0]) {
								for x := range int64(shape[1]) {
									at := (elements/2 + y*s[0] + x*s[1]) * int64(size)
									want = append(want, in[at:at+int64(size)]...)
								}
							}
							require.True(t, bytes.Equal(want, out), "%s of %s by %s, %s, %v by %v", name, elem, index, level, shape, s)
						}
					}
				}
			}
		}
	}
}

// TestSpreadStores: stores of lanes that lie a constant stride apart write their elements and leave the others alone.
func TestSpreadStores(t *testing.T) {
	t.Parallel()
	_, err := Best()
	if err != nil {
		t.Skip(err)
	}
	const rows, columns = 8, 96
	in := noise(4*rows*columns, 3)
	for _, stride := range []int{-9, -3, -2, -1, 2, 3, 4, 7, 8, 17} {
		text := fmt.Sprintf(`kernel void k(device const float *in [[buffer(0)]], device float *out [[buffer(1)]],
              uint2 gp [[thread_position_in_grid]], uint2 gs [[threads_per_grid]]) {
    out[%d + int(gp.y * gs.x) * %d + int(gp.x) * %d] = in[gp.y * gs.x + gp.x];
}`, 20*columns*rows, stride, stride)
		m, err := msl.Compile(msl.Source{Name: "k", Text: text}, msl.Options{})
		require.NoError(t, err)
		for _, level := range Levels() {
			p, err := Prepare(m.Kernels[0], m.Files, Options{Level: level})
			require.NoError(t, err)
			for _, width := range []int{columns, columns - 5} {
				out, want := noise(4*40*rows*columns, 4), noise(4*40*rows*columns, 4)
				l := launch.Launch{Grid: [3]int{width, rows, 1}, Threadgroup: [3]int{32, 4, 1}, Buffers: [][]byte{in, out}}
				require.NoError(t, kerneltest.Run(p.NewRun, l, 1))
				for i := range rows * width {
					copy(want[4*(20*columns*rows+i*stride):], in[4*i:4*i+4])
				}
				require.True(t, bytes.Equal(want, out), "stride %d of %d columns, %s", stride, width, level)
			}
		}
	}
}

// TestStrayStrides: indices that leave the buffer, and that wrap in their type, do so on machine code as they do on the
// reference executor, whether the strides are known or not.
func TestStrayStrides(t *testing.T) {
	t.Parallel()
	brief.OnlyValues(t)
	_, err := Best()
	if err != nil {
		t.Skip(err)
	}
	in := noise(4096, 7)
	faults := 0
	for _, elem := range []string{"uint", "half", "ulong"} {
		size := map[string]int{"uint": 4, "half": 2, "ulong": 8}[elem]
		for _, index := range []string{"long", "int", "uint"} {
			for name, body := range stridedTexts {
				m, err := msl.Compile(msl.Source{Name: "k", Text: stridedText(elem, index, body)}, msl.Options{})
				require.NoError(t, err)
				ref, err := interp.Prepare(m.Kernels[0], m.Files)
				require.NoError(t, err)
				for _, s := range [][2]int64{{1 << 40, 1}, {1, 1 << 31}, {1 << 32, 1 << 32}, {1 << 61, 1 << 62}, {-1 << 31, 1},
					{0, -1 << 40}, {1<<63 - 1, 1}, {40, 1}, {0, -9}, {1, 1<<32 + 1}, {1<<32 - 1, 1}, {-1 << 63, 0}} {
					launched := func(run func(launch.Launch) error, fixed bool) ([]byte, error) {
						out := make([]byte, 64*4*size)
						l := launch.Launch{Grid: [3]int{64, 4, 1}, Threadgroup: [3]int{32, 2, 1},
							Buffers: [][]byte{in[:1024*size/8], words(4, 64), longs(s[0], s[1]), words(2), longs(3), out}}
						if fixed {
							l.Fixed = []bool{false, true, true, true, true, false}
						}
						return out, run(l)
					}
					want, fault := launched(onOne(ref.NewRun), true)
					for _, level := range Levels() {
						p, err := Prepare(m.Kernels[0], m.Files, Options{Level: level})
						require.NoError(t, err)
						for _, fixed := range []bool{false, true} {
							got, err := launched(onOne(p.NewRun), fixed)
							what := fmt.Sprintf("%s of %s by %s, %s, %v, fixed %v", name, elem, index, level, s, fixed)
							if fault == nil {
								require.NoError(t, err, what)
								require.True(t, bytes.Equal(want, got), what)
								continue
							}
							faults++
							var f *launch.Fault
							require.True(t, errors.As(err, &f), "%s: %v, want %v", what, err, fault)
							require.Equal(t, fault.Error(), f.Error(), what)
						}
					}
				}
			}
		}
	}
	require.Positive(t, faults)
}

// TestFarStrides reaches places beyond 2^31 and 2^32 bytes of a buffer of which hardly any page is there.
func TestFarStrides(t *testing.T) {
	t.Parallel()
	_, err := Best()
	if err != nil {
		t.Skip(err)
	}
	const far = 5 << 30
	mem, err := native.Map(far)
	if err != nil {
		t.Skip(err)
	}
	defer native.Unmap(mem)
	for elem, size := range map[string]int64{"uchar": 1, "half": 2, "float": 4, "ulong": 8} {
		stride := int64(far-4096) / size / 32
		for x := range int64(32) {
			for k := range size {
				mem[(7+x*stride)*size+k] = byte(3*x + k)
			}
		}
		m, err := msl.Compile(msl.Source{Name: "k", Text: stridedText(elem, "long", stridedTexts["strides"])}, msl.Options{})
		require.NoError(t, err)
		for _, level := range Levels() {
			for _, fixed := range []bool{false, true} {
				p, err := Prepare(m.Kernels[0], m.Files, Options{Level: level})
				require.NoError(t, err)
				out := make([]byte, 32*size)
				require.NoError(t, kerneltest.Run(p.NewRun,
					launch.Launch{Grid: [3]int{32, 1, 1}, Threadgroup: [3]int{32, 1, 1},
						Buffers: [][]byte{mem, words(1, 32), longs(1, stride), words(2), longs(7), out},
						Fixed:   []bool{false, fixed, fixed, fixed, fixed, false}}, 0))
				for x := range int64(32) {
					for k := range size {
						require.Equal(t, byte(3*x+k), out[x*size+k], "%s %s lane %d", elem, level, x)
					}
				}
			}
		}
		for x := range int64(32) {
			clear(mem[(7+x*stride)*size:][:size])
		}
	}
}

// TestGatherByLongs loads elements of every size at places that are 64-bit numbers of the lanes', from the first to the
// last one of short buffers.
func TestGatherByLongs(t *testing.T) {
	t.Parallel()
	_, err := Best()
	if err != nil {
		t.Skip(err)
	}
	for elem, size := range map[string]int{"uchar": 1, "char": 1, "ushort": 2, "short": 2, "half": 2, "uint": 4,
		"ulong": 8} {
		m, err := msl.Compile(msl.Source{Name: "k", Text: strings.ReplaceAll(`
kernel void k(device const T *in [[buffer(0)]], device const long *at [[buffer(1)]], device T *out [[buffer(2)]],
              uint i [[thread_position_in_grid]]) {
    if (at[i] >= 0) out[i] = in[at[i]];
}`, "T", elem)}, msl.Options{})
		require.NoError(t, err)
		for _, level := range Levels() {
			p, err := Prepare(m.Kernels[0], m.Files, Options{Level: level})
			require.NoError(t, err)
			for n := 1; n <= 40; n += 1 + n/6 {
				in, _ := native.Map(size * n)
				copy(in, noise(size*n, uint64(n)))
				in = in[len(in)-size*n:]
				var at []int64
				want := make([]byte, size*37)
				for i := range 37 {
					x := int64(i*i+n-1) % int64(n+2)
					if x >= int64(n) {
						x = -1 - x
					} else {
						copy(want[i*size:], in[int(x)*size:][:size])
					}
					at = append(at, x)
				}
				out := make([]byte, size*37)
				l := launch.Launch{Grid: [3]int{37, 1, 1}, Threadgroup: [3]int{64, 1, 1},
					Buffers: [][]byte{in, longs(at...), out}}
				require.NoError(t, kerneltest.Run(p.NewRun, l, 1))
				require.True(t, bytes.Equal(want, out), "%s %s, %d elements", elem, level, n)
				at[5] = int64(n)
				l.Buffers[1] = longs(at...)
				var f *launch.Fault
				require.ErrorAs(t, kerneltest.Run(p.NewRun, l, 1), &f)
			}
		}
	}
}

// TestDivideLanes divides lanes by a number that all of them have, quotient and remainder alone and together, and by
// numbers of their own.
func TestDivideLanes(t *testing.T) {
	t.Parallel()
	_, err := Best()
	if err != nil {
		t.Skip(err)
	}
	edges := []int64{0, 1, -1, 2, 3, 7, 10, 16, 96, 1 << 16, 65537, 1<<31 - 1, 1 << 31, 1<<32 - 1, 1<<32 - 2, -7,
		-1 << 31, 1999}
	var a []int64
	for _, e := range edges {
		for d := int64(-2); d <= 2; d++ {
			a = append(a, e+d, (1<<32/max(e, 1))*7+d, e*1999+d)
		}
	}
	for i := range int64(64) { // whole groups of lanes of no more than 32 bits
		a = append(a, i*i*i*16411)
	}
	for _, typ := range []string{"int", "uint", "long", "ulong", "short", "uchar"} {
		m, err := msl.Compile(msl.Source{Name: "k", Text: strings.ReplaceAll(`
kernel void k(device const long *a [[buffer(0)]], constant long &b [[buffer(1)]], device long *out [[buffer(2)]],
              uint i [[thread_position_in_grid]]) {
    T x = T(a[i]), y = T(b);
    out[6 * i] = long(T(x / y));
    if (a[i] != 12345) out[6 * i + 1] = long(T(x % y));
    T z = T(x + 1), r = T(z % y);
    out[6 * i + 2] = long(r);
    out[6 * i + 3] = long(T(T(z / y) ^ r));
    T own = T(y + T(i % 3));
    out[6 * i + 4] = long(T(x / own));
    if (a[i] != 12345) out[6 * i + 5] = long(T(x % own));
}`, "T", typ)}, msl.Options{})
		require.NoError(t, err)
		for _, level := range Levels() {
			p, err := Prepare(m.Kernels[0], m.Files, Options{Level: level})
			require.NoError(t, err)
			for _, b := range edges {
				out := make([]byte, 48*len(a))
				require.NoError(t, kerneltest.Run(p.NewRun,
					launch.Launch{Grid: [3]int{len(a), 1, 1}, Threadgroup: [3]int{64, 1, 1},
						Buffers: [][]byte{longs(a...), longs(b), out}}, 0))
				for i, x := range a {
					q1, r1 := divided(typ, x, b)
					q2, r2 := divided(typ, narrowed(typ, x)+1, b)
					q3, r3 := divided(typ, x, narrowed(typ, b)+int64(i%3))
					want := []int64{q1, r1, r2, narrowed(typ, q2^r2), q3, r3}
					for k, w := range want {
						require.Equal(t, w, int64(binary.LittleEndian.Uint64(out[48*i+8*k:])), "%s %s: %d by %d, result %d", typ,
							level, x, b, k)
					}
				}
			}
		}
	}
}

// narrowed cuts a number to a type.
func narrowed(typ string, v int64) int64 {
	switch typ {
	case "int":
		return int64(int32(v))
	case "uint":
		return int64(uint32(v))
	case "short":
		return int64(int16(v))
	case "uchar":
		return int64(uint8(v))
	}
	return v
}

// divided divides as Metal's types do here: by zero the quotient is 0.
func divided(typ string, a, b int64) (q, r int64) {
	a, b = narrowed(typ, a), narrowed(typ, b)
	switch {
	case b == 0:
		return 0, a
	case typ == "ulong":
		return int64(uint64(a) / uint64(b)), int64(uint64(a) % uint64(b))
	}
	return narrowed(typ, a/b), narrowed(typ, a%b)
}

// onOne runs launches on one goroutine.
func onOne[R kerneltest.Running](newRun func(launch.Launch) (R, error)) func(launch.Launch) error {
	return func(l launch.Launch) error { return kerneltest.Run(newRun, l, 1) }
}
