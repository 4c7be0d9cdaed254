// Command mlxlua runs Lua scripts that compute with tensors, and is a REPL where it is given none. Its conventions
// are those of the standard lua program: see --help.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	lua "github.com/yuin/gopher-lua"
	"golang.org/x/term"

	"github.com/mlxlua/mlxlua"
	"github.com/mlxlua/mlxlua/luabind"
	"github.com/mlxlua/mlxlua/tensor"
)

func main() { os.Exit(run(os.Args, os.Stdin, os.Stdout, os.Stderr)) }

// run is the program: it gives the exit status.
func run(argv []string, stdin *os.File, stdout, stderr io.Writer) int {
	if len(argv) > 1 && argv[1] == "lm" {
		return runModels(argv[2:], stdin, stdout, stderr)
	}
	o, err := parseArgs(argv[1:])
	if err != nil {
		fmt.Fprintf(stderr, "mlxlua: %v\nmlxlua --help lists the options\n", err)
		return 1
	}
	if o.help {
		fmt.Fprint(stdout, usage)
		return 0
	}
	if o.newScript != "" {
		if err := newScript(o.newScript); err != nil {
			fmt.Fprintf(stderr, "mlxlua: %v\n", err)
			return 1
		}
		fmt.Fprintf(stdout, "wrote %s: mlxlua %s runs it\n", o.newScript, o.newScript)
		return 0
	}
	if o.emitTypes != "" {
		if err := emitTypes(o.emitTypes); err != nil {
			fmt.Fprintf(stderr, "mlxlua: --emit-types: %v\n", err)
			return 1
		}
		return 0
	}
	if o.doctor && o.device == "metal" { // it is opened in other processes
		return doctorMetal(stdout, thisProgram, reportFile)
	}
	p, err := open(o, argv, stdin, stdout, stderr)
	if err != nil {
		fmt.Fprintf(stderr, "mlxlua: %v\n", err)
		return 1
	}
	defer p.s.Close()
	if o.version {
		fmt.Fprintln(stdout, versionText())
		if o.onlyVersion() {
			return 0
		}
	}
	if o.doctor {
		return p.doctor()
	}
	if o.bench {
		return p.bench()
	}
	tensor.CheckNaN(o.checkNaN)
	if o.profile {
		return p.profiled()
	}
	return p.traced()
}

// profiled is traced, with a profile of it on standard error.
func (p *program) profiled() int {
	measured, err := tensor.StartProfile()
	if err != nil {
		fmt.Fprintf(p.stderr, "mlxlua: %v\n", err)
		return 1
	}
	status := p.traced()
	measured.Stop()
	fmt.Fprint(p.stderr, measured.Text(profileRows))
	return status
}

// profileRows is how many rows --profile prints.
const profileRows = 40

// traced is run, with a timeline of it where one is asked for.
func (p *program) traced() int {
	if p.o.trace == "" {
		return p.run()
	}
	t, err := startTrace(p.o.trace)
	if err != nil {
		fmt.Fprintf(p.stderr, "mlxlua: %v\n", err)
		return 1
	}
	span := tensor.BeginSpan("Lua", "script")
	status := p.run()
	span.End(tensor.Place{File: p.o.script})
	t.Stop()
	if err := t.Save(p.o.trace); err != nil {
		fmt.Fprintf(p.stderr, "mlxlua: %v\n", err)
		return max(status, 1)
	}
	return status
}

// startTrace starts a timeline that will be written to a file. That it can be is found out now, not when the run is
// over.
func startTrace(path string) (*tensor.Timeline, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil, fmt.Errorf("--trace %s: is a folder", path)
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return nil, fmt.Errorf("--trace %s: %w", path, errors.Unwrap(err))
	}
	if err := errors.Join(f.Close(), os.Remove(f.Name())); err != nil {
		return nil, fmt.Errorf("--trace %s: %w", path, err)
	}
	return tensor.StartTimeline()
}

// open opens the device and the Lua state of a run.
func open(o *options, argv []string, stdin *os.File, stdout, stderr io.Writer) (*program, error) {
	if o.sandbox && o.device == "auto" {
		o.device = "checked" // of those that keep a stranger's kernel to its buffers
	}
	if err := mlxlua.OpenDevice(o.device); err != nil {
		return nil, err
	}
	opt := luabind.Options{Seed: o.seed, Libraries: true, Stdout: stdout, Stderr: stderr, Strict: o.strict,
		Columns: func() int {
			columns, _ := terminalSize()
			return columns
		}}
	if err := o.limits.apply(&opt, o.sandbox); err != nil {
		return nil, err
	}
	s := luabind.New(opt)
	return &program{s: s, o: o, argv: argv, stdin: stdin, stdout: stdout, stderr: stderr,
		colors: showsColors(stdout) && showsColors(stderr)}, nil
}

// program is one run of mlxlua.
type program struct {
	s              *luabind.State
	o              *options
	argv           []string
	stdin          *os.File
	stdout, stderr io.Writer
	exited         bool // by os.exit
	terminated     atomic.Bool
	colors         bool // whether what it writes is painted
}

