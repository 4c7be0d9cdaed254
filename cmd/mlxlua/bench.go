package main

import (
	"context"
	_ "embed"
	"strings"
)

// benchChunk is the script of `mlxlua bench`.
//
//go:embed bench.lua
var benchChunk string

// bench prints what this machine reaches, on one thread to all: copying, reading, multiplying, and what models are made
// of. Its arguments are the names of rows to run.
func (p *program) bench() int {
	names := make([]any, len(p.o.args))
	for i, name := range p.o.args {
		names[i] = name
	}
	args, err := p.s.ToLua(names)
	if err == nil {
		err = p.s.SetGlobal("arg", args)
	}
	if err == nil {
		err = p.interruptible(func(ctx context.Context) error {
			_, err := p.s.Run(ctx, strings.NewReader(benchChunk), "mlxlua bench")
			return err
		})
	}
	status, _ := p.report(err)
	return status
}
