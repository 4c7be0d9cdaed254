//go:build amd64 && linux

package jit

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mlxlua/mlxlua/metal/jit/choose"
	"github.com/mlxlua/mlxlua/metal/kir/opt"
	"github.com/mlxlua/mlxlua/metal/launch"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal/jit/lanes"
	"github.com/mlxlua/mlxlua/metal/kerneltest"
	"github.com/mlxlua/mlxlua/metal/msl"
)

// Kernels on one thread: each benchmark prints what part of the machine's limit it reaches.
//
//	go test ./metal/jit -run '^$' -bench . -count 5

// measure runs a launch often and returns the median seconds of one.
func measure(b *testing.B, p *Executable, l launch.Launch, repeat int) float64 {
	t := seconds(9, func() {
		for range repeat {
			require.NoError(b, kerneltest.Run(p.NewRun, l, 1))
		}
	}) / float64(repeat)
	for b.Loop() {
		require.NoError(b, kerneltest.Run(p.NewRun, l, 1))
	}
	return t
}

// eachLevel runs a benchmark with AVX2 and then AVX-512, where the processor has them.
func eachLevel(b *testing.B, f func(b *testing.B, level Level)) {
	best, err := Best()
	for _, level := range []Level{AVX2, AVX512} {
		b.Run(strings.ReplaceAll(strings.ToLower(level.String()), "-", ""), func(b *testing.B) {
			switch {
			case err != nil:
				b.Skip(err)
			case level > best:
				b.Skipf("no %s on this processor", level)
			}
			f(b, level)
		})
	}
}

// BenchmarkGelu is gelu(a*b+c): 4 million elements against copying as many bytes, 16 thousand against copying in L2.
// The levels take turns: what AVX-512 is more than AVX2, as many times as fast, is the median of the turns.
func BenchmarkGelu(b *testing.B) {
	best, err := Best()
	if err != nil {
		b.Skip(err)
	}
	for _, size := range []struct {
		name      string
		n, repeat int
	}{{"4M", 4 << 20, 1}, {"L2", 16 << 10, 64}} {
		b.Run(size.name, func(b *testing.B) {
			n := size.n
			l := launch.Launch{Grid: [3]int{n, 1, 1}, Threadgroup: [3]int{256, 1, 1},
				Buffers: [][]byte{floatBytes(b, n), floatBytes(b, n), floatBytes(b, n), floatBytes(b, n)}}
			turn := func(p *Executable) float64 {
				return seconds(1, func() {
					for range size.repeat {
						require.NoError(b, kerneltest.Run(p.NewRun, l, 1))
					}
				}) / float64(size.repeat)
			}
			var programs []*Executable
			for level := AVX2; level <= best; level++ {
				programs = append(programs, prepare(b, geluText, level))
			}
			// The limit moves as many bytes in as much memory, in turn with the programs, by Go's own copying: that stores past
			// the cache where there is much to copy, as kernels do.
			from, to := floatBytes(b, 2*n), floatBytes(b, 2*n)
			times, ratios, copying := make([][]float64, len(programs)), []float64(nil), []float64(nil)
			for range 31 {
				copying = append(copying, seconds(1, func() { copy(to, from) }))
				for i, p := range programs {
					times[i] = append(times[i], turn(p))
				}
				if last := len(times[0]) - 1; len(programs) > 1 {
					ratios = append(ratios, times[0][last]/times[1][last])
				}
			}
			for b.Loop() {
				require.NoError(b, kerneltest.Run(programs[len(programs)-1].NewRun, l, 1))
			}
			roof := float64(16*n) / median(copying)
			if size.name == "L2" { // where Go's copying is not the quickest
				roof = l2Copy()
			}
			for i, name := range []string{"avx2", "avx512"}[:len(programs)] {
				t := median(times[i])
				b.ReportMetric(t*1e9/float64(n), name+"-ns/elem")
				b.ReportMetric(100*float64(16*n)/t/roof, name+"-%copy")
			}
			if len(ratios) > 0 {
				b.ReportMetric(median(ratios), "x-avx2")
			}
		})
	}
}

// qmvBody is the frame of the other usual ways to write it: BODY adds up a part of a row for each lane.
const qmvBody = `
constant constexpr uint K = 4096, GROUP = 64;
kernel void qmv(const device uint* w [[buffer(0)]], const device S* scales [[buffer(1)]],
                const device S* biases [[buffer(2)]], const device float* x [[buffer(3)]],
                device float* out [[buffer(4)]], uint group [[threadgroup_position_in_grid]],
                uint lane [[thread_index_in_simdgroup]], uint sg [[simdgroup_index_in_threadgroup]]) {
    BODY
}`

