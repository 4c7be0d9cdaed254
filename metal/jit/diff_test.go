package jit_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/internal/serial"
	"github.com/mlxlua/mlxlua/metal/interp"
	"github.com/mlxlua/mlxlua/metal/jit"
	"github.com/mlxlua/mlxlua/metal/kerneltest"
	"github.com/mlxlua/mlxlua/metal/kir"
	"github.com/mlxlua/mlxlua/metal/launch"
	"github.com/mlxlua/mlxlua/metal/msl"
)

// Machine code against the reference executor. Random programs:
//
//	go test ./metal/jit -run TestRandomPrograms -jit.fuzztime 1h     prints programs a second, and the seed of each
//
// find
//
//	go test ./metal/jit -fuzz FuzzPrograms
//
// What they find is kept, with as few lines as possible, in testdata/cases, and runs with every test.
var (
	fuzzTime = flag.Duration("jit.fuzztime", 0, "how long TestRandomPrograms runs new programs")
	fuzzSeed = flag.Uint64("jit.seed", 0, "the first seed")
)

// patience is how long a program may run: all of them end within milliseconds.
var patience = 10 * time.Second

// levels are the instruction sets that can be tried here.
func levels(tb testing.TB) []jit.Level {
	best, err := jit.Best()
	switch {
	case err != nil:
		tb.Skip(err)
	case best == jit.AVX2 || best == jit.NEON:
		return []jit.Level{best}
	case best > jit.NEON:
		return []jit.Level{best, jit.NEON}
	}
	return []jit.Level{jit.AVX512, jit.AVX2}
}

// runner executes launches on so many goroutines, one for each processor if that is 0.
type runner func(l launch.Launch, workers int) error

// runs returns the runner of an executable, of any executor.
func runs[R kerneltest.Running](newRun func(launch.Launch) (R, error)) runner {
	return func(l launch.Launch, workers int) error { return kerneltest.Run(newRun, l, workers) }
}

// execute runs a case on buffers that the kernel has some of, and returns those.
func execute[R kerneltest.Running](
	c *kerneltest.Case, k *kir.Kernel, newRun func(launch.Launch) (R, error), all [][]byte,
) ([][]byte, error) {
	b, fixed := kerneltest.Bind(k, all)
	var late atomic.Bool
	l := launch.Launch{Grid: c.Grid, Threadgroup: c.Threadgroup, Buffers: b, Fixed: fixed, Interrupt: &late}
	var timer *time.Timer
	err := kerneltest.Run(func(l launch.Launch) (R, error) {
		r, err := newRun(l) // patience is not for compiling
		timer = time.AfterFunc(patience, func() { late.Store(true) })
		return r, err
	}, l, 0)
	timer.Stop()
	return b, err
}

// fences are fenced memory that no case uses: taking it from the system costs as much as a short program.
var fences = make(chan *fenced, 1024)

func clones(from [][]byte) [][]byte {
	r := make([][]byte, len(from))
	for i, b := range from {
		r[i] = slices.Clone(b)
	}
	return r
}

// errText is for cases whose text is no kernel: not the executors' fault.
var errText = errors.New("the text does not compile")

// variants are the ways to compile a case: each level plainly, then with stores past the cache, paired groups and
// coarse lives, which programs choose by themselves for large launches or kernels only.
func variants(levels []jit.Level) []jit.Options {
	var r []jit.Options
	for _, l := range levels {
		r = append(r, jit.Options{Level: l}, jit.Options{Level: l, PastAlways: true})
	}
	last := levels[len(levels)-1]
	return append(r, jit.Options{Level: levels[0], PairAlways: true}, jit.Options{Level: last, CoarseLives: true},
		jit.Options{Level: levels[0], CoarseLives: true, PairAlways: true})
}

// turn leaves out two of three of the variants that are not plain: another program has its turn with them.
func turn(seed uint64, all []jit.Options) (r []jit.Options) {
	for i, o := range all {
		if plain := !o.PastAlways && !o.PairAlways && !o.CoarseLives; plain || seed%3 == uint64(i/2%3) {
			r = append(r, o)
		}
	}
	return r
}

