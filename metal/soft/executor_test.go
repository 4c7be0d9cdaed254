package soft

import (
	"context"
	"encoding/binary"
	"errors"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/metal/jit"
	"github.com/mlxlua/mlxlua/metal/kir"
)

const levelsAskedFor = ", avx2, avx512, avx512bf16, neon, neonfp16, neonfp16fml or neonbf16"

// TestTheNameSaysWhatRunsKernels: what was asked for and cannot be had is not passed over in silence.
func TestTheNameSaysWhatRunsKernels(t *testing.T) {
	refused := errors.New("pages of machine code are refused: permission denied")
	const bogus = "MLXLUA_JIT=bogus means nothing: 0" + levelsAskedFor
	for _, c := range []struct {
		option, env string
		best        jit.Level
		why         error
		level       jit.Level // 0: the interpreter
		name        string
	}{
		{"", "", jit.AVX512, nil, jit.AVX512, "AVX-512 machine code"},
		{"", "", jit.AVX2, nil, jit.AVX2, "AVX2 machine code"},
		{"", "", 0, refused, 0, "interpreter (pages of machine code are refused: permission denied)"},
		{"", "0", jit.AVX512, nil, 0, "interpreter"},
		{"", "0", 0, refused, 0, "interpreter"},
		{"interp", "avx2", jit.AVX512, nil, 0, "interpreter"},
		{"", "avx2", jit.AVX512, nil, jit.AVX2, "AVX2 machine code"},
		{"avx2", "0", jit.AVX512, nil, jit.AVX2, "AVX2 machine code"},
		{"", "avx512", jit.AVX512, nil, jit.AVX512, "AVX-512 machine code"},
		{"", "avx512", jit.AVX512BF16, nil, jit.AVX512, "AVX-512 machine code"},
		{"", "avx512bf16", jit.AVX512BF16, nil, jit.AVX512BF16, "AVX-512 BF16 machine code"},
		{"", "avx512bf16", jit.AVX512, nil, 0, "interpreter (no AVX-512 BF16 on this processor)"},
		{"", "avx512", jit.AVX2, nil, 0, "interpreter (no AVX-512 on this processor)"},
		{"avx512", "", jit.AVX2, nil, 0, "interpreter (no AVX-512 on this processor)"},
		{"", "", jit.NEON, nil, jit.NEON, "NEON machine code"},
		{"", "neon", jit.NEON, nil, jit.NEON, "NEON machine code"},
		{"", "", jit.NEONBF16, nil, jit.NEONBF16, "NEON BF16 machine code"},
		{"", "neon", jit.NEONBF16, nil, jit.NEON, "NEON machine code"},
		{"", "neonfp16", jit.NEONBF16, nil, jit.NEONFP16, "NEON FP16 machine code"},
		{"", "neonbf16", jit.NEONFP16FML, nil, 0, "interpreter (no NEON BF16 on this processor)"},
		{"", "avx2", jit.NEON, nil, 0, "interpreter (no AVX2 on this processor)"},
		{"", "avx512bf16", jit.NEONBF16, nil, 0, "interpreter (no AVX-512 BF16 on this processor)"},
		{"", "neon", jit.AVX512BF16, nil, 0, "interpreter (no NEON on this processor)"},
		{"", "avx2", 0, refused, 0, "interpreter (pages of machine code are refused: permission denied)"},
		{"", "bogus", jit.AVX512, nil, jit.AVX512,
			"AVX-512 machine code (" + bogus + ")"},
		{"", "bogus", 0, refused, 0, "interpreter (pages of machine code are refused: permission denied) " +
			"(" + bogus + ")"},
		{"bogus", "0", jit.AVX2, nil, jit.AVX2,
			`AVX2 machine code (the executor "bogus" means nothing: interp` + levelsAskedFor + ")"},
	} {
		e := chooseExecutor(c.option, c.env, c.best, c.why)
		require.Equal(t, c.name, e.name)
		require.Equal(t, executor{jit: c.level != 0, opt: jit.Options{Level: c.level}, name: c.name}, e)
	}
	t.Setenv("MLXLUA_JIT", "bogus")
	d := New(Options{})
	defer d.Close()
	require.Contains(t, d.Info().Name, bogus)
	t.Setenv("MLXLUA_JIT", "0")
	e := New(Options{})
	defer e.Close()
	require.Regexp(t, `, interpreter$`, e.Info().Name)
}

// addOnce runs addk on a driver whose compiler of machine code calls before, and returns how that ended.
func addOnce(t *testing.T, before func(*kir.Kernel, bool) error) ([]byte, error) {
	best, why := jit.Best()
	if why != nil {
		t.Skip(why)
	}
	e := executor{jit: true, opt: jit.Options{Level: best, BeforeCompile: before}}
	dev, err := metal.NewDevice(newDriver(Options{Workers: 2, Compiler: compileTest}, e), metal.DeviceOptions{})
	require.NoError(t, err)
	dev.SetValidate(false) // validation is the interpreter's
	t.Cleanup(func() { require.NoError(t, dev.Close()) })
	in, out := alloc(t, dev, 4*100), alloc(t, dev, 4*100)
	cb := dev.NewCommandBuffer(0, "")
	require.NoError(t, cb.Encoder().Fill(in.All(), u32Bytes(5)))
	require.NoError(t, withNumber(cb.Encoder(), pipeline(t, dev, "addk"), in, out, 2))
	require.NoError(t, cb.Commit())
	err = cb.Wait(context.Background())
	return append([]byte(nil), out.Host()...), err
}