// qmvForms are usual ways to write a 4-bit matrix times a vector: name, type of scales, body.
var qmvForms = [][3]string{
	// Two words, 16 values, for each lane and round.
	{"words2", "float", `
    uint row = group * 8 + sg;
    const device uint* wr = w + row * (K / 8);
    float acc = 0;
    for (uint k = 2 * lane; k < K / 8; k += 64) {
        float dot = 0, sum = 0;
        for (uint i = 0; i < 2; i++) {
            uint packed = wr[k + i];
            for (uint j = 0; j < 8; j++) {
                float v = x[8 * (k + i) + j];
                dot += v * float((packed >> (4 * j)) & 0xf);
                sum += v;
            }
        }
        acc += scales[row * (K / GROUP) + k / 8] * dot + biases[row * (K / GROUP) + k / 8] * sum;
    }
    acc = simd_sum(acc);
    if (lane == 0) out[row] = acc;`},
	// Four words as a vector, x as vectors of four, scales in half precision.
	{"uint4", "half", `
    uint row = group * 8 + sg;
    const device uint4* wr = (const device uint4*)(w + row * (K / 8));
    const device float4* xv = (const device float4*)x;
    float acc = 0;
    for (uint k = lane; k < K / 32; k += 32) {
        uint4 q = wr[k];
        float dot = 0, sum = 0;
        for (uint i = 0; i < 4; i++) {
            uint p = q[i];
            float4 a = xv[8 * k + 2 * i], b = xv[8 * k + 2 * i + 1];
            dot += a.x * float(p & 15) + a.y * float((p >> 4) & 15) + a.z * float((p >> 8) & 15) +
                   a.w * float((p >> 12) & 15) + b.x * float((p >> 16) & 15) + b.y * float((p >> 20) & 15) +
                   b.z * float((p >> 24) & 15) + b.w * float(p >> 28);
            sum += a.x + a.y + a.z + a.w + b.x + b.y + b.z + b.w;
        }
        uint g = row * (K / GROUP) + k / 2;
        acc += float(scales[g]) * dot + float(biases[g]) * sum;
    }
    acc = simd_sum(acc);
    if (lane == 0) out[row] = acc;`},
	// Four rows for each SIMD-group, x in registers, 16 values a lane: as in MLX's own kernel.
	{"rows4", "bfloat", `
    uint row = (group * 2 + sg) * 4;
    float acc[4] = {0, 0, 0, 0};
    for (uint k = 0; k < K; k += 512) {
        float xs[16];
        float sum = 0;
        uint at = k + 16 * lane;
        for (uint i = 0; i < 16; i++) {
            xs[i] = x[at + i];
            sum += xs[i];
        }
        for (uint r = 0; r < 4; r++) {
            const device ushort* ws = (const device ushort*)(w + (row + r) * (K / 8) + at / 8);
            float dot = 0;
            for (uint i = 0; i < 4; i++) {
                dot += xs[4 * i] * float(ws[i] & 15) + xs[4 * i + 1] * float((ws[i] >> 4) & 15) +
                       xs[4 * i + 2] * float((ws[i] >> 8) & 15) + xs[4 * i + 3] * float(ws[i] >> 12);
            }
            uint g = (row + r) * (K / GROUP) + at / GROUP;
            acc[r] += float(scales[g]) * dot + float(biases[g]) * sum;
        }
    }
    for (uint r = 0; r < 4; r++) {
        float s = simd_sum(acc[r]);
        if (lane == 0) out[row + r] = s;
    }`},
	// Bytes, two values each; a row is one SIMD-group's.
	{"bytes", "float", `
    uint row = group * 8 + sg;
    const device uchar* wr = (const device uchar*)(w + row * (K / 8));
    float acc = 0;
    for (uint k = 4 * lane; k < K / 2; k += 128) {
        float scale = scales[row * (K / GROUP) + k / 32], bias = biases[row * (K / GROUP) + k / 32];
        for (uint j = 0; j < 4; j++) {
            uchar b = wr[k + j];
            acc += x[2 * (k + j)] * (scale * float(b & 0xf) + bias);
            acc += x[2 * (k + j) + 1] * (scale * float(b >> 4) + bias);
        }
    }
    acc = simd_sum(acc);
    if (lane == 0) out[row] = acc;`},
}

