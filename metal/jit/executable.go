package jit

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/mlxlua/mlxlua/metal/jit/native"
	"github.com/mlxlua/mlxlua/metal/jit/x86"

	"github.com/mlxlua/mlxlua/metal/jit/amd64"
	"github.com/mlxlua/mlxlua/metal/kir"
)

// Level is an instruction set that kernels are compiled for. The zero Level is the best one that the processor has.
type Level = amd64.Level

// The levels, as Options.Level takes them.
const (
	AVX2       = amd64.AVX2
	AVX512     = amd64.AVX512
	AVX512BF16 = amd64.AVX512BF16
)

// Unsupported is the error of a kernel that cannot become machine code; interp can run it.
type Unsupported = x86.Unsupported

// Options choose how kernels are compiled.
type Options struct {
	Level Level
	// PairAlways runs SIMD-groups two at a time wherever that can be done, not only where it pays. It is for tests.
	PairAlways bool
	// PastAlways makes stores go past the cache in every launch, not only where much is written. It is for tests.
	PastAlways bool
	// CoarseLives allocates registers as in kernels so large that to find out where values live is too much work. It is
	// for tests.
	CoarseLives bool
	// BeforeCompile is called with each kernel that is about to be compiled, and whether for pairs of SIMD-groups; what
	// it returns or panics with is as if the compiler did. It is for tests.
	BeforeCompile func(k *kir.Kernel, paired bool) error
}

// machine is what this computer can do, found out once.
var machine = sync.OnceValues(func() (amd64.Level, error) { return explore(amd64.Detect(), native.New) })

// explore finds out what a processor of that level can do with pages from put.
func explore(level amd64.Level, put func([]byte) (*native.Code, error)) (amd64.Level, error) {
	if level == amd64.NoLevel {
		return 0, fmt.Errorf("no machine code for this %s processor: it lacks AVX2", runtime.GOARCH)
	}
	c, err := put([]byte{0xc3}) // ret
	if err != nil {
		return 0, fmt.Errorf("pages of machine code are refused: %w", err)
	}
	c.Call(0, nil)
	return level, nil
}

// Best returns the best level that kernels can be compiled for here, or why they cannot.
func Best() (Level, error) { return machine() }

// Executable is a kernel that is compiled when it first runs: once for each kind of launch that occurs. It is safe for
// any number of concurrent Runs.
type Executable struct {
	kernel *kir.Kernel
	files  []string
	level  amd64.Level
	procs  int

	bytes atomic.Int64 // of what was made: see Bytes

	root            specialization // of launches of which nothing is known
	mu              sync.Mutex
	specializations int // made from root

	// pairAlways: pairs also where that seems of no use, for tests.
	pairAlways bool
	pastAlways bool // every launch writes past the cache, for tests
	// coarseLives: registers are allocated as in the largest kernels, for tests.
	coarseLives bool
	before      func(k *kir.Kernel, paired bool) error // Options.BeforeCompile
	runs        sync.Pool
}

// Bytes is about what the executable takes in memory beside its kernel, pages of machine code included.
func (p *Executable) Bytes() int64 { return p.bytes.Load() }

// Prepare readies a well-formed kernel (launch.Check) for execution. files are the names that positions refer to. It
// fails where Best does, or if the processor lacks the level asked for.
func Prepare(k *kir.Kernel, files []string, o Options) (*Executable, error) {
	best, err := machine()
	if err != nil {
		return nil, err
	}
	level := o.Level
	if level == 0 {
		level = best
	}
	if level > best {
		return nil, fmt.Errorf("no %s on this processor", level)
	}
	goCollector.watch()
	p := &Executable{kernel: k, files: files, level: level, pairAlways: o.PairAlways,
		pastAlways: o.PastAlways, coarseLives: o.CoarseLives, before: o.BeforeCompile,
		procs: runtime.GOMAXPROCS(0)}
	p.root.exe = p
	return p, nil
}
