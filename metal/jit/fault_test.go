//go:build (amd64 || arm64) && (linux || darwin)

package jit

import (
	"bytes"
	"errors"
	"runtime"
	"syscall"
	"testing"

	"github.com/mlxlua/mlxlua/metal/jit/choose"
	"github.com/mlxlua/mlxlua/metal/jit/native"
	"github.com/mlxlua/mlxlua/metal/launch"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal/jit/arena"
	"github.com/mlxlua/mlxlua/metal/jit/lanes"
	"github.com/mlxlua/mlxlua/metal/kerneltest"
	"github.com/mlxlua/mlxlua/metal/kir"
)

// byHand returns a program whose machine code are these bytes.
func byHand(t *testing.T, text ...byte) *Executable {
	if _, why := Best(); why != nil {
		t.Skip(why)
	}
	b := kerneltest.NewBuilder("hand")
	k := b.Kernel()
	p, err := Prepare(k, nil, Options{})
	require.NoError(t, err)
	require.NoError(t, p.root.ready())
	m, err := native.New(text)
	require.NoError(t, err)
	p.root.wide = false
	v := &p.root.variants[2] // that of one()
	v.once.Do(func() {
		info := &lanes.Info{}
		v.code = &choose.Code{Bytes: text, Kernel: k, Info: info, Layout: arena.NewLayout(k, info, p.root.group)}
		v.mem = m
	})
	return p
}

func one() launch.Launch {
	return launch.Launch{Grid: [3]int{1, 1, 1}, Threadgroup: [3]int{1, 1, 1}}
}

// faulty is code by what happens in it.
var faulty = map[string]map[string][]byte{
	"amd64": {
		"[hand] kernel fault: runtime error: invalid memory address": {0x31, 0xc0, 0x48, 0x8b, 0x00,
			0xc3}, // xor eax,eax; mov rax,[rax]; ret
		"[hand] kernel fault at address 0x100000": {0xb8, 0, 0, 0x10, 0, 0x48, 0x89, 0x00,
			0xc3}, // mov eax,1<<20; mov [rax],rax; ret
		"[hand] kernel fault: runtime error: integer divide by zero": {0x31, 0xc9, 0x31, 0xd2, 0xf7, 0xf1,
			0xc3}, // xor ecx,ecx; xor edx,edx; div ecx; ret
		"": {0x31, 0xc0, 0x48, 0x89, 0x45, 0x08, 0x31, 0xed, 0xc3}, // exit 0; xor ebp,ebp; ret
	},
	"arm64": {
		"[hand] kernel fault: runtime error: invalid memory address": {0, 0, 0x80, 0xd2, 0, 0, 0x40, 0xf9,
			0xc0, 3, 0x5f, 0xd6}, // mov x0,#0; ldr x0,[x0]; ret
		"[hand] kernel fault at address 0x100000": {0, 2, 0xa0, 0x52, 0, 0, 0, 0xf9,
			0xc0, 3, 0x5f, 0xd6}, // mov w0,#1<<20; str x0,[x0]; ret
		"": {0x9f, 6, 0, 0xf9, 0x14, 0, 0x80, 0xd2, 0xc0, 3, 0x5f, 0xd6}, // exit 0: str xzr,[x20,#8]; mov x20,#0; ret
	},
}

// TestFaultsOfTheProcessorAreErrors: the last resort against wrong code. It works on any goroutine, however deep its
// stack, and the program can run again.
func TestFaultsOfTheProcessorAreErrors(t *testing.T) {
	t.Parallel()
	for want, text := range faulty[runtime.GOARCH] {
		p := byHand(t, text...)
		var deep func(n int) error
		deep = func(n int) error {
			var room [200]byte
			room[n%200] = 1
			if n == 0 {
				return kerneltest.Run(p.NewRun, one(), 0)
			}
			err := deep(n - 1)
			runtime.KeepAlive(&room)
			return err
		}
		for n := range 20 {
			got := make(chan error)
			go func() { got <- deep(n * 10) }()
			err := <-got
			if want == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, want)
			}
		}
	}
}

// TestWhatTheMachineCan: a processor without AVX2, or a system that refuses pages of machine code, says so.
func TestWhatTheMachineCan(t *testing.T) {
	t.Parallel()
	refuse := func([]byte) (*native.Code, error) { return nil, syscall.EACCES }
	_, err := explore(AVX512, "", refuse)
	require.ErrorIs(t, err, syscall.EACCES)
	require.ErrorContains(t, err, "pages of machine code are refused: ")
	_, err = explore(0, ": it lacks AVX2", native.New)
	require.ErrorContains(t, err, "it lacks AVX2")
	for _, level := range []Level{AVX2, AVX512, NEON} {
		best, err := explore(level, "", native.New)
		require.NoError(t, err)
		require.Equal(t, level, best)
	}
}

// TestBugsOfTheCompiler: a panic is an error that nobody takes for a kernel without machine code, whichever variant it
// is in; an Unsupported pair leaves the plain variant.
func TestBugsOfTheCompiler(t *testing.T) {
	t.Parallel()
	best, err := Best()
	if err != nil {
		t.Skip(err)
	}
	b := kerneltest.NewBuilder("copy")
	in, out := b.Param("in", kir.Device, kir.U32), b.Param("out", kir.Device, kir.U32)
	b.K.Params[0].Write, b.K.Params[0].Atomic = false, false
	b.K.Params[1].Read, b.K.Params[1].Atomic = false, false
	i := b.Builtin(kir.ThreadPositionInGrid, 0)
	// That is i again. Without the lane SIMD-groups are not kept together, and there are no pairs.
	i = b.Op(kir.Or, kir.U32, i, b.Builtin(kir.ThreadIndexInSimdgroup, 0))
	b.Store(out, i, b.Load(kir.U32, in, i))
	k := b.Kernel()
	run := func(before func(bool) error) ([]byte, error) {
		p, err := Prepare(k, nil, Options{PairAlways: true,
			BeforeCompile: func(_ *kir.Kernel, paired bool) error { return before(paired) }})
		require.NoError(t, err)
		from, to := bytes.Repeat([]byte{1, 2, 3, 4}, 128), make([]byte, 512)
		return to, kerneltest.Run(p.NewRun, launch.Launch{Grid: [3]int{128, 1, 1}, Threadgroup: [3]int{64, 1, 1},
			Buffers: [][]byte{from, to}}, 0)
	}
	for _, where := range []bool{false, true} {
		if where && !best.target().Masks() {
			break // there are no pairs
		}
		var u *Unsupported
		_, err := run(func(paired bool) error {
			if paired == where {
				panic("a test says so")
			}
			return &Unsupported{Kernel: "copy"}
		})
		require.EqualError(t, err, "[copy] BUG: the compiler of machine code: a test says so")
		require.False(t, errors.As(err, &u))
	}
	pairs := 0
	got, err := run(func(paired bool) error {
		if paired {
			pairs++
			return &Unsupported{Kernel: "copy"}
		}
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, bytes.Repeat([]byte{1, 2, 3, 4}, 128), got)
	if best.target().Masks() {
		require.Equal(t, 1, pairs)
	}
}
