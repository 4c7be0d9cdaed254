//go:build lead

package jit

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal/interp"
)

func cpuNow() int64 {
	var ts syscall.Timespec
	syscall.Syscall(syscall.SYS_CLOCK_GETTIME, 3, uintptr(unsafe.Pointer(&ts)), 0)
	return ts.Nano()
}

// TestSpeed prints the smallest time of many short runs.
func TestSpeed(t *testing.T) {
	runtime.LockOSThread()
	wall := time.Duration(2500) * time.Millisecond
	if os.Getenv("WALL") != "" {
		wall, _ = time.ParseDuration(os.Getenv("WALL"))
	}
	best := func(f func()) float64 {
		f()
		m := math.Inf(1)
		for t0, n := time.Now(), 0; time.Since(t0) < wall || n < 5; n++ {
			a := cpuNow()
			f()
			m = min(m, float64(cpuNow()-a))
		}
		return m
	}
	for _, level := range []isa{isaAVX512, isaAVX2} {
		name := map[isa]string{isaAVX512: "512", isaAVX2: "avx2"}[level]
		if l := os.Getenv("LEVEL"); l != "" && l != name {
			continue
		}
		{
			p := prepare(t, geluText, level)
			n := 16 << 10
			l := interp.Launch{Grid: [3]int{n, 1, 1}, Threadgroup: [3]int{256, 1, 1}, Workers: 1,
				Buffers: [][]byte{floats(t, n), floats(t, n), floats(t, n), floats(t, n)}}
			x := best(func() { require.NoError(t, p.Run(l)) })
			fmt.Printf("%-5s gelu   %8.2f us\n", name, x/1e3)
		}
		{
			const K, N = 4096, 4096
			p := prepare(t, qmvText, level)
			w := floats(t, N*K/8)
			scales, biases, x, out := floats(t, N*K/64), floats(t, N*K/64), floats(t, K), floats(t, N)
			for _, n := range []int{128, 4096} {
				l := interp.Launch{Grid: [3]int{n * 32, 1, 1}, Threadgroup: [3]int{256, 1, 1}, Workers: 1,
					Buffers: [][]byte{w, scales, biases, x, out}}
				y := best(func() { require.NoError(t, p.Run(l)) })
				fmt.Printf("%-5s qmv%4d%8.2f us per 128\n", name, n, y/1e3*128/float64(n))
			}
		}
		for _, steps := range []int{1, 16} {
			const heads, dim = 32, 128
			p := prepare(t, gatedDeltaText, level)
			seq := func() []byte { return floats(t, steps*heads*dim) }
			state, end := floats(t, heads*dim*dim), floats(t, heads*dim*dim)
			l := interp.Launch{Grid: [3]int{32, dim, heads}, Threadgroup: [3]int{32, 4, 1}, Workers: 1,
				Buffers: [][]byte{seq(), seq(), seq(), floats(t, steps*heads), floats(t, steps*heads), state,
					words(uint32(steps)), seq(), end}}
			x := best(func() { require.NoError(t, p.Run(l)) })
			fmt.Printf("%-5s gd T=%d  %8.2f us  %.1f cycles/step/row at 1ns\n", name, steps, x/1e3, x/float64(steps*heads*dim))
		}
	}
	fmt.Printf("fma peak %.1f GF l2copy %.1f l3copy %.1f copy %.1f read %.1f\n", fmaPeak()/1e9, l2Copy()/1e9, l3Copy()/1e9, copyRoof()/1e9, readRoof()/1e9)
}
