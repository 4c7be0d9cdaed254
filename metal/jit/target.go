package jit

import (
	"fmt"
	"runtime"
	"sync"

	"github.com/mlxlua/mlxlua/metal/jit/amd64"
	"github.com/mlxlua/mlxlua/metal/jit/code"
	"github.com/mlxlua/mlxlua/metal/jit/native"
)

// Level is an instruction set that kernels are compiled for. The zero Level is the best one that the processor has.
type Level uint8

// The levels, as Options.Level takes them. Those of one processor follow each other, each has what the one before has.
const (
	AVX2       = Level(amd64.AVX2)
	AVX512     = Level(amd64.AVX512)
	AVX512BF16 = Level(amd64.AVX512BF16)
)

// String returns the level's name.
func (l Level) String() string { return l.target().Name }

// target is the processor of a level.
func (l Level) target() *code.Target { return amd64.Target(amd64.Level(l)) }

// detect returns the best level of this processor, 0 if there is no machine code for it.
func detect() Level { return Level(amd64.Detect()) }

// machine is what this computer can do, found out once.
var machine = sync.OnceValues(func() (Level, error) { return explore(detect(), native.New) })

// explore finds out what a processor of that level can do with pages from put.
func explore(level Level, put func([]byte) (*native.Code, error)) (Level, error) {
	if level == 0 {
		return 0, fmt.Errorf("no machine code for this %s processor: it lacks AVX2", runtime.GOARCH)
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
