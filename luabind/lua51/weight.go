package lua51

import (
	"context"
	"slices"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"
)

// gopher-lua's compiler looks through all constants of a function for each that it uses, through all gotos for each
// label, and takes 12 KiB for a function. So texts of strangers have bounds: what they hold compiles in about a second.
const (
	maxComparisons = 1 << 28 // of constants, in a text
	maxJumps       = 1 << 11 // gotos and labels of a function
	maxFunctions   = 1 << 13 // of a text
)

// weight is what of a function makes its compilation long.
type weight struct {
	constants map[string]struct{}
	used      int64 // constants, in each place
	jumps     int
}

// weigh refuses a chunk that takes too long to compile. The chunk may be nested deeper than the stack reaches.
func weigh(ctx context.Context, chunk []ast.Stmt) error {
	type part struct {
		n  any
		of *weight
	}
	all := []*weight{{constants: map[string]struct{}{}}}
	var left []part
	for _, s := range chunk {
		left = append(left, part{s, all[0]})
	}
	for seen := 0; len(left) > 0; seen++ {
		if seen%pollEvery == 0 && ctx.Err() != nil {
			return nil // which the compiler says
		}
		p := left[len(left)-1]
		left = left[:len(left)-1]
		of := p.of
		if _, ok := p.n.(*ast.FunctionExpr); ok {
			of = &weight{constants: map[string]struct{}{}}
			if all = append(all, of); len(all) > maxFunctions {
				return limitError("the source text has more than %d functions", maxFunctions)
			}
		} else if of.note(p.n); of.jumps > maxJumps {
			return limitError("the source text has a function of more than %d gotos and labels", maxJumps)
		}
		for _, c := range children(p.n) {
			left = append(left, part{c, of})
		}
	}
	comparisons := int64(0)
	for _, w := range all {
		comparisons += w.used * int64(len(w.constants)) / 2
	}
	if comparisons > maxComparisons {
		return limitError("the source text has too many constants in one function: it takes %d comparisons to find them, "+
			"the limit is %d", comparisons, maxComparisons)
	}
	return nil
}

// note counts a statement or an expression.
func (w *weight) note(n any) {
	constant := func(text string) {
		w.constants[text] = struct{}{}
		w.used++
	}
	switch n := n.(type) {
	case *ast.StringExpr:
		constant(n.Value)
	case *ast.NumberExpr:
		constant(n.Value)
	case *ast.IdentExpr: // a global's name
		constant(n.Value)
	case *ast.FuncCallExpr:
		if n.Method != "" {
			constant(n.Method)
		}
	case *ast.GotoStmt, *ast.LabelStmt:
		w.jumps++
	}
}

// longChunk is the length of texts that gopher-lua may compile for long.
const longChunk = 1 << 15

// generate has gopher-lua compile a chunk of so many bytes. It looks at no context: when that is done, what it makes of
// a long text is not waited for.
func generate(ctx context.Context, chunk []ast.Stmt, name string, length int) (*lua.FunctionProto, error) {
	if length < longChunk {
		return generated(chunk, name)
	}
	var (
		proto *lua.FunctionProto
		err   error
		done  = make(chan struct{})
	)
	go func() {
		defer close(done)
		proto, err = generated(chunk, name)
	}()
	select {
	case <-done:
		return proto, err
	case <-ctx.Done():
		return nil, interruptedText(ctx, name)
	}
}

// generated is what gopher-lua makes of a chunk, an error also where it panics.
func generated(chunk []ast.Stmt, name string) (proto *lua.FunctionProto, err error) {
	defer func() {
		if p := recover(); p != nil {
			proto, err = nil, cannotCompile(name, p)
		}
	}()
	if proto, err = compileMarked(chunk, name); err == nil {
		clip(proto)
	}
	return proto, err
}

// clip gives back the room for a thousand instructions that each function was made with, and has empty constructors
// make room for one key: without, the first key of a table makes gopher-lua take room for 32, of 2 KiB. Lists seldom
// get keys, and pay nothing.
func clip(p *lua.FunctionProto) {
	p.Code = slices.Clone(p.Code)
	for i, code := range p.Code {
		if in := decode(code); in.op == lua.OP_NEWTABLE && in.b == 0 && in.c == 0 {
			p.Code[i] = code | 1<<9
		}
	}
	p.Constants = slices.Clone(p.Constants)
	p.FunctionPrototypes = slices.Clone(p.FunctionPrototypes)
	p.DbgSourcePositions = slices.Clone(p.DbgSourcePositions)
	p.DbgLocals, p.DbgCalls = slices.Clone(p.DbgLocals), slices.Clone(p.DbgCalls)
	p.DbgUpvalues = slices.Clone(p.DbgUpvalues)
	for _, inner := range p.FunctionPrototypes {
		clip(inner)
	}
}