// TestStridesOfALaunch: code may count on bytes that come with a launch, and not on what a buffer holds.
func TestStridesOfALaunch(t *testing.T) {
	best, why := jit.Best()
	if why != nil {
		t.Skip(why)
	}
	loads := map[int]int{} // kernels compiled, by their loads
	e := executor{jit: true, opt: jit.Options{Level: best, BeforeCompile: func(k *kir.Kernel, _ bool) error {
		n := 0
		k.Body.Walk(func(i *kir.Instr) {
			if i.Op == kir.Load {
				n++
			}
		})
		loads[n]++
		return nil
	}}}
	dev, err := metal.NewDevice(newDriver(Options{Workers: 1, Compiler: compileTest}, e), metal.DeviceOptions{})
	require.NoError(t, err)
	dev.SetValidate(false)
	t.Cleanup(func() { require.NoError(t, dev.Close()) })
	in, out, stride := alloc(t, dev, 4*300), alloc(t, dev, 4*96), alloc(t, dev, 4)
	for i := range 300 {
		binary.LittleEndian.PutUint32(in.Host()[4*i:], uint32(i)*7)
	}
	p := pipeline(t, dev, "strided")
	run := func(s uint32, inline bool) {
		copy(stride.Host(), u32Bytes(s))
		cb := dev.NewCommandBuffer(0, "")
		enc := cb.Encoder()
		enc.SetPipeline(p)
		enc.SetBuffer(0, in, 0)
		if enc.SetBuffer(1, stride, 0); inline {
			enc.SetBytes(1, u32Bytes(s))
		}
		enc.SetBuffer(2, out, 0)
		require.NoError(t, enc.Dispatch(x(96), x(32)))
		require.NoError(t, cb.Commit())
		require.NoError(t, cb.Wait(context.Background()))
		for i := range uint32(96) {
			require.Equal(t, i*s*7, binary.LittleEndian.Uint32(out.Host()[4*i:]))
		}
	}
	run(1, true)
	require.Equal(t, map[int]int{1: 1}, loads, "the stride is not read")
	run(1, false)
	require.Equal(t, map[int]int{1: 1, 2: 1}, loads)
	for _, s := range []uint32{2, 0, 1, 3} {
		run(s, true)
		run(s, false)
	}
	require.Equal(t, map[int]int{1: 2, 2: 1}, loads, "0 and 1 have code of their own")
}

// TestBugsOfTheCompilerSurface: the interpreter serves where there is no machine code for a kernel; it does not hide
// that the compiler is broken.
func TestBugsOfTheCompilerSurface(t *testing.T) {
	_, err := addOnce(t, func(k *kir.Kernel, _ bool) error { panic("lost a register of " + k.Name) })
	require.ErrorContains(t, err, "[addk] BUG: the compiler of machine code: lost a register of addk")

	var asked atomic.Int64
	got, err := addOnce(t, func(k *kir.Kernel, _ bool) error {
		asked.Add(1)
		return &jit.Unsupported{Kernel: k.Name, Op: kir.Load, Why: "a test says so"}
	})
	require.NoError(t, err)
	require.Positive(t, asked.Load())
	require.Equal(t, u32Bytes(7), got[4*99:], "the interpreter ran it")

	got, err = addOnce(t, func(*kir.Kernel, bool) error { return nil })
	require.NoError(t, err)
	require.Equal(t, u32Bytes(7), got[4*99:])
}

// BenchmarkCancellation is the time from the end of a context to that of the command buffer whose endless kernel it
// stops: the median and the worst.
func BenchmarkCancellation(b *testing.B) {
	dev, err := metal.NewDevice(New(Options{Compiler: compileTest}), metal.DeviceOptions{})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, dev.Close()) })
	dev.SetValidate(false)
	p, out := pipeline(b, dev, "endless"), alloc(b, dev, 4)
	var took []time.Duration
	for b.Loop() {
		cb := dev.NewCommandBuffer(0, "")
		cb.Encoder().SetPipeline(p)
		cb.Encoder().SetBuffer(0, out, 0)
		require.NoError(b, cb.Encoder().Dispatch(x(1000), x(32)))
		ctx, cancel := context.WithCancel(context.Background())
		stop := context.AfterFunc(ctx, func() { cb.Cancel(context.Cause(ctx)) })
		clear(out.Host())
		require.NoError(b, cb.Commit())
		awaitChange(out)
		start := time.Now()
		cancel()
		require.ErrorIs(b, cb.Wait(context.Background()), context.Canceled)
		took = append(took, time.Since(start))
		stop()
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/1e3, "us/median")
	b.ReportMetric(float64(took[len(took)-1].Nanoseconds())/1e3, "us/worst")
}

// awaitChange returns when the kernel is running: it has counted.
func awaitChange(out *metal.Buffer) {
	for word := (*uint32)(unsafe.Pointer(&out.Host()[0])); atomic.LoadUint32(word) == 0; {
		runtime.Gosched()
	}
}