func label(o jit.Options) string {
	s := o.Level.String()
	if o.PastAlways {
		s += ", past the cache"
	}
	if o.PairAlways {
		s += ", paired"
	}
	if o.CoarseLives {
		s += ", coarse lives"
	}
	return s
}

// compare runs a case on the reference executor and on machine code of some variants, and returns how they differ.
// Machine code's buffers lie between pages that cannot be touched.
func compare(c *kerneltest.Case, variants []jit.Options) error {
	mod, err := msl.Compile(msl.Source{Name: "k", Text: c.Text}, msl.Options{Float64: true})
	if err == nil && len(mod.Kernels) != 1 {
		err = fmt.Errorf("%d kernels", len(mod.Kernels))
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errText, err)
	}
	k := mod.Kernels[0]
	ref, err := interp.Prepare(k, mod.Files)
	if err != nil {
		return fmt.Errorf("%w: %w", errText, err)
	}
	start := c.Buffers()
	var f *fenced
	select {
	case f = <-fences:
	default:
		f = new(fenced)
	}
	defer func() { fences <- f }()
	want, err := execute(c, k, ref.NewRun, clones(start))
	if d := changedInput(k, start, want); d != "" {
		return fmt.Errorf("interp: %s (%v)", d, err)
	}
	var fault *launch.Fault
	if err != nil && !errors.As(err, &fault) {
		return fmt.Errorf("%w: interp: %w", errText, err)
	}
	for _, o := range variants {
		p, err := jit.Prepare(k, mod.Files, o)
		if err != nil {
			return fmt.Errorf("%s: %w", label(o), err)
		}
		got, err := execute(c, k, p.NewRun, f.place(c.Seed, start))
		if d := changedInput(k, start, got); d != "" {
			return fmt.Errorf("%s: %s (%v)", label(o), d, err)
		}
		if fault != nil {
			if f := (*launch.Fault)(nil); !errors.As(err, &f) {
				return fmt.Errorf("%s: %v, want a fault like %w", label(o), err, fault)
			}
			continue // of several faults it may be another one
		}
		if err != nil {
			return fmt.Errorf("%s: %w", label(o), err)
		}
		if d := difference(k, want, got); d != "" {
			return fmt.Errorf("%s: %s", label(o), d)
		}
	}
	return nil
}

// changedInput says which input a kernel has changed, however it ended.
func changedInput(k *kir.Kernel, start, after [][]byte) string {
	before, _ := kerneltest.Bind(k, start)
	for i, p := range k.Params {
		if p.ReadOnly && !bytes.Equal(before[i], after[i]) {
			return "the input " + p.Name + " has changed"
		}
	}
	return ""
}

// difference describes the first difference of two sets of buffers.
func difference(k *kir.Kernel, want, got [][]byte) string {
	for i := range want {
		if bytes.Equal(want[i], got[i]) {
			continue
		}
		n := k.Params[i].ElemSize
		for at := 0; at+n <= len(want[i]); at += n {
			if w, g := want[i][at:at+n], got[i][at:at+n]; !bytes.Equal(w, g) {
				return fmt.Sprintf("%s[%d] is %x, want %x", k.Params[i].Name, at/n, g, w)
			}
		}
	}
	return ""
}

