package soft

import (
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mlxlua/mlxlua/metal/interp"
	"github.com/mlxlua/mlxlua/metal/jit"
	"github.com/mlxlua/mlxlua/metal/kir"
	"github.com/mlxlua/mlxlua/metal/launch"
)

// executor says what runs kernels.
type executor struct {
	jit  bool
	opt  jit.Options
	name string // for people
}

// chooseExecutor turns Options.Executor, or where that is empty the environment variable MLXLUA_JIT, into what this
// machine can do: best is the level of machine code it is capable of, or why has the reason that there is none. The
// name says where that is not what was asked for.
func chooseExecutor(option, env string, best jit.Level, why error) executor {
	asked, note := option, ""
	if asked == "" {
		asked = env
	}
	level, known := best, true
	switch asked {
	case "":
	case "interp", "0":
		return executor{name: "interpreter"}
	default:
		level, known = jit.LevelNamed(asked)
	}
	if !known {
		level = best
		note = fmt.Sprintf(" (MLXLUA_JIT=%s means nothing: 0%s)", asked, levelNames())
		if option != "" {
			note = fmt.Sprintf(" (the executor %q means nothing: interp%s)", asked, levelNames())
		}
	}
	switch {
	case why != nil:
		return executor{name: fmt.Sprintf("interpreter (%v)%s", why, note)}
	case !best.Has(level):
		return executor{name: fmt.Sprintf("interpreter (no %s on this processor)", level)}
	}
	return executor{jit: true, opt: jit.Options{Level: level}, name: level.String() + " machine code" + note}
}

// levelNames lists the names of levels, at the end of a sentence.
func levelNames() string {
	var b strings.Builder
	for l := jit.AVX2; l < jit.NumLevels; l++ {
		b.WriteString(map[bool]string{false: ", ", true: " or "}[l == jit.NumLevels-1] + l.Name())
	}
	return b.String()
}

// lanes is how many lanes one instruction computes.
func (e executor) lanes() int {
	if !e.jit {
		return 1
	}
	return e.opt.Level.Lanes()
}

// executable is a kernel and what has been made of it to run it. The interpreter is there for validation and for what
// cannot become machine code.
type executable struct {
	kernel *kir.Kernel
	files  []string
	jit    *jit.Executable // nil: interp runs it
	refuse atomic.Bool     // the kernel cannot become machine code

	once   sync.Once
	interp *interp.Executable
	err    error
}

func newExecutable(k *kir.Kernel, files []string, e executor) (p *executable, err error) {
	p = &executable{kernel: k, files: files}
	if e.jit {
		p.jit, err = jit.Prepare(k, files, e.opt)
	}
	return p, err
}

// bytes is about what has been made of the kernel beside it.
func (p *executable) bytes() int64 {
	if p.jit == nil {
		return 0
	}
	return p.jit.Bytes()
}

// run is a launch in execution.
type run interface {
	Work()
	Parallelism() (goroutines int, long bool)
	Err() error
	Panicked(v any) // with which Work has ended
}

// start readies a launch.
func (p *executable) start(l *launch.Launch) (run, error) {
	if p.jit != nil && !l.Validate && !p.refuse.Load() {
		r, err := p.jit.NewRun(*l)
		switch {
		case err == nil:
			return r, nil
		case !unsupported(err):
			return nil, err
		}
		p.refuse.Store(true)
	}
	p.once.Do(func() { p.interp, p.err = interp.Prepare(p.kernel, p.files) })
	if p.err != nil {
		return nil, p.err
	}
	r, err := p.interp.NewRun(*l)
	if err != nil {
		return nil, err
	}
	return r, nil
}

// unsupported reports whether an error is that there is no machine code for a kernel.
func unsupported(err error) bool {
	var u *jit.Unsupported
	return errors.As(err, &u)
}

// perform runs the launches on this goroutine and the workers. How they have ended they tell themselves.
func (x *execution) perform() {
	goroutines, long := x.parallelism()
	x.d.pool.run(x.task, goroutines-1, long)
}

// parallelism is how many goroutines may usefully work on the launches at once, and whether those who sleep should.
func (x *execution) parallelism() (goroutines int, long bool) {
	var took time.Duration
	for _, r := range x.runs {
		j, compiled := r.(*jit.Run)
		if compiled {
			j.OnLong(x.task.callAll)
			took += j.Estimate()
		}
		n, lasting := r.Parallelism()
		goroutines, long = goroutines+n, long || lasting
	}
	if len(x.runs) > 1 && !long {
		return jit.Parallelism(took)
	}
	return goroutines, long
}

// ended is how a launch has ended. It is over then.
func ended(r run) error {
	err := r.Err()
	if j, compiled := r.(*jit.Run); compiled {
		j.Release()
	}
	return err
}

// work is one goroutine's share of the launches.
func (x *execution) work() {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	for _, r := range x.runs {
		share(r)
	}
}

// share is one goroutine's share of a launch, whose error a panic is.
func share(r run) {
	defer func() {
		if v := recover(); v != nil {
			r.Panicked(v)
		}
	}()
	r.Work()
}
