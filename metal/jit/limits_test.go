//go:build amd64 && linux

package jit

import (
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/mlxlua/mlxlua/metal/jit/code"
	"github.com/mlxlua/mlxlua/metal/jit/native"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal/jit/amd64"
)

// The machine's limits, measured by machine code of the simplest kind, in the run whose figures they are compared with.

// loopCode returns code that runs body for count (RCX) rounds with RAX = round*step and the arguments of the arena in
// RSI, RDI, R8 (pointers).
func loopCode(tb testing.TB, step int32, body func(f *amd64.Program)) *native.Code {
	f := amd64.NewProgram()
	for i, r := range []code.R{code.RCX, code.RSI, code.RDI, code.R8} {
		f.Emit(code.Inst{Op: code.Mov, W: 8, Dst: r, Mem: code.Mem{Base: code.RBP, Disp: int32(8 * i)}})
	}
	f.Emit(code.Inst{Op: code.Mov, W: 4, Dst: code.RAX, Imm: 0})
	top := f.NewLabel()
	f.Bind(top)
	body(f)
	f.Emit(code.Inst{Op: code.Add, W: 8, Dst: code.RAX, Imm: int64(step)})
	f.Emit(code.Inst{Op: code.Sub, W: 8, Dst: code.RCX, Imm: 1})
	f.Emit(code.Inst{Op: code.Jcc, Cond: code.CondNE, Label: top})
	f.Emit(code.Inst{Op: code.VZeroUpper})
	f.Emit(code.Inst{Op: code.Ret})
	c, err := f.Assemble(amd64.AVX512)
	require.NoError(tb, err)
	m, err := native.New(c.Bytes)
	require.NoError(tb, err)
	return m
}

func at(base code.R, disp int) code.Mem {
	return code.Mem{Base: base, Index: code.RAX, Scale: 1, Disp: int32(disp)}
}

// seconds is the median time of a call, over as many rounds, after one to warm up.
func seconds(rounds int, f func()) float64 {
	times := make([]float64, 0, rounds)
	f()
	for range rounds {
		t := time.Now()
		f()
		times = append(times, time.Since(t).Seconds())
	}
	return median(times)
}

func median(x []float64) float64 {
	for i := range x { // few: insertion sort
		for j := i; j > 0 && x[j] < x[j-1]; j-- {
			x[j], x[j-1] = x[j-1], x[j]
		}
	}
	return x[len(x)/2]
}

func vecLevel() uint8 {
	if amd64.Detect() >= amd64.AVX512 {
		return 64
	}
	return 32
}

// bandwidth is the bytes per second of a loop over arrays of n bytes, times the number of arrays touched.
func bandwidth(tb testing.TB, n, arrays, repeat int, body func(f *amd64.Program, w uint8)) float64 {
	w := vecLevel()
	const unroll = 4
	m := loopCode(tb, int32(w)*unroll, func(f *amd64.Program) { body(f, w) })
	bufs := make([][]byte, 3)
	var args [4]uint64
	args[0] = uint64(n / (int(w) * unroll))
	for i := range bufs {
		b, err := native.Map(n)
		require.NoError(tb, err)
		defer native.Unmap(b)
		for j := 0; j < n; j += 4096 {
			b[j] = 1
		}
		args[i+1] = uint64(uintptr(unsafe.Pointer(&b[0])))
	}
	t := seconds(9, func() {
		for range repeat {
			m.Call(0, unsafe.Pointer(&args[0]))
		}
	})
	return float64(n*arrays*repeat) / t
}

func copyBody(f *amd64.Program, w uint8) {
	for k := range 4 {
		f.Emit(code.Inst{Op: code.VMovUPS, W: w, Dst: code.V(k), Mem: at(code.RSI, k*int(w))})
		f.Emit(code.Inst{Op: code.VMovUPS, W: w, A: code.V(k), Mem: at(code.RDI, k*int(w))})
	}
}

func readBody(f *amd64.Program, w uint8) {
	for k := range 4 {
		f.Emit(code.Inst{Op: code.VPAddD, W: w, Dst: code.V(k), A: code.V(k), Mem: at(code.RSI, k*int(w))})
	}
}

// limit is measured once for a process.
var (
	readRoof = sync.OnceValue(func() float64 { return bandwidth(&testing.B{}, 256<<20, 1, 1, readBody) })
	l2Copy   = sync.OnceValue(func() float64 { return bandwidth(&testing.B{}, 128<<10, 2, 200, copyBody) })
	l3Copy   = sync.OnceValue(func() float64 { return bandwidth(&testing.B{}, 4<<20, 2, 10, copyBody) })
	fmaPeak  = sync.OnceValue(func() float64 {
		w := vecLevel()
		m := loopCode(&testing.B{}, 0, func(f *amd64.Program) {
			for k := range 12 {
				f.Emit(code.Inst{Op: code.VFMAdd231PS, W: w, Dst: code.V(k), A: code.V(12), B: code.V(13)})
			}
		})
		args := [4]uint64{1 << 20}
		t := seconds(9, func() { m.Call(0, unsafe.Pointer(&args[0])) })
		return float64(args[0]) * 12 * 2 * float64(w) / 4 / t
	})
)