// TestCases runs what was found before.
func TestCases(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/cases/*.metal")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	l := variants(levels(t))
	for _, f := range files {
		text, err := os.ReadFile(f)
		require.NoError(t, err)
		c, err := kerneltest.Parse(string(text))
		require.NoError(t, err)
		if err := compare(c, l); err != nil {
			t.Errorf("%s: %v", f, err)
		}
	}
}

// find reports a difference, and keeps the shortest program that still has one.
func find(t *testing.T, c *kerneltest.Case, l []jit.Options, err error) {
	t.Errorf("seed %d: %v", c.Seed, err)
	if errors.Is(err, errText) {
		return // the generator's fault
	}
	patience = time.Second // thousands of attempts follow
	small := kerneltest.Reduce(c, func(try *kerneltest.Case) bool {
		err := compare(try, l)
		return err != nil && !errors.Is(err, errText)
	})
	t.Logf("seed %d: %v\n%s", c.Seed, compare(small, l), small)
	if *fuzzTime > 0 {
		fmt.Printf("seed %d: %v\n", c.Seed, err)
		file := filepath.Join("testdata", "cases", fmt.Sprintf("seed%d.metal", c.Seed))
		require.NoError(t, os.WriteFile(file, []byte(small.String()), 0o644))
	}
}

// TestRandomPrograms runs some programs, or as many as fit in -jit.fuzztime.
func TestRandomPrograms(t *testing.T) {
	serial.Because(t, "it runs on all processors, and bounds the time of a program")
	l := variants(levels(t))
	var done, large, failed atomic.Int64
	var next atomic.Uint64
	next.Store(*fuzzSeed)
	start := time.Now()
	enough := int64(80)
	if testing.Short() {
		enough = 20
	}
	over := func() bool {
		if *fuzzTime > 0 {
			return time.Since(start) > *fuzzTime || failed.Load() >= 10
		}
		return done.Load() >= enough || failed.Load() > 0
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for !over() {
				c := kerneltest.New(next.Add(1)-1, kerneltest.Threadgroups)
				err := compare(c, turn(c.Seed, l))
				var list msl.ErrorList
				if errors.As(err, &list) && list[0].Code == msl.TooLarge { // loops of macros and calls, all written out
					large.Add(1)
					continue
				}
				if err != nil {
					failed.Add(1)
					mu.Lock()
					find(t, c, l, err)
					mu.Unlock()
				}
				if n := done.Add(1); *fuzzTime > 0 && n%1000 == 0 {
					fmt.Printf("%d programs, %.0f a second, %d finds\n",
						n, float64(n)/time.Since(start).Seconds(), failed.Load())
				}
			}
		})
	}
	wg.Wait()
	t.Logf("%d programs, %.0f a second, %d were too large for msl", done.Load(),
		float64(done.Load())/time.Since(start).Seconds(), large.Load())
}

// FuzzPrograms lets Go's fuzzer choose the seeds.
func FuzzPrograms(f *testing.F) {
	l := variants(levels(f))
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) {
		if err := compare(kerneltest.New(seed, kerneltest.Threadgroups), l); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	})
}

// TestCorpus compiles every kernel of the folder that MLXLUA_KERNEL_CASES names, for every level.
func TestCorpus(t *testing.T) {
	t.Parallel()
	dir := os.Getenv("MLXLUA_KERNEL_CASES")
	if dir == "" {
		t.Skip("MLXLUA_KERNEL_CASES names no folder of kernels")
	}
	l := levels(t)
	files, err := filepath.Glob(filepath.Join(dir, "*.metal"))
	require.NoError(t, err)
	kernels := 0
	for _, f := range files {
		text, err := os.ReadFile(f)
		require.NoError(t, err)
		mod, err := msl.Compile(msl.Source{Name: filepath.Base(f), Text: string(text)}, msl.Options{})
		if err != nil {
			continue // the front end's refusal says nothing of machine code
		}
		for _, k := range mod.Kernels {
			kernels++
			for _, l := range l {
				for _, size := range [][3]int{{32, 1, 1}, {5, 3, 1}} {
					if err := compiles(k, mod.Files, l, size); err != nil {
						t.Errorf("%s: %s: %v", f, l, err)
					}
				}
			}
		}
	}
	t.Logf("%d kernels in %d files", kernels, len(files))
}

// compiles makes a kernel ready for threadgroups of a size.
func compiles(k *kir.Kernel, files []string, l jit.Level, size [3]int) error {
	p, err := jit.Prepare(k, files, jit.Options{Level: l})
	if err != nil {
		return err
	}
	at := launch.Launch{Grid: size, Threadgroup: size, ThreadgroupBytes: make([]int, len(k.Params))}
	for _, q := range k.Params {
		at.Buffers = append(at.Buffers, make([]byte, q.MinBytes))
	}
	if k.MaxThreads > 0 && k.MaxThreads < size[0]*size[1] {
		return nil
	}
	_, err = p.NewRun(at)
	return err
}
