package jit

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/mlxlua/mlxlua/metal/jit/choose"
	"github.com/mlxlua/mlxlua/metal/kir"
)

// Unsupported is the error of a kernel that cannot become machine code; interp can run it.
type Unsupported = choose.Unsupported

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

// Executable is a kernel that is compiled when it first runs: once for each kind of launch that occurs. It is safe for
// any number of concurrent Runs.
type Executable struct {
	kernel *kir.Kernel
	files  []string
	level  Level
	procs  int

	bytes atomic.Int64 // of what was made: see Bytes

	root            specialization // of launches of which nothing is known
	mu              sync.Mutex
	specializations int // made from root

	// pairAlways: pairs also where that seems of no use, for tests.
	pairAlways        bool
	alwaysNonTemporal bool // every launch writes past the cache, for tests
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
	if !best.Has(level) {
		return nil, fmt.Errorf("no %s on this processor", level)
	}
	goCollector.watch()
	p := &Executable{kernel: k, files: files, level: level, pairAlways: o.PairAlways,
		alwaysNonTemporal: o.PastAlways, coarseLives: o.CoarseLives, before: o.BeforeCompile,
		procs: runtime.GOMAXPROCS(0)}
	p.root.exe = p
	return p, nil
}
