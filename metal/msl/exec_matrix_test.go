package msl_test

import (
	"math"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal/msl"
)

// mat is a matrix of the tests: columns of rows.
type mat [][]float64

// count is the matrix with the elements first, first+step, ... column by column.
func count(cols, rows int, first, step float64) mat {
	m := make(mat, cols)
	for c := range m {
		for range rows {
			m[c] = append(m[c], first)
			first += step
		}
	}
	return m
}

func (m mat) flat() (r []float32) {
	for _, c := range m {
		for _, x := range c {
			r = append(r, float32(x))
		}
	}
	return r
}

// mul is a * b by the definition: the element in row r of column c is the sum of a[k][r] b[c][k].
func mul(a, b mat) mat {
	p := make(mat, len(b))
	for c := range b {
		p[c] = make([]float64, len(a[0]))
		for r := range p[c] {
			for k := range a {
				p[c][r] += a[k][r] * b[c][k]
			}
		}
	}
	return p
}

func each(a, b mat, f func(x, y float64) float64) mat {
	r := make(mat, len(a))
	for c := range a {
		for i := range a[c] {
			r[c] = append(r[c], f(a[c][i], b[c][i]))
		}
	}
	return r
}

// matrixText declares the matrices a (4 by 4 from 1), b (4 by 4 from -7), p (2 columns of 3), q (3 columns of 2).
const matrixText = `
float4x4 a, b; float2x3 p; float3x2 q;
for (int i = 0; i < 16; ++i) { a[i / 4][i % 4] = 1 + i; b[i / 4][i % 4] = 2 * i - 7; }
for (int i = 0; i < 6; ++i) { p[i / 3][i % 3] = i + 2; q[i / 2][i % 2] = 3 * i - 4; }
if (lane != 0) return;
`

func TestMatrices(t *testing.T) {
	t.Parallel()
	a, b := count(4, 4, 1, 1), count(4, 4, -7, 2)
	p, q := count(2, 3, 2, 1), count(3, 2, -4, 3)
	vec := func(xs ...float64) mat { return mat{xs} }
	for _, c := range []struct {
		expr string
		want mat
	}{
		{"float4x4 r = a * b;", mul(a, b)},
		{"float3x3 r = p * q;", mul(p, q)},
		{"float2x2 r = q * p;", mul(q, p)},
		{"float4x4 r = a + b;", each(a, b, func(x, y float64) float64 { return x + y })},
		{"float4x4 r = a - b;", each(a, b, func(x, y float64) float64 { return x - y })},
		{"float4x4 r = -a;", count(4, 4, -1, -1)},
		{"float4x4 r = a * 2;", count(4, 4, 2, 2)},
		{"float4x4 r = 0.5f * a;", count(4, 4, .5, .5)},
		{"float4x4 r = a; r *= 2.0f; r += b; r -= b;", count(4, 4, 2, 2)},
		{"float4x4 r = a; r *= b;", mul(a, b)},
		{"float4 v = a * float4(1, 2, 3, 4); float2x2 r(v.xy, v.zw);",
			mat{mul(a, vec(1, 2, 3, 4))[0][:2], mul(a, vec(1, 2, 3, 4))[0][2:]}},
		{"float2 v = float3(1, -2, 3) * p; float2x2 r(v, v);", mat{{2 - 6 + 12, 5 - 12 + 21}, {8, 14}}},
		{"float3 v = p * float2(1, 2); float3x3 r(v, v, v);", mat{{12, 15, 18}, {12, 15, 18}, {12, 15, 18}}},
		{"float3x2 r = transpose(p);", mat{{2, 5}, {3, 6}, {4, 7}}},
		{"float3x3 r = float3x3(2.5f);", mat{{2.5, 0, 0}, {0, 2.5, 0}, {0, 0, 2.5}}},
		{"float2x3 r(1, 2, 3, 4, 5.5f, 6);", mat{{1, 2, 3}, {4, 5.5, 6}}},
		{"float2x2 r = {float2(1, 2), {3, 4}};", mat{{1, 2}, {3, 4}}},
		{"float2x2 r(half2x2(half2(1, 2), half2(0.1h, 4)));", mat{{1, 2}, {0.0999755859375, 4}}},
		{"float2x2 r = float2x2(); r[1].y = 4; r[1][0] = a[2].x;", mat{{0, 0}, {9, 4}}},
		{"float2x2 r; r.columns[0] = 1; r[1] = float2(determinant(r), 2);", mat{{1, 1}, {0, 2}}},
	} {
		n := len(c.want) * len(c.want[0])
		body := matrixText + c.expr + `
for (int i = 0; i < ` + strconv.Itoa(n) + `; ++i) out[i] = r[i / ` +
			strconv.Itoa(len(c.want[0])) + `][i % ` + strconv.Itoa(len(c.want[0])) + `];`
		require.Equal(t, c.want.flat(), runLanes(t, "", body, 32, n, msl.Options{}), c.expr)
	}
}

func TestMatrixScalars(t *testing.T) {
	t.Parallel()
	for expr, want := range map[string]float64{
		"determinant(float2x2(float2(3, 1), float2(4, 2)))":                            2,
		"determinant(float3x3(float3(2, 0, 1), float3(1, 3, 2), float3(1, 1, 4)))":     18,
		"determinant(float4x4(1, 2, 3, 4, 2, 1, 0, 1, 0, 5, 1, 2, 1, 1, 1, 3))":        36,
		"determinant(float4x4(a[0], a[1], a[2], a[3]))":                                0,
		"(a == a) + 2 * (a == b) + 4 * (a != b)":                                       5,
		"sizeof(float3x3) + 1000 * sizeof(half2x4) + alignof(float4x2)":                16000 + 48 + 8,
		"is_same_v<decltype(a * b), float4x4> + 2 * is_same_v<decltype(a[0]), float4>": 1,
	} {
		got := runLanes(t, "", matrixText+"out[0] = "+expr+";", 32, 1, msl.Options{})
		require.Equal(t, float32(want), got[0], expr)
	}
}

