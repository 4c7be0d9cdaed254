//go:build amd64 && (linux || darwin)

package jit

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal/interp"
	"github.com/mlxlua/mlxlua/metal/jit/lanes"
	"github.com/mlxlua/mlxlua/metal/kir"
)

// byHand returns a program whose machine code are these bytes.
func byHand(t *testing.T, text ...byte) *Program {
	if ok, why := Available(); !ok {
		t.Skip(why)
	}
	b := kir.NewBuilder("hand")
	k := b.Kernel()
	p, err := Prepare(k, nil, Options{})
	require.NoError(t, err)
	m, err := newExecMem(text)
	require.NoError(t, err)
	v := &p.variants[2]
	v.once.Do(func() {
		info := &lanes.Info{}
		v.code = &code{bytes: text, kernel: k, info: info, lay: newLayout(k, info, p.group)}
		v.mem = m
	})
	return p
}

func one() interp.Launch {
	return interp.Launch{Grid: [3]int{1, 1, 1}, Threadgroup: [3]int{1, 1, 1}}
}

// TestFaultsOfTheProcessorAreErrors: the last resort against wrong code. It works on any goroutine, however deep its
// stack, and the program can run again.
func TestFaultsOfTheProcessorAreErrors(t *testing.T) {
	for want, text := range map[string][]byte{
		"[hand] kernel fault: runtime error: invalid memory address": {0x31, 0xc0, 0x48, 0x8b, 0x00,
			0xc3}, // xor eax,eax; mov rax,[rax]; ret
		"[hand] kernel fault at address 0x100000": {0xb8, 0, 0, 0x10, 0, 0x48, 0x89, 0x00,
			0xc3}, // mov eax,1<<20; mov [rax],rax; ret
		"[hand] kernel fault: runtime error: integer divide by zero": {0x31, 0xc9, 0x31, 0xd2, 0xf7, 0xf1,
			0xc3}, // xor ecx,ecx; xor edx,edx; div ecx; ret
		"": {0x31, 0xc0, 0x48, 0x89, 0x45, 0x08, 0x31, 0xed, 0xc3}, // exit 0; xor ebp,ebp; ret
	} {
		p := byHand(t, text...)
		var deep func(n int) error
		deep = func(n int) error {
			var room [200]byte
			room[n%200] = 1
			if n == 0 {
				return p.Run(one())
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

// TestCodeIsGivenBack: the pages of a program that nobody holds are unmapped.
func TestCodeIsGivenBack(t *testing.T) {
	if ok, why := Available(); !ok {
		t.Skip(why)
	}
	gone := make(chan struct{})
	func() {
		m, err := newExecMem([]byte{0xc3})
		require.NoError(t, err)
		runtime.AddCleanup(m, func(c chan struct{}) { close(c) }, gone)
		enter(m.entry, 0)
	}()
	for {
		runtime.GC()
		select {
		case <-gone:
			return
		case <-time.After(time.Millisecond):
		}
	}
}
