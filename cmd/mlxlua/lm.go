package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"

	"github.com/mlxlua/mlxlua"
	"github.com/mlxlua/mlxlua/cmd/mlxlua/edit"
	"github.com/mlxlua/mlxlua/luabind"
)

// runModels is `mlxlua lm ...`: the commands of scripts/lm/cli.lua.
func runModels(arguments []string, stdin *os.File, stdout, stderr io.Writer) int {
	if err := mlxlua.OpenDevice("auto"); err != nil {
		fmt.Fprintf(stderr, "mlxlua: %v\n", err)
		return 1
	}
	s := luabind.New(luabind.Options{Libraries: true, Stdout: stdout, Stderr: stderr})
	defer s.Close()
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	var asked atomic.Bool
	defer interrupts(&asked, func() { cancel(edit.ErrInterrupted) })()

	p := &program{s: s, o: &options{}, stdin: stdin, stdout: stdout, stderr: stderr}
	if err := p.modelHost(&asked, stderr); err != nil {
		fmt.Fprintf(stderr, "mlxlua: %v\n", err)
		return 1
	}
	list := make([]any, len(arguments))
	for i, a := range arguments {
		list[i] = a
	}
	args, err := s.ToLua(list)
	if err == nil {
		err = s.SetGlobal("arg", args)
	}
	if err == nil {
		_, err = s.Run(ctx, strings.NewReader(modelChunk), "mlxlua lm")
	}
	status, _ := p.report(err)
	return status
}

// modelChunk runs a command and exits with its status.
const modelChunk = `os.exit(require("lm.cli").run(arg, lm_host))`

// interrupts has Ctrl-C set a flag, which a command takes note of between two tokens, and cancel the run where the one
// before has not been noticed yet. It gives the function that ends this.
func interrupts(asked *atomic.Bool, cancel func()) func() {
	signals, done := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(signals, os.Interrupt)
	go func() {
		for {
			select {
			case <-signals:
				if asked.Swap(true) {
					cancel()
				}
			case <-done:
				return
			}
		}
	}()
	return func() {
		signal.Stop(signals)
		close(done)
	}
}

// modelHost sets the global lm_host: what scripts/lm/cli.lua takes from the program.
func (p *program) modelHost(asked *atomic.Bool, stderr io.Writer) error {
	var in entryReader
	host := map[string]any{
		"terminal": isTerminalWriter(stderr),
		"pull":     luabind.Func(pull),
		"serve":    luabind.Func(p.serve),
		"write": luabind.Func(func(_ context.Context, args []any) ([]any, error) {
			_, err := io.WriteString(p.stdout, fmt.Sprint(args...))
			return nil, err
		}),
		"note": luabind.Func(func(_ context.Context, args []any) ([]any, error) {
			_, err := io.WriteString(p.stderr, fmt.Sprint(args...))
			return nil, err
		}),
		"interrupted": luabind.Func(func(context.Context, []any) ([]any, error) {
			return []any{asked.Swap(false)}, nil
		}),
		"input": luabind.Func(func(context.Context, []any) ([]any, error) {
			text, err := io.ReadAll(p.stdin)
			return []any{string(text)}, err
		}),
		"ask": luabind.Func(func(_ context.Context, args []any) ([]any, error) {
			if in == nil {
				in = p.entries("questions", nil)
			}
			text, err := in.next(fmt.Sprint(args...), func(string) bool { return true })
			asked.Store(false)
			switch {
			case err == nil:
				in.remember(text)
				return []any{text}, nil
			case errors.Is(err, io.EOF):
				return []any{nil}, nil
			case errors.Is(err, edit.ErrInterrupted):
				return []any{""}, nil
			}
			return nil, err
		}),
	}
	v, err := p.s.ToLua(host)
	if err != nil {
		return err
	}
	return p.s.SetGlobal("lm_host", v)
}

// isTerminalWriter reports whether a writer is a terminal.
func isTerminalWriter(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && isTerminal(f)
}
