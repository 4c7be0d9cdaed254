package lua51

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"
	"github.com/yuin/gopher-lua/parse"
)

// maxTableItems is the number of positional items of a table constructor that gopher-lua compiles correctly: past
// 511 batches of 50 it drops items in silence (its issue 537).
const maxTableItems = 511 * 50

// maxNesting bounds the depth of a syntax tree. gopher-lua's compiler recurses on it, and a Go stack overflow would end
// the process.
const maxNesting = 10000

// Compile compiles Lua source text. Every chunk of a state goes through here (scripts, require, load, loadstring,
// dofile, the REPL), because gopher-lua v1.1.2 miscompiles some valid programs and panics on others; compile_test.go
// and rewrite_test.go show each. The syntax tree is rewritten into an equal one that compiles correctly; what cannot be
// is an error. A text that is no program is a *SyntaxError.
func Compile(src io.Reader, name string) (*lua.FunctionProto, error) {
	return compile(context.Background(), src, name, bounds{}, &mender{})
}

// CompileShared is Compile as long as the context is not done, for any number of states: conditions show themselves to
// those whose Options look at them. Sure is Options.Sure, and hint is Options.SyntaxHint.
func CompileShared(ctx context.Context, src io.Reader, name, sure string, hint func(err *SyntaxError) string,
) (*lua.FunctionProto, error) {
	proto, err := compile(ctx, src, name, bounds{}, &mender{sure: &sure})
	return proto, hinted(err, hint)
}

// hinted is an error with the hint of a host, which may be nil.
func hinted(err error, hint func(err *SyntaxError) string) error {
	if se, ok := err.(*SyntaxError); ok && hint != nil {
		se.Hint = hint(se)
	}
	return err
}

// bounds are what a text may take.
type bounds struct {
	most    int64    // bytes of the text; 0: any number, and any time to compile
	holding *Holding // counts what the parser makes; nil: nobody does
}

