package jit

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/mlxlua/mlxlua/metal/interp"
	"github.com/mlxlua/mlxlua/metal/jit/amd64"
	"github.com/mlxlua/mlxlua/metal/jit/lanes"
	"github.com/mlxlua/mlxlua/metal/kir"
)

// Level is an instruction set that kernels are compiled for. The zero Level is the best one that the processor has.
type Level = isa

// The levels, as Options.Level takes them.
const (
	AVX2   = isaAVX2
	AVX512 = isaAVX512
)

// String returns the level's name.
func (l isa) String() string {
	switch l {
	case isaAVX2:
		return "AVX2"
	case isaAVX512:
		return "AVX-512"
	}
	return "best"
}

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
var machine = sync.OnceValues(func() (isa, error) { return explore(amd64.Detect(), newExecMem) })

// explore finds out what a processor of that level can do with pages from put.
func explore(level amd64.Level, put func([]byte) (*execMem, error)) (isa, error) {
	var best isa
	switch level {
	case amd64.AVX512:
		best = isaAVX512
	case amd64.AVX2:
		best = isaAVX2
	default:
		return 0, fmt.Errorf("no machine code for this %s processor: it lacks AVX2", runtime.GOARCH)
	}
	m, err := put([]byte{0xc3}) // ret
	if err != nil {
		return 0, fmt.Errorf("pages of machine code are refused: %w", err)
	}
	enter(m.entry, 0)
	runtime.KeepAlive(m)
	return best, nil
}

// Best returns the best level that kernels can be compiled for here, or why they cannot.
func Best() (Level, error) { return machine() }

// Available reports whether kernels can be compiled here, and the name of the best level or why not.
func Available() (ok bool, level string) {
	best, err := machine()
	if err != nil {
		return false, err.Error()
	}
	return true, best.String()
}

// Program is a kernel that is compiled when it first runs: once for each kind of launch that occurs. It is safe for
// any number of concurrent Runs.
type Program struct {
	kernel *kir.Kernel
	files  []string
	level  isa
	procs  int

	once      sync.Once // of ready, which sets these
	optimised *kir.Kernel
	group     int  // lanes that run together
	wide      bool // it may be whole SIMD-groups all the same
	err       error
	// variants: for any threadgroup, for lanes.Geometry.Row, for that and Aligned; the same three with Full; the same six
	// for launches that write past the cache. Then, of whole SIMD-groups: rows that are aligned, also with Full, and both
	// for launches that write past the cache.
	variants [16]variant
	pairs    [2]variant // by lanes.PairBy - 1; without code where pairing is of no use
	// pairAlways: pairs also where that seems of no use, for tests.
	pairAlways bool
	pastAlways bool // every launch writes past the cache, for tests
	// coarseLives: registers are allocated as in the largest kernels, for tests.
	coarseLives bool
	before      func(k *kir.Kernel, paired bool) error // Options.BeforeCompile
	runs        sync.Pool
	nanos       atomic.Int64 // what a threadgroup last took, 0 if unknown
	fuel        atomic.Int64 // what a call last needed to take callTime, 0 if unknown
}

// variant is a kernel's machine code for one kind of launch.
type variant struct {
	once   sync.Once
	code   *code
	mem    *execMem
	err    error
	blocks sync.Pool
	paired bool // SIMD-groups run in pairs: which of several faults comes first is not known
}

// Prepare readies a well-formed kernel (interp.Check) for execution. files are the names that positions refer to. It
// fails where Available says so, or if the processor lacks the level asked for.
func Prepare(k *kir.Kernel, files []string, o Options) (*Program, error) {
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
	return &Program{kernel: k, files: files, level: level, pairAlways: o.PairAlways,
		pastAlways: o.PastAlways, coarseLives: o.CoarseLives, before: o.BeforeCompile,
		procs: runtime.GOMAXPROCS(0)}, nil
}

// Kernel returns the kernel the Program was made of.
func (p *Program) Kernel() *kir.Kernel { return p.kernel }