// qmvTexts are all forms by name.
func qmvTexts() (names []string, texts map[string]string) {
	names, texts = []string{"word"}, map[string]string{"word": qmvText}
	for _, f := range qmvForms {
		names = append(names, f[0])
		texts[f[0]] = strings.NewReplacer("S*", f[1]+"*", "BODY", f[2]).Replace(qmvBody)
	}
	return names, texts
}

// BenchmarkQmv is a 4-bit matrix (4096 x 4096, groups of 64) times a vector, over eight matrices in turn, so that
// they come from memory, against reading as many bytes: the usual ways to write it.
func BenchmarkQmv(b *testing.B) {
	const K, N, copies = 4096, 4096, 8
	names, texts := qmvTexts()
	for _, name := range names {
		b.Run(name, func(b *testing.B) {
			eachLevel(b, func(b *testing.B, level Level) {
				p := prepare(b, texts[name], level)
				w := floatBytes(b, copies*N*K/8)
				scales, biases, x, out := floatBytes(b, N*K/64), floatBytes(b, N*K/64), floatBytes(b, K), floatBytes(b, N)
				threads := 256
				if name == "rows4" {
					threads = 64
				}
				turn := 0
				run := func() {
					turn = (turn + 1) % copies
					require.NoError(b, kerneltest.Run(p.NewRun, launch.Launch{Grid: [3]int{N / 8 * threads, 1, 1},
						Threadgroup: [3]int{threads, 1, 1},
						Buffers:     [][]byte{w[turn*N*K/2 : (turn+1)*N*K/2], scales, biases, x, out}}, 1))
				}
				t := seconds(17, run)
				for b.Loop() {
					run()
				}
				size := 4.0 // of a scale
				if name == "uint4" || name == "rows4" {
					size = 2
				}
				bytes := float64(N*K/2) + 2*size*N*K/64
				b.ReportMetric(t*1e3, "ms")
				b.ReportMetric(100*bytes/t/readRoof(), "%read")
			})
		})
	}
}

// BenchmarkGatedDelta is the gated delta rule with 32 heads: one step against copying the state in L3, 64 steps against
// the machine's peak of multiply-adds.
func BenchmarkGatedDelta(b *testing.B) {
	const heads, dim = 32, 128
	for _, steps := range []int{1, 64} {
		b.Run(fmt.Sprintf("T=%d", steps), func(b *testing.B) {
			eachLevel(b, func(b *testing.B, level Level) {
				p := prepare(b, gatedDeltaText, level)
				seq := func() []byte { return floatBytes(b, steps*heads*dim) }
				state, end := floatBytes(b, heads*dim*dim), floatBytes(b, heads*dim*dim)
				l := launch.Launch{Grid: [3]int{32, dim, heads}, Threadgroup: [3]int{32, 4, 1},
					Buffers: [][]byte{seq(), seq(), seq(), floatBytes(b, steps*heads), floatBytes(b, steps*heads), state,
						words(uint32(steps)), seq(), end}}
				t := measure(b, p, l, 3)
				b.ReportMetric(t*1e3, "ms")
				b.ReportMetric(100*2*4*heads*dim*dim/t/l3Copy(), "%L3copy")
				b.ReportMetric(100*7*float64(steps)*heads*dim*dim/t/fmaPeak(), "%fma")
			})
		})
	}
}

// BenchmarkCompile is the way from text to machine code, for the three kernels above.
func BenchmarkCompile(b *testing.B) {
	for name, text := range map[string]string{"gelu": geluText, "qmv": qmvText, "gated_delta": gatedDeltaText} {
		geo := lanes.Geometry{Row: true, Aligned: true, Full: true}
		m, err := msl.Compile(msl.Source{Name: "bench", Text: text}, msl.Options{})
		require.NoError(b, err)
		level := prepare(b, text, 0).level
		b.Run(name+"/msl", func(b *testing.B) {
			for b.Loop() {
				_, err := msl.Compile(msl.Source{Name: "bench", Text: text}, msl.Options{})
				require.NoError(b, err)
			}
		})
		b.Run(name+"/jit", func(b *testing.B) {
			for b.Loop() {
				c, err := choose.Compile(opt.Run(m.Kernels[0], opt.Launch{}), choose.Options{Target: level.target(), Geometry: geo})
				require.NoError(b, err)
				b.ReportMetric(float64(len(c.Bytes)), "bytes")
			}
		})
	}
}