// run does what the options say. Work that a script handed over and never looked at is waited for: its failure is the
// program's. os.exit waits for nothing.
func (p *program) run() int {
	status := p.perform()
	if status != 0 || p.exited {
		return status
	}
	status, _ = p.report(p.interruptible(p.s.Finish))
	return status
}

// perform does what the options say, in the order in which they stand.
func (p *program) perform() int {
	p.setArg()
	if status, ok := p.init(); !ok {
		return status
	}
	for _, a := range p.o.actions {
		err := p.interruptible(func(ctx context.Context) error {
			if a.require {
				return p.s.Require(ctx, a.text)
			}
			_, err := p.s.Run(ctx, strings.NewReader(a.text), "(command line)")
			return err
		})
		if status, ok := p.report(err); !ok {
			return status
		}
	}
	terminal := isTerminal(p.stdin)
	if p.o.hasScript {
		err := p.interruptible(p.script)
		if status, ok := p.report(err); !ok && (exits(err) || err == errTerminated || !p.o.interactive) {
			return status
		}
	}
	switch {
	case p.o.interactive:
		return p.repl()
	case p.o.hasScript || len(p.o.actions) > 0 || p.o.version:
		return 0
	case terminal:
		fmt.Fprintln(p.stdout, versionText())
		fmt.Fprintln(p.stdout,
			p.paint(dim, "help explains mx, ?mx.softmax a function; Tab completes; Ctrl-D ends the session"))
		p.startUp()
		return p.repl()
	}
	p.o.script = "-"
	status, _ := p.report(p.interruptible(p.script))
	return status
}

// script runs the script file, or standard input for "-", with its arguments.
func (p *program) script(ctx context.Context) error {
	args := make([]lua.LValue, len(p.o.args))
	for i, a := range p.o.args {
		args[i] = lua.LString(a)
	}
	if p.o.script == "-" {
		_, err := p.s.Run(ctx, p.stdin, "stdin", args...)
		return err
	}
	_, err := p.s.RunFile(ctx, p.o.script, args...)
	return err
}

// setArg sets the global arg: the script at 0, its arguments after it, the program and its options before it.
func (p *program) setArg() {
	t := p.s.NewTable(0, 1)
	first := len(p.argv) - len(p.o.args)
	if p.o.hasScript {
		first--
	}
	if !p.o.hasScript {
		first = 0
	}
	for i, a := range p.argv {
		t.RawSet(lua.LNumber(i-first), lua.LString(a))
	}
	p.s.SetGlobal("arg", t)
}

// init runs LUA_INIT: source text, or a file if it starts with @.
func (p *program) init() (int, bool) {
	text := os.Getenv("LUA_INIT")
	if text == "" || p.o.ignoreEnvironment {
		return 0, true
	}
	return p.report(p.interruptible(func(ctx context.Context) error {
		if file, ok := strings.CutPrefix(text, "@"); ok {
			_, err := p.s.RunFile(ctx, file)
			return err
		}
		_, err := p.s.Run(ctx, strings.NewReader(text), "LUA_INIT")
		return err
	}))
}

// errTerminated is the cause of a context that SIGTERM cancelled, and statusTerminated what the program ends with then:
// that of shells for a program that the signal has ended. What does not end for so long is left as it is.
var errTerminated = errors.New("terminated")

const (
	statusTerminated = 128 + 15
	terminationGrace = 2 * time.Second
)

// errInterrupted is the cause of a context that Ctrl-C cancelled.
var errInterrupted = errors.New("Ctrl-C")

// interruptible runs f with a context that Ctrl-C cancels, and SIGTERM, after which the program ends: no file is half
// written.
func (p *program) interruptible(f func(ctx context.Context) error) error {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	done := make(chan struct{})
	go func() {
		select {
		case s := <-signals:
			signal.Stop(signals) // where something is stuck, a second one ends a script
			if s == os.Interrupt {
				cancel(errInterrupted)
				return
			}
			p.terminated.Store(true)
			stuck := time.AfterFunc(terminationGrace, func() { os.Exit(statusTerminated) })
			cancel(errTerminated)
			<-done
			stuck.Stop()
		case <-done:
		}
	}()
	defer func() {
		signal.Stop(signals)
		close(done)
		cancel(nil)
	}()
	err := f(ctx)
	if p.terminated.Load() {
		return errTerminated
	}
	return err
}

// report prints an error as the lua program does. ok: the program goes on, else status is its exit status.
func (p *program) report(err error) (status int, ok bool) {
	if err == nil {
		return 0, true
	}
	if err == errTerminated {
		return statusTerminated, false
	}
	var se *luabind.ScriptError
	if errors.As(err, &se) && se.Exit != nil {
		p.exited = true
		return *se.Exit, false
	}
	fmt.Fprintf(p.stderr, "mlxlua: %v\n", p.paint(red, err.Error()))
	if text := excerpt(err, nil); text != "" {
		fmt.Fprintln(p.stderr, text)
	}
	if se != nil && se.Traceback != "" {
		fmt.Fprintln(p.stderr, se.Traceback)
	}
	return 1, false
}

// exits reports whether an error is a script's call of os.exit.
func exits(err error) bool {
	var se *luabind.ScriptError
	return errors.As(err, &se) && se.Exit != nil
}

// isTerminal reports whether a file is a terminal: somebody sits there. /dev/null, which is a device too, is none.
func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }
