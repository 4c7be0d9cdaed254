package luabind

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
)

// formula is a function of arrays and numbers that is evaluated in Go: what an optimizer does for each parameter. In
// Lua each of its operations is a call with arguments to convert, a line to find and a result to wrap. The graph is the
// same.
type formula struct {
	names   []string // of the parameters, and of what is assigned
	params  int
	results []int // names
	steps   []formulaStep
}

// formulaStep assigns a term to a name.
type formulaStep struct {
	to   int
	term term
}

// term is an expression of a formula.
type term interface {
	value(c *tensor.Ctx, names []operand) operand
}

// operand is what a name or a term stands for: an array, or a number where that is nil.
type operand struct {
	x *tensor.Array
	n float64
}

// array is the operand beside another one, from which a number takes its dtype if that is an array.
func (o operand) array(c *tensor.Ctx, beside *tensor.Array) *tensor.Array {
	switch {
	case o.x != nil:
		return o.x
	case beside != nil:
		return ops.Scalar(o.n, beside, c)
	}
	return number(c, o.n)
}

type (
	nameTerm   int
	numberTerm float64
	unaryTerm  struct {
		f  func(*tensor.Array, ...*tensor.Ctx) *tensor.Array
		of term
	}
	callTerm struct {
		f    func(x, y *tensor.Array, c ...*tensor.Ctx) *tensor.Array
		a, b term
	}
	binaryTerm struct { // of numbers a number
		op token.Token
		callTerm
	}
)

// formulaFunctions are what formulas call, by what they are called with.
var formulaFunctions = map[string]func(*tensor.Array, ...*tensor.Ctx) *tensor.Array{"abs": ops.Abs, "sign": ops.Sign,
	"sqrt": ops.Sqrt, "square": ops.Square}

// formulaOperators are the operators between arrays.
var formulaOperators = map[token.Token]func(x, y *tensor.Array, c ...*tensor.Ctx) *tensor.Array{token.ADD: ops.Add,
	token.SUB: ops.Subtract, token.MUL: ops.Multiply, token.QUO: ops.Divide}

// parseFormula reads a formula: its head is the names of the parameters, "->", and the names of the results, its text a
// line for each assignment. It panics on a wrong one: they are part of the program.
func parseFormula(head, text string) *formula {
	params, results, _ := strings.Cut(head, "->")
	f := &formula{names: strings.Fields(params)}
	f.params = len(f.names)
	for line := range strings.Lines(strings.TrimSpace(text)) {
		name, expr, _ := strings.Cut(line, "=")
		e, err := parser.ParseExpr(strings.TrimSpace(expr))
		if err != nil {
			panic("BUG: scripts: " + line + ": " + err.Error())
		}
		term := f.term(e) // first: the name may be new
		name = strings.TrimSpace(name)
		if !slices.Contains(f.names, name) {
			f.names = append(f.names, name)
		}
		f.steps = append(f.steps, formulaStep{f.name(name), term})
	}
	for _, name := range strings.Fields(results) {
		f.results = append(f.results, f.name(name))
	}
	return f
}

func (f *formula) name(name string) int {
	i := slices.Index(f.names, name)
	if i < 0 {
		panic("BUG: scripts: a formula has no " + name)
	}
	return i
}

func (f *formula) term(e ast.Expr) term {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return f.term(e.X)
	case *ast.Ident:
		return nameTerm(f.name(e.Name))
	case *ast.BasicLit:
		if v, err := strconv.ParseFloat(e.Value, 64); err == nil {
			return numberTerm(v)
		}
	case *ast.BinaryExpr:
		if op := formulaOperators[e.Op]; op != nil {
			return binaryTerm{e.Op, callTerm{op, f.term(e.X), f.term(e.Y)}}
		}
	case *ast.CallExpr:
		name, _ := e.Fun.(*ast.Ident)
		switch {
		case name == nil:
		case name.Name == "maximum" && len(e.Args) == 2:
			return callTerm{ops.Maximum, f.term(e.Args[0]), f.term(e.Args[1])}
		case formulaFunctions[name.Name] != nil && len(e.Args) == 1:
			return unaryTerm{formulaFunctions[name.Name], f.term(e.Args[0])}
		}
	}
	panic(fmt.Sprintf("BUG: scripts: a formula has a %T that it cannot have", e))
}

func (t nameTerm) value(_ *tensor.Ctx, names []operand) operand { return names[t] }

func (t numberTerm) value(*tensor.Ctx, []operand) operand { return operand{n: float64(t)} }

func (t unaryTerm) value(c *tensor.Ctx, names []operand) operand {
	return operand{x: t.f(t.of.value(c, names).array(c, nil), c)}
}

func (t callTerm) value(c *tensor.Ctx, names []operand) operand {
	a, b := t.a.value(c, names), t.b.value(c, names)
	return operand{x: t.f(a.array(c, b.x), b.array(c, a.x), c)}
}

func (t binaryTerm) value(c *tensor.Ctx, names []operand) operand {
	a, b := t.a.value(c, names), t.b.value(c, names)
	if a.x != nil || b.x != nil {
		return operand{x: t.f(a.array(c, b.x), b.array(c, a.x), c)}
	}
	switch t.op {
	case token.ADD:
		return operand{n: a.n + b.n}
	case token.SUB:
		return operand{n: a.n - b.n}
	case token.MUL:
		return operand{n: a.n * b.n}
	}
	return operand{n: a.n / b.n}
}

// openFormula makes the function that modules written in Lua make formulas with: see parseFormula.
func openFormula(s *State, module string) *lua.LFunction {
	return s.Func(func(L *lua.LState) int {
		f := parseFormula(L.CheckString(1), L.CheckString(2))
		L.Push(s.Func(func(L *lua.LState) int { return f.call(s, L, module) }))
		return 1
	})
}

// call evaluates the formula of the arguments on the stack, and pushes its results.
func (f *formula) call(s *State, L *lua.LState, module string) int {
	c := s.call()
	var few [16]operand
	names := append(few[:0], make([]operand, len(f.names))...)
	for i := range f.params {
		v := L.Get(i + 1)
		x, isArray := array(v)
		n, isNumber := v.(lua.LNumber)
		if !isArray && !isNumber {
			s.raise(c.Errorf(module, "%s %w", f.names[i], wrong(v, "an array or a number")))
		}
		names[i] = operand{x, float64(n)}
	}
	for _, step := range f.steps {
		names[step.to] = step.term.value(c, names)
	}
	for _, i := range f.results {
		if names[i].x != nil {
			L.Push(s.wrap(names[i].x))
		} else {
			L.Push(lua.LNumber(names[i].n))
		}
	}
	return len(f.results)
}
