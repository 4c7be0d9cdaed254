package soft

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"github.com/mlxlua/mlxlua/metal/interp"
	"github.com/mlxlua/mlxlua/metal/jit"
	"github.com/mlxlua/mlxlua/metal/kir"
)

// executor says what runs kernels.
type executor struct {
	jit  bool
	opt  jit.Options
	name string // for people
}

// chooseExecutor turns Options.Executor into what this machine can do. Where the options do not say, the environment
// variable MLXLUA_JIT does: 0 (the interpreter), avx2 or avx512.
func chooseExecutor(name string) executor {
	if name == "" {
		name = os.Getenv("MLXLUA_JIT")
	}
	var opt jit.Options
	switch name {
	case "interp", "0":
		return executor{name: "interpreter"}
	case "avx2":
		opt.Level = jit.AVX2
	case "avx512":
		opt.Level = jit.AVX512
	}
	ok, level := jit.Available()
	if !ok {
		return executor{name: fmt.Sprintf("interpreter (%s)", level)}
	}
	if opt.Level != 0 {
		level = opt.Level.String()
	}
	return executor{jit: true, opt: opt, name: level + " machine code"}
}

// program is a kernel and what has been made of it to run it. The interpreter is there for validation and for what
// cannot become machine code.
type program struct {
	kernel *kir.Kernel
	files  []string
	jit    *jit.Program // nil: interp runs it
	refuse atomic.Bool  // the kernel cannot become machine code

	once   sync.Once
	interp *interp.Program
	err    error
}

func newProgram(k *kir.Kernel, files []string, e executor) *program {
	p := &program{kernel: k, files: files}
	if e.jit {
		if j, err := jit.Prepare(k, files, e.opt); err == nil {
			p.jit = j
		}
	}
	return p
}

// run is a launch in execution.
type run interface {
	Work()
	Parallelism() int
	Err() error
}

// start readies a launch.
func (p *program) start(l interp.Launch) (run, error) {
	if p.jit != nil && !l.Validate && !p.refuse.Load() {
		r, err := p.jit.NewRun(l)
		var u *jit.Unsupported
		switch {
		case err == nil:
			return r, nil
		case !errors.As(err, &u):
			return nil, err
		}
		p.refuse.Store(true)
	}
	p.once.Do(func() { p.interp, p.err = interp.Prepare(p.kernel, p.files) })
	if p.err != nil {
		return nil, p.err
	}
	r, err := p.interp.NewRun(l)
	if err != nil {
		return nil, err
	}
	return r, nil
}

// perform runs a launch on this goroutine and the workers.
func (d *Driver) perform(name string, r run) error {
	var bug atomic.Pointer[error]
	j, compiled := r.(*jit.Run)
	d.pool.run(r.Parallelism()-1, func(more func()) {
		if compiled {
			j.OnLong(more)
		}
	}, func() {
		defer func() {
			if r := recover(); r != nil {
				err := fmt.Errorf("[%s] BUG: %v", name, r)
				bug.Store(&err)
			}
		}()
		r.Work()
	})
	if e := bug.Load(); e != nil {
		return *e
	}
	err := r.Err()
	if compiled {
		j.Release()
	}
	return err
}
