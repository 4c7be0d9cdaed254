package lua51

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"
)

// scopes makes gopher-lua tell the scopes of local variables. It gives a prototype a list of them, but their ends only
// for those of a function's first block. The compiler copies the line of a node to each instruction that it makes of
// the node. So while it works nodes have marks in place of lines: a mark stands for a line, the block that the node is
// in and, for a function, which one it is. Where the instructions of a block end, so do its variables.
type scopes struct {
	marks     []mark
	blocks    []blockScope
	functions [][]localScope // the variables of each function, in the order in which the compiler meets them
	block     int            // the one that is being marked
}

type mark struct{ line, block, function int }

type blockScope struct {
	parent   int // of the same function; -1: none
	function int
	end      int // behind the last instruction of it
}

type localScope struct {
	block int
	with  int // how many variables after it the one is that it begins with: a loop's own begin with its first variable
}

// firstMark is greater than any line. Every second number is a mark, since the compiler adds 1 to some lines.
const firstMark = 1 << 40

// compileMarked is lua.Compile with the scopes of local variables. The chunk's lines are gone afterwards.
func compileMarked(chunk []ast.Stmt, name string) (*lua.FunctionProto, error) {
	s := &scopes{}
	s.enterFunction()
	s.stmts(chunk)
	proto, err := lua.Compile(chunk, name)
	if err != nil {
		return nil, s.realError(err, name)
	}
	s.function(proto)
	return proto, nil
}

// line is the line that a number stands for, which the compiler has given.
func (s *scopes) line(n int) int {
	if n < firstMark {
		return n
	}
	return s.marks[(n-firstMark)/2].line + n%2
}

// of is what a mark stands for; false: the number is a line.
func (s *scopes) of(n int) (mark, bool) {
	if n < firstMark {
		return mark{}, false
	}
	return s.marks[(n-firstMark)/2], true
}

var inMessages = regexp.MustCompile(`line \d+`)

// realError is an error of the compiler, which is one of the text, with lines in place of marks.
func (s *scopes) realError(err error, name string) error {
	var ce *lua.CompileError
	if !errors.As(err, &ce) {
		return err
	}
	e := &SyntaxError{Chunk: name, Line: s.line(ce.Line)}
	e.Message = inMessages.ReplaceAllStringFunc(ce.Message, func(text string) string {
		n, err := strconv.Atoi(text[len("line "):])
		if err != nil {
			return text
		}
		return fmt.Sprintf("line %d", s.line(n))
	})
	if strings.HasPrefix(e.Message, "cannot use '...'") {
		e.Token = "..."
	}
	return e
}

// mark gives a node a mark, unless it has one: a node may stand at two places of the tree.
func (s *scopes) mark(n ast.PositionHolder, function int) {
	line := n.Line()
	if line >= firstMark {
		return
	}
	m := mark{line, s.block, function}
	if last := len(s.marks) - 1; last < 0 || s.marks[last] != m || function > 0 {
		s.marks = append(s.marks, m)
	}
	n.SetLine(firstMark + 2*(len(s.marks)-1))
}

// enterFunction begins a function: the variables of its first block are its own.
func (s *scopes) enterFunction() {
	s.functions = append(s.functions, nil)
	s.blocks = append(s.blocks, blockScope{parent: -1, function: len(s.functions) - 1})
	s.block = len(s.blocks) - 1
}

// inside marks a block of its own.
func (s *scopes) inside(mark func()) {
	outer := s.block
	s.blocks = append(s.blocks, blockScope{parent: outer, function: s.blocks[outer].function})
	s.block = len(s.blocks) - 1
	mark()
	s.block = outer
}

// local notes a variable of the block.
func (s *scopes) local(with int) {
	f := s.blocks[s.block].function
	s.functions[f] = append(s.functions[f], localScope{s.block, with})
}

func (s *scopes) locals(n int) {
	for range n {
		s.local(0)
	}
}

// loop marks a loop of three variables of its own, and so many others.
func (s *scopes) loop(body []ast.Stmt, names int) {
	s.inside(func() {
		for with := 3; with > 0; with-- {
			s.local(with)
		}
		s.locals(names)
		s.stmts(body)
	})
}

func (s *scopes) stmts(list []ast.Stmt) {
	for _, n := range list {
		s.stmt(n)
	}
}

func (s *scopes) stmt(n ast.Stmt) {
	s.mark(n, 0)
	switch n := n.(type) {
	case *ast.LocalAssignStmt:
		s.exprs(n.Exprs...)
		s.locals(len(n.Names))
	case *ast.DoBlockStmt:
		s.inside(func() { s.stmts(n.Stmts) })
	case *ast.WhileStmt:
		s.exprs(n.Condition)
		s.inside(func() { s.stmts(n.Stmts) })
	case *ast.RepeatStmt:
		s.inside(func() {
			s.stmts(n.Stmts)
			s.exprs(n.Condition)
		})
	case *ast.IfStmt:
		s.exprs(n.Condition)
		s.inside(func() { s.stmts(n.Then) })
		s.inside(func() { s.stmts(n.Else) })
	case *ast.NumberForStmt:
		s.exprs(n.Init, n.Limit, n.Step)
		s.loop(n.Stmts, 1)
	case *ast.GenericForStmt:
		s.exprs(n.Exprs...)
		s.loop(n.Stmts, len(n.Names))
	case *ast.FuncDefStmt:
		s.exprs(n.Name.Func, n.Name.Receiver)
		s.functionBody(n.Func, n.Name.Func == nil)
	default:
		for _, c := range children(n) {
			s.exprs(c.(ast.Expr))
		}
	}
}

func (s *scopes) exprs(list ...ast.Expr) {
	for _, n := range list {
		switch f := n.(type) {
		case nil:
		case *ast.FunctionExpr:
			s.functionBody(f, false)
		default:
			s.mark(n, 0)
			for _, c := range children(n) {
				s.exprs(c.(ast.Expr))
			}
		}
	}
}

// functionBody marks a function; a method's first variable is self.
func (s *scopes) functionBody(f *ast.FunctionExpr, method bool) {
	outer := s.block
	s.mark(f, len(s.functions))
	s.enterFunction()
	if method {
		s.local(0)
	}
	s.locals(len(f.ParList.Names))
	if f.ParList.HasVargs {
		s.local(0) // arg, as it was called in Lua 5.0
	}
	s.stmts(f.Stmts)
	s.block = outer
}

// function gives a prototype its lines, and its variables their scopes; and those in it.
func (s *scopes) function(p *lua.FunctionProto) {
	own := 0 // the chunk's function
	if m, ok := s.of(p.LineDefined); ok {
		own = m.function
	}
	p.LineDefined, p.LastLineDefined = s.line(p.LineDefined), s.line(p.LastLineDefined)
	for pc, n := range p.DbgSourcePositions {
		if m, ok := s.of(n); ok && s.blocks[m.block].function == own {
			for b := m.block; b >= 0 && s.blocks[b].end <= pc; b = s.blocks[b].parent {
				s.blocks[b].end = pc + 1
			}
		}
		p.DbgSourcePositions[pc] = s.line(n)
	}
	starts := make([]int, len(p.DbgLocals))
	for i, l := range p.DbgLocals {
		starts[i] = l.StartPc
	}
	for i, v := range s.functions[own] {
		// gopher-lua has a variable from the instruction behind its start on, up to the one before its end.
		p.DbgLocals[i].StartPc = starts[i+v.with] - 1
		p.DbgLocals[i].EndPc = s.blocks[v.block].end
	}
	for _, inner := range p.FunctionPrototypes {
		s.function(inner)
	}
}