// compile is Compile within bounds, as long as the context is not done. The mender says what else is to be done.
func compile(ctx context.Context, src io.Reader, name string, b bounds, m *mender) (proto *lua.FunctionProto,
	err error) {
	defer func() {
		if p := recover(); p != nil {
			proto, err = nil, cannotCompile(name, p)
		}
	}()
	source := &boundedReader{ctx: ctx, src: src, bounds: b}
	all, _ := io.ReadAll(source)
	if source.err != nil {
		return nil, fmt.Errorf("%s: %w", name, source.err)
	}
	text := string(all)
	if len(text) > longChunk {
		if err := nestedTooDeep(ctx, text, name); err != nil {
			return nil, err
		}
	}
	source.src, source.bounds = strings.NewReader(text), bounds{}
	stmts, err := parse.Parse(source, name)
	if source.err != nil {
		return nil, fmt.Errorf("%s: %w", name, source.err)
	}
	if err != nil {
		return nil, syntaxError(err, name, text)
	}
	if b.most > 0 {
		if err := weigh(ctx, stmts); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	m.name, m.ctx = name, ctx
	if m.sure != nil {
		m.conditions = newConditions(ctx, stmts, *m.sure)
	}
	stmts = m.block(stmts)
	if m.err != nil {
		return nil, m.err
	}
	if m.embedded {
		stmts = withCheck(stmts)
	}
	proto, err = generate(ctx, stmts, name, len(text))
	if se, ok := err.(*SyntaxError); ok {
		se.Text = text
	}
	if err == nil && (m.conditions != nil || m.calls) {
		putFunctions(proto)
	}
	return proto, err
}

// cannotCompile is the error of a text that gopher-lua panics on.
func cannotCompile(name string, p any) error {
	return fmt.Errorf("%s: cannot be compiled: %v", name, p)
}

// interruptedText is the error of a text whose compilation a context has ended.
func interruptedText(ctx context.Context, name string) error {
	return fmt.Errorf("%s: interrupted: %w", name, context.Cause(ctx))
}

// boundedReader ends a text that takes too much, and any text once its context is done: the parser sees no other errors
// than the end.
type boundedReader struct {
	ctx context.Context
	src io.Reader
	bounds
	read int64
	err  error
}

// Read reads at most 4 KiB between two looks at the context.
func (b *boundedReader) Read(into []byte) (int, error) {
	const piece = 4096
	if b.err == nil && b.ctx.Err() != nil {
		b.err = fmt.Errorf("interrupted: %w", context.Cause(b.ctx))
	}
	if b.err != nil {
		return 0, io.EOF
	}
	n, err := b.src.Read(into[:min(len(into), piece)])
	if b.read += int64(n); b.most > 0 && b.read > b.most {
		b.err = limitError("the source text has more than %d bytes, which is the limit", b.most)
		return 0, io.EOF
	}
	if b.holding != nil {
		if b.err = b.holding.Add(parserBytes * int64(n)); b.err != nil {
			return 0, io.EOF
		}
	}
	if err != nil && err != io.EOF {
		b.err, err = err, io.EOF
	}
	return n, err
}

// Compile is Compile with the state's hints at what is wrong, its limit of the text, and a context. The functions know
// the text where string.dump is there.
func (s *State) Compile(ctx context.Context, src io.Reader, name string) (*lua.FunctionProto, error) {
	if ctx == nil {
		ctx = context.Background()
	}
	var sure *string
	if s.opt.Condition != nil {
		sure = &s.opt.Sure
	}
	var text strings.Builder
	if !s.opt.Sandbox {
		src = io.TeeReader(src, &text)
	}
	b := bounds{most: s.opt.Limits.Source}
	if s.meter != nil && s.meter.calls > 0 {
		b.holding = Hold(s)
		defer b.holding.End()
	}
	proto, err := compile(ctx, src, name, b, &mender{sure: sure})
	if err == nil && !s.opt.Sandbox {
		keepText(proto, text.String())
	}
	return proto, hinted(err, s.opt.SyntaxHint)
}

// SyntaxError says where a text is no Lua program, and why.
type SyntaxError struct {
	Chunk   string // the chunk's name
	Line    int    // counts from 1; 0: the text ends too early
	Column  int    // counts from 1, in bytes: where the token is that the parser stopped at; 0: nobody knows
	Message string // what the parser says
	Token   string // what the parser stopped at, or ""
	Text    string // the whole text
	Hint    string // what a host adds, see Options.SyntaxHint
	early   bool   // the text ends within the token
}

// Error is the message with its place.
func (e *SyntaxError) Error() string {
	if e.Line == 0 {
		return e.Chunk + ": " + e.Message + " at EOF" + e.Hint
	}
	near := ""
	if e.Token != "" {
		near = " near '" + e.Token + "'"
	}
	return fmt.Sprintf("%s:%d: %s%s%s", e.Chunk, e.Line, e.Message, near, e.Hint)
}

// AtEnd reports whether the text ends too early, so that more of it may mend it.
func (e *SyntaxError) AtEnd() bool { return e.Line == 0 || e.early }

// syntaxError is the parser's error as a SyntaxError.
func syntaxError(err error, name, text string) error {
	var pe *parse.Error
	if !errors.As(err, &pe) {
		return err
	}
	e := &SyntaxError{Chunk: name, Line: pe.Pos.Line, Message: strings.TrimSpace(pe.Message), Token: pe.Token, Text: text}
	if strings.Contains(e.Message, "unterminated") || strings.Contains(e.Message, "comment") {
		if at := unclosed(text); at >= 0 {
			e.begins(at, pe.Pos.Line == parse.EOF)
			return e
		}
	}
	if pe.Pos.Line == parse.EOF {
		e.Line, e.Token = 0, ""
		return e
	}
	if lines := strings.Split(text, "\n"); e.Line <= len(lines) && e.Token != "" {
		// The parser tells about where it stands.
		line := lines[e.Line-1]
		about := min(max(pe.Pos.Column, 0)+len(e.Token), len(line))
		e.Column = 1 + strings.LastIndex(line[:about], e.Token)
	}
	return e
}

// mender rewrites a syntax tree in place. What it upholds: no backward jump lands on a jump, since gopher-lua would
// take the distance of that jump for a label (its issue 540); loops over iterators initialise generator, state and
// control (514); only a register is ever the object of an assignment to a field (310, 524); and what rewrite.go says.
type mender struct {
	ctx         context.Context
	seen        int
	name        string
	depth       int
	err         error
	embedded    bool    // it is embedded code: see CompileEmbedded
	sure        *string // Options.Sure where conditions show themselves; else nil
	*conditions         // of sure
	calls       bool    // there are values that pass joiner or looper
}

// fail keeps the first error.
func (m *mender) fail(line int, format string, args ...any) {
	if m.err == nil {
		m.err = fmt.Errorf("%s:%d: %s", m.name, line, fmt.Sprintf(format, args...))
	}
}

// enter counts one level of nesting, and reports whether there is room for it.
func (m *mender) enter(line int) bool {
	m.depth++
	if m.seen++; m.seen%pollEvery == 0 && m.ctx.Err() != nil && m.err == nil {
		m.err = interruptedText(m.ctx, m.name)
	}
	if m.depth > maxNesting && m.err == nil {
		m.err = overNested(m.name, line)
	}
	return m.err == nil
}

// block mends the statements of a block, and puts a no-op between a label and what follows it: a label is the target
// of backward gotos. A label that ends its block stays last, because Lua lets gotos jump over locals to it.
func (m *mender) block(in []ast.Stmt) []ast.Stmt {
	out := make([]ast.Stmt, 0, len(in))
	for i, s := range in {
		m.stmt(s)
		if m.err != nil {
			return nil
		}
		switch a := s.(type) {
		case *ast.AssignStmt:
			s = assignment(a)
		case *ast.LocalAssignStmt:
			outsideItself(a)
		case *ast.GenericForStmt:
			s = iterators(a)
		case *ast.GotoStmt:
			s = leaving(a)
		}
		out = append(out, s)
		if _, ok := s.(*ast.LabelStmt); ok && i+1 < len(in) {
			if _, again := in[i+1].(*ast.LabelStmt); !again {
				out = append(out, noop(s.Line()))
			}
		}
	}
	return out
}

// loopBody mends the body of a loop whose head a backward jump reaches.
func (m *mender) loopBody(in []ast.Stmt, line int) []ast.Stmt {
	out := closedByBreak(m.block(in), line)
	if startsWithJump(out) {
		out = append([]ast.Stmt{noop(line)}, out...)
	}
	return out
}

// startsWithJump reports whether the code of a mended block may begin with a jump, or be empty.
func startsWithJump(b []ast.Stmt) bool {
	if len(b) == 0 {
		return true
	}
	switch s := b[0].(type) {
	case *ast.BreakStmt, *ast.GotoStmt, *ast.LabelStmt, *ast.DoBlockStmt, *ast.WhileStmt, *ast.RepeatStmt:
		return true
	case *ast.IfStmt:
		truth, constant := constantTruth(s.Condition)
		return constant && truth
	}
	return false
}

// noop is `do local _ end`: one instruction that is no jump.
func noop(line int) ast.Stmt {
	local := &ast.LocalAssignStmt{Names: []string{"(no-op)"}}
	local.SetLine(line)
	do := &ast.DoBlockStmt{Stmts: []ast.Stmt{local}}
	do.SetLine(line)
	do.SetLastLine(line)
	return do
}

func (m *mender) stmt(s ast.Stmt) {
	if !m.enter(s.Line()) {
		return
	}
	defer func() { m.depth-- }()
	switch s := s.(type) {
	case *ast.AssignStmt:
		m.exprs(s.Lhs)
		m.exprs(s.Rhs)
		for _, l := range s.Lhs {
			if get, ok := l.(*ast.AttrGetExpr); ok {
				get.Object = inRegister(get.Object)
			}
		}
	case *ast.LocalAssignStmt:
		m.exprs(s.Exprs)
	case *ast.FuncCallStmt:
		s.Expr = m.expr(s.Expr)
	case *ast.DoBlockStmt:
		s.Stmts = m.block(s.Stmts)
	case *ast.WhileStmt:
		s.Condition = m.condition(s.Condition)
		s.Stmts = m.loopBody(s.Stmts, s.Line())
	case *ast.RepeatStmt:
		s.Condition = m.condition(s.Condition)
		s.Stmts = m.loopBody(s.Stmts, s.Line())
	case *ast.IfStmt:
		s.Condition = m.condition(s.Condition)
		s.Then = m.block(s.Then)
		s.Else = m.block(s.Else)
	case *ast.NumberForStmt:
		s.Init, s.Limit = m.bound(m.expr(s.Init)), m.bound(m.expr(s.Limit))
		if s.Step != nil {
			s.Step = m.bound(m.expr(s.Step))
		}
		s.Stmts = closedByBreak(m.block(s.Stmts), s.Line()) // FORLOOP is no jump: nothing misreads its target
	case *ast.GenericForStmt:
		m.exprs(s.Exprs)
		s.Names = iteratorNames(s)
		s.Stmts = m.loopBody(s.Stmts, s.Line())
	case *ast.FuncDefStmt:
		m.function(s.Func)
		if s.Name.Func != nil {
			s.Name.Func = m.expr(s.Name.Func)
		}
		if s.Name.Receiver != nil {
			s.Name.Receiver = m.expr(s.Name.Receiver)
			if m.embedded {
				checkSelf(s)
			}
		}
	case *ast.ReturnStmt:
		m.exprs(s.Exprs)
	}
}

// iteratorNames gives a loop over an iterator at least three variables unless its values come from one call:
// gopher-lua sets as many of generator, state and control as there are variables, and leaves old values in the rest.
func iteratorNames(s *ast.GenericForStmt) []string {
	if len(s.Exprs) == 1 && manyValues(s.Exprs[0]) {
		return s.Names
	}
	names := s.Names
	for len(names) < 3 {
		names = append(names, "(for unused)")
	}
	return names
}

func (m *mender) function(f *ast.FunctionExpr) { f.Stmts = m.block(f.Stmts) }

func (m *mender) exprs(list []ast.Expr) {
	for i, e := range list {
		list[i] = m.expr(e)
	}
}

// expr mends e and folds arithmetic of numerals, and `and`, `or` and `not` of constants, whose code would begin with a
// jump.
func (m *mender) expr(e ast.Expr) ast.Expr {
	if !m.enter(e.Line()) {
		return e
	}
	defer func() { m.depth-- }()
	switch e := e.(type) {
	case *ast.AttrGetExpr:
		e.Object, e.Key = m.expr(e.Object), m.expr(e.Key)
	case *ast.TableExpr:
		m.table(e)
	case *ast.FuncCallExpr:
		if e.Func != nil {
			e.Func = m.expr(e.Func)
		}
		if e.Receiver != nil {
			e.Receiver = m.expr(e.Receiver)
		}
		m.exprs(e.Args)
		if m.embedded && slices.Contains(stringMethods, e.Method) {
			stringMethod(e)
		}
	case *ast.LogicalOpExpr:
		e.Lhs, e.Rhs = m.expr(e.Lhs), m.expr(e.Rhs)
		e.Lhs = m.operand(e)
		return foldLogical(e)
	case *ast.RelationalOpExpr:
		e.Lhs, e.Rhs = m.expr(e.Lhs), m.expr(e.Rhs)
	case *ast.StringConcatOpExpr:
		e.Lhs, e.Rhs = m.joined(m.expr(e.Lhs)), m.joined(m.expr(e.Rhs))
	case *ast.NumberExpr:
		return folded(e)
	case *ast.ArithmeticOpExpr:
		e.Lhs, e.Rhs = m.expr(e.Lhs), m.expr(e.Rhs)
		return folded(e)
	case *ast.UnaryMinusOpExpr:
		e.Expr = m.expr(e.Expr)
		return folded(e)
	case *ast.UnaryLenOpExpr:
		e.Expr = m.expr(e.Expr)
	case *ast.UnaryNotOpExpr:
		e.Expr = m.shown(m.expr(e.Expr))
		if truth, ok := constantTruth(e.Expr); ok {
			return boolean(!truth, e.Line())
		}
	case *ast.FunctionExpr:
		m.function(e)
	}
	return e
}

func (m *mender) table(t *ast.TableExpr) {
	items := 0
	t.Fields = betweenFlushes(t.Fields)
	for _, f := range t.Fields {
		if f.Key == nil {
			items++
		} else {
			f.Key = m.expr(f.Key)
			f.Value = oneValue(f.Value) // gopher-lua takes a last call for items, though it has a key
		}
		f.Value = m.expr(f.Value)
	}
	if items > maxTableItems {
		m.fail(t.Line(), "table constructor has %d items, at most %d are allowed: build it in a loop or read a file",
			items, maxTableItems)
	}
}

// condition mends the condition of if, while and repeat. A constantly false one would compile to a lone jump; it
// becomes the comparison 1 == 0.
func (m *mender) condition(e ast.Expr) ast.Expr {
	e = m.shown(m.expr(e))
	if truth, ok := constantTruth(e); !ok || truth {
		return e
	}
	one, zero := &ast.NumberExpr{Value: "1"}, &ast.NumberExpr{Value: "0"}
	one.SetLine(e.Line())
	zero.SetLine(e.Line())
	never := &ast.RelationalOpExpr{Operator: "==", Lhs: one, Rhs: zero}
	never.SetLine(e.Line())
	return never
}

// foldLogical gives the value of `and` and `or` where the left side is constant; as an operand it is one value.
func foldLogical(e *ast.LogicalOpExpr) ast.Expr {
	truth, ok := constantTruth(e.Lhs)
	if !ok {
		return e
	}
	if truth == (e.Operator == "or") {
		return e.Lhs
	}
	return oneValue(e.Rhs)
}

// constantTruth reports whether a literal counts as true, and whether e is a literal.
func constantTruth(e ast.Expr) (truth, constant bool) {
	switch e.(type) {
	case *ast.TrueExpr, *ast.NumberExpr, *ast.StringExpr:
		return true, true
	case *ast.FalseExpr, *ast.NilExpr:
		return false, true
	}
	return false, false
}

func boolean(v bool, line int) ast.Expr {
	var e ast.Expr = &ast.FalseExpr{}
	if v {
		e = &ast.TrueExpr{}
	}
	e.SetLine(line)
	return e
}

// oneValue makes a call, or `...`, give one value wherever it stands.
func oneValue(e ast.Expr) ast.Expr {
	switch e := e.(type) {
	case *ast.FuncCallExpr:
		e.AdjustRet = true
	case *ast.Comma3Expr:
		e.AdjustRet = true
	}
	return e
}

func manyValues(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.FuncCallExpr:
		return !e.AdjustRet
	case *ast.Comma3Expr:
		return !e.AdjustRet
	}
	return false
}

// inRegister copies the object of a field assignment where its code may end by loading a constant, because gopher-lua
// drops that instruction.
func inRegister(e ast.Expr) ast.Expr {
	switch e.(type) {
	case *ast.IdentExpr, *ast.AttrGetExpr, *ast.FuncCallExpr:
		return e
	}
	return copied(e)
}

// copied is ({e})[1], which has e's value in a register of its own.
func copied(e ast.Expr) ast.Expr {
	table := &ast.TableExpr{Fields: []*ast.Field{{Value: e}}}
	table.SetLine(e.Line())
	one := &ast.NumberExpr{Value: "1"}
	one.SetLine(e.Line())
	get := &ast.AttrGetExpr{Object: table, Key: one}
	get.SetLine(e.Line())
	return get
}
