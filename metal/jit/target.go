package jit

import (
	"fmt"
	"runtime"
	"strings"
	"sync"

	"github.com/mlxlua/mlxlua/metal/jit/amd64"
	"github.com/mlxlua/mlxlua/metal/jit/arm64"
	"github.com/mlxlua/mlxlua/metal/jit/code"
	"github.com/mlxlua/mlxlua/metal/jit/native"
)

// Level is an instruction set that kernels are compiled for. The zero Level is the best one that the processor has.
type Level uint8

// The levels, as Options.Level takes them: those of amd64, each of which has what those before it have, and arm64's.
const (
	AVX2        = Level(amd64.AVX2)
	AVX512      = Level(amd64.AVX512)
	AVX512BF16  = Level(amd64.AVX512BF16)
	NEON        = AVX512BF16 + Level(arm64.NEON)
	NEONFP16    = AVX512BF16 + Level(arm64.FP16)
	NEONFP16FML = AVX512BF16 + Level(arm64.FP16FML)
	NEONBF16    = AVX512BF16 + Level(arm64.BF16)
	NumLevels   = NEONBF16 + 1 // one more than the last
)

// String returns the level's name.
func (l Level) String() string { return l.target().Name }

// Name is what people ask for the level by: its letters and digits.
func (l Level) Name() string {
	return strings.NewReplacer(" ", "", "-", "").Replace(strings.ToLower(l.String()))
}

// LevelNamed returns the level of a name.
func LevelNamed(name string) (l Level, ok bool) {
	for l = AVX2; l < NumLevels; l++ {
		if l.Name() == name {
			return l, true
		}
	}
	return 0, false
}

// target is the processor of a level.
func (l Level) target() *code.Target {
	if l >= NEON {
		return arm64.Target(arm64.Level(l - AVX512BF16))
	}
	return amd64.Target(amd64.Level(l))
}

// Lanes is how many lanes of 32 bits one instruction of package code computes, which may be two of the processor's.
func (l Level) Lanes() int { return int(l.target().VecBytes) / 4 }

// Has reports whether a processor of level l runs code for another level.
func (l Level) Has(other Level) bool { return other <= l && (other >= NEON) == (l >= NEON) }

// Levels returns the levels that this processor has, the least first.
func Levels() (all []Level) {
	best, _ := machine()
	for l := Level(1); l <= best; l++ {
		if best.Has(l) {
			all = append(all, l)
		}
	}
	return all
}

// detect returns the best level of this processor, 0 if there is no machine code for it, and what it lacks then.
func detect() (Level, string) {
	switch runtime.GOARCH {
	case "amd64":
		return Level(amd64.Detect()), ": it lacks AVX2"
	case "arm64":
		return AVX512BF16 + Level(arm64.Detect()), ""
	}
	return 0, ""
}

// machine is what this computer can do, found out once.
var machine = sync.OnceValues(func() (Level, error) {
	level, lacks := detect()
	return explore(level, lacks, native.New)
})

// explore finds out what a processor of that level can do with pages from put.
func explore(level Level, lacks string, put func([]byte) (*native.Code, error)) (Level, error) {
	if level == 0 {
		return 0, fmt.Errorf("no machine code for this %s processor%s", runtime.GOARCH, lacks)
	}
	c, err := put(native.Return)
	if err != nil {
		return 0, fmt.Errorf("pages of machine code are refused: %w", err)
	}
	c.Call(0, nil)
	return level, nil
}

// Best returns the best level that kernels can be compiled for here, or why they cannot.
func Best() (Level, error) { return machine() }
