package msl_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/mlxlua/mlxlua/metal/interp"
	"github.com/mlxlua/mlxlua/metal/jit"
	"github.com/mlxlua/mlxlua/metal/kerneltest"
	"github.com/mlxlua/mlxlua/metal/kir"
	"github.com/mlxlua/mlxlua/metal/launch"
)

// executors is a kernel on everything that executes kernels here.
type executors struct {
	ref  *interp.Executable
	jits []*jit.Executable
}

// prepare readies a kernel for the reference executor and for machine code of every level that the processor has.
func prepare(k *kir.Kernel, files []string) (executors, error) {
	ref, err := interp.Prepare(k, files)
	e := executors{ref: ref}
	if _, none := jit.Best(); none != nil || err != nil {
		return e, err
	}
	for _, l := range jit.Levels() {
		if p, err := jit.Prepare(k, files, jit.Options{Level: l}); err == nil {
			e.jits = append(e.jits, p)
		}
	}
	return e, nil
}

// Run runs a launch on all executors. Beside the reference's error it returns one if another executor's buffers end
// otherwise than the reference's.
func (e executors) Run(l launch.Launch) error {
	copies := make([][][]byte, len(e.jits))
	for i := range copies {
		for _, b := range l.Buffers {
			copies[i] = append(copies[i], bytes.Clone(b))
		}
	}
	if err := kerneltest.Run(e.ref.NewRun, l, 0); err != nil {
		return err
	}
	for i, p := range e.jits {
		again := l
		again.Buffers = copies[i]
		if err := kerneltest.Run(p.NewRun, again, 0); err != nil {
			return err
		}
		for n := range l.Buffers {
			if at := differAt(l.Buffers[n], copies[i][n]); at >= 0 {
				return fmt.Errorf("machine code %d differs at byte %d of buffer %d", i, at, n)
			}
		}
	}
	return nil
}

// differAt returns where two buffers differ, -1 if nowhere but in the payloads and signs of NaNs.
func differAt(want, got []byte) int {
	for at := 0; at < len(want); at += 8 {
		end := min(at+8, len(want))
		if !bytes.Equal(want[at:end], got[at:end]) && !nans(want[at:end], got[at:end]) {
			return at
		}
	}
	return -1
}

// nans reports whether up to 8 bytes are equal but for NaNs of some float type in both.
func nans(a, b []byte) bool {
	if len(a) == 8 && isNaN(8, a) && isNaN(8, b) {
		return true
	}
	for _, size := range []int{4, 2} {
		same := len(a)%size == 0
		for i := 0; same && i < len(a); i += size {
			x, y := a[i:i+size], b[i:i+size]
			same = bytes.Equal(x, y) || isNaN(size, x) && isNaN(size, y)
		}
		if same {
			return true
		}
	}
	return false
}

func isNaN(size int, b []byte) bool {
	switch size {
	case 8:
		return math.IsNaN(math.Float64frombits(binary.LittleEndian.Uint64(b)))
	case 4:
		return math.IsNaN(float64(math.Float32frombits(binary.LittleEndian.Uint32(b))))
	}
	bits := binary.LittleEndian.Uint16(b)
	return bits&0x7fff > 0x7c00 // of F16, and of BF16 those that are NaN are among these
}