// ready optimises the kernel, once.
func (p *Program) ready() error {
	p.once.Do(func() {
		defer p.bug(&p.err)
		p.optimised = lanes.Optimise(p.kernel)
		p.group = groupOf(p.optimised, p.level)
		p.wide = p.group < kir.Lanes && p.level == isaAVX512 && straightOn(p.optimised)
	})
	return p.err
}

// variant returns the best code for threadgroups of a size; their first threads' x are multiples of stride, and past
// says that the launch writes past the cache.
func (p *Program) variant(size [3]int, stride int, past bool) (*variant, error) {
	if p.level == isaAVX512 && p.group == kir.Lanes && stride%kir.Lanes == 0 {
		by := lanes.PairBy(0)
		switch {
		case size[0] == kir.Lanes && size[1]%2 == 0:
			by = lanes.PairRows
		case size[0]%(2*kir.Lanes) == 0:
			by = lanes.PairColumns
		}
		if by != 0 {
			v := &p.pairs[by-1]
			v.once.Do(func() { p.compile(v, lanes.Geometry{Row: true, Aligned: true, Full: true, Pair: by}, false) })
			var u *Unsupported
			switch {
			case v.err != nil && !errors.As(v.err, &u):
				return nil, v.err
			case v.err == nil && v.code != nil:
				return v, nil
			}
		}
	}
	return p.plain(size, stride, past)
}

// plain returns the code for threadgroups of a size that runs one SIMD-group after the other. Short kernels run whole
// SIMD-groups at a time where those lie in rows: fewer lanes would share what a group costs.
func (p *Program) plain(size [3]int, stride int, past bool) (*variant, error) {
	first, n, kinds, group := 0, 0, 3, p.group
	rows := func(width int) bool { return size[1]*size[2] == 1 || size[0]%width == 0 }
	var geo lanes.Geometry
	switch {
	case p.wide && rows(kir.Lanes) && stride%kir.Lanes == 0:
		first, kinds, group = 12, 1, kir.Lanes
		geo = lanes.Geometry{Row: true, Aligned: true, Wide: true}
	case rows(group) && stride%group == 0:
		n, geo.Row, geo.Aligned = 2, true, true
	case rows(group):
		n, geo.Row = 1, true
	}
	if size[0]*size[1]*size[2]%group == 0 {
		n, geo.Full = n+kinds, true
	}
	if past {
		n += 2 * kinds
	}
	v := &p.variants[first+n]
	v.once.Do(func() { p.compile(v, geo, past) })
	return v, v.err
}

// bug turns a panic of the compiler into an error. It is not an Unsupported: whoever falls back on interp would never
// know.
func (p *Program) bug(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("[%s] BUG: the compiler of machine code: %v", p.kernel.Name, r)
	}
}

// compile makes the code of a variant, or says in it why there is none.
func (p *Program) compile(v *variant, geo lanes.Geometry, past bool) {
	defer p.bug(&v.err)
	k := p.optimised
	if geo.Pair != 0 {
		if k = lanes.Pair(k, geo.Pair, p.pairAlways); k == nil {
			return
		}
		v.paired = true
	}
	if p.before != nil {
		if v.err = p.before(k, geo.Pair != 0); v.err != nil {
			return
		}
	}
	if v.code, v.err = compile(k, p.level, geo, past, p.coarseLives); v.err == nil {
		v.mem, v.err = newExecMem(v.code.bytes)
	}
}

// Run executes a launch and waits for it. It returns an *interp.Fault for what the kernel did wrong,
// interp.ErrInterrupted, an *Unsupported if it cannot be compiled, or an error that says what is wrong with the
// launch.
func (p *Program) Run(l interp.Launch) error {
	r, err := p.NewRun(l)
	if err != nil {
		return err
	}
	n := l.Workers
	if n <= 0 {
		n = p.procs
	}
	most, _ := r.Parallelism()
	n = min(n, most)
	var wg sync.WaitGroup
	for i := 1; i < n; i++ {
		wg.Go(r.Work)
	}
	r.Work()
	wg.Wait()
	err = r.Err()
	r.Release()
	return err
}