// Matrices as members, in every address space.
func TestMatrixPlaces(t *testing.T) {
	t.Parallel()
	pre := `struct Box { float s; float2x2 m; };
constant float2x2 swap = float2x2(float2(0, 1), float2(1, 0));
`
	got := runLanes(t, pre, `
threadgroup float2x2 shared[32]; threadgroup Box box[2];
device float2x2 *mine = (device float2x2 *)out;
const device float2x2 *from = (const device float2x2 *)in;
shared[lane] = from[lane];
if (lane == 0) { box[0].m = swap; box[1].s = 2; }
threadgroup_barrier(mem_flags::mem_threadgroup);
mine[lane] = shared[31 - lane] * box[0].m;
mine[lane][1] += from[lane][0] * box[1].s;
mine[lane][0][1] = swap[0][1] + from[1][1].y;`, 32, 128, msl.Options{})
	want := make([]float32, 128)
	for i := range 32 {
		o := float32(4 * (31 - i))
		copy(want[4*i:], []float32{o + 2, 1 + 7, o + float32(8*i), o + 1 + float32(8*i+2)})
	}
	require.Equal(t, want, got)
}

// The values of the Metal specification's formulas for packed numbers, computed here in float64.
func TestPack(t *testing.T) {
	t.Parallel()
	srgb := func(c float64) float64 {
		if c < 0.0031308 {
			return 12.92 * c
		}
		return 1.055*math.Pow(c, 1/2.4) - 0.055
	}
	unorm := func(x float64, bits int) uint32 {
		return uint32(math.RoundToEven(min(max(x, 0), 1) * float64(uint32(1)<<bits-1)))
	}
	snorm := func(x float64, bits int) uint32 {
		top := float64(uint32(1)<<(bits-1) - 1)
		return uint32(int32(math.RoundToEven(min(max(x, -1), 1)*top))) & (uint32(1)<<bits - 1)
	}
	x := [4]float64{0.125, -0.5, 0.75, 2}
	const v = "float4(0.125f, -0.5f, 0.75f, 2)"
	for expr, want := range map[string]uint32{
		"pack_float_to_unorm4x8(" + v + ")": unorm(x[0], 8) | unorm(x[1], 8)<<8 | unorm(x[2], 8)<<16 | unorm(x[3], 8)<<24,
		"pack_half_to_unorm4x8(half4(" + v + "))": unorm(x[0], 8) | unorm(x[1], 8)<<8 | unorm(x[2], 8)<<16 |
			unorm(x[3], 8)<<24,
		"pack_float_to_snorm4x8(" + v + ")":     snorm(x[0], 8) | snorm(x[1], 8)<<8 | snorm(x[2], 8)<<16 | snorm(x[3], 8)<<24,
		"pack_float_to_unorm2x16(" + v + ".xy)": unorm(x[0], 16) | unorm(x[1], 16)<<16,
		"pack_float_to_snorm2x16(" + v + ".zy)": snorm(x[2], 16) | snorm(x[1], 16)<<16,
		"pack_float_to_unorm10a2(" + v + ")": unorm(x[0], 10) | unorm(x[1], 10)<<10 | unorm(x[2], 10)<<20 |
			unorm(x[3], 2)<<30,
		"pack_float_to_srgb_unorm4x8(" + v + ")": unorm(srgb(x[0]), 8) | unorm(srgb(0), 8)<<8 | unorm(srgb(x[2]), 8)<<16 |
			255<<24,
		"pack_float_to_unorm565(" + v + ".xyz)":      unorm(x[0], 5)<<11 | unorm(x[2], 5),
		"pack_float_to_unorm4x8(float4(NAN, 1,0,0))": 255 << 8,
	} {
		got := runLanes(t, "", "if (lane == 0) out[0] = as_type<float>(uint("+expr+"));", 32, 1, msl.Options{})
		require.Equal(t, want, math.Float32bits(got[0]), expr)
	}
	for expr, want := range map[string][4]float64{
		"unpack_unorm4x8_to_float(0x80ff0133u)":               {51. / 255, 1. / 255, 1, 128. / 255},
		"unpack_snorm4x8_to_float(0x80ff017fu)":               {1, 1. / 127, -1. / 127, -1},
		"unpack_unorm2x16_to_float(0xffff8000u)":              {32768. / 65535, 1},
		"unpack_snorm2x16_to_float(0x80008001u)":              {-1, -1},
		"unpack_unorm10a2_to_float(0x80300401u)":              {1. / 1023, 1. / 1023, 3. / 1023, 2. / 3},
		"float4(unpack_unorm565_to_float(ushort(0xf821)), 0)": {1, 1. / 63, 1. / 31},
		"float4(unpack_unorm4x8_to_half(0xff00u))":            {0, 1, 0, 0},
		"unpack_unorm4x8_srgb_to_float(0xff0a80ffu)": {
			1, math.Pow((128./255+.055)/1.055, 2.4), 10. / 255 / 12.92, 1},
	} {
		body := "auto v = " + expr + "; for (int i = 0; i < int(sizeof(v) / 4); ++i) out[i] = v[i];"
		got := runLanes(t, "", "if (lane) return; "+body, 32, 4, msl.Options{})
		for i := range want {
			if i > 1 && got[i] == 0 && want[i] == 0 {
				continue
			}
			require.InDelta(t, want[i], got[i], 3e-7, "%s [%d]", expr, i)
		}
	}
}
