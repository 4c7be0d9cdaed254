package house

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// A Lua state finds out which arrays its scripts still reach, and gives the others' memory back (luabind/looks.go). So
// no Go code may keep a Lua value or an array where that walk does not come to. These rules see to it: they are about
// the fields of structs, about package variables, and about what functions capture that outlive the call which makes
// them.

// heldKind is why code may hold Lua values or arrays.
type heldKind int

const (
	isRoot  heldKind = iota + 1 // looks come to it
	passing                     // while it is used, nobody looks: no Lua code runs, or below Go functions only
)

// heldValue is an exception to the rule: why is its reason.
type heldValue struct {
	kind heldKind
	why  string
}

// typedPackage is a package with types.
type typedPackage struct {
	dir   string
	files []*ast.File
	fset  *token.FileSet
	info  *types.Info
	types *types.Package
}

// imports gives the packages that those in dirs import, as the go command has compiled them.
func imports(fset *token.FileSet, root string, dirs ...string) (types.Importer, error) {
	args := []string{"list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}"}
	for _, dir := range dirs {
		args = append(args, "./"+dir)
	}
	cmd := exec.Command("go", args...)
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	exports := map[string]string{}
	for line := range strings.Lines(string(out)) {
		if name, file, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			exports[name] = file
		}
	}
	compiled := func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) }
	return importer.ForCompiler(fset, "gc", compiled), nil
}

// loadTyped type-checks packages of the module outside of their tests.
func loadTyped(root string, dirs ...string) ([]*typedPackage, error) {
	fset := token.NewFileSet()
	from, err := imports(fset, root, dirs...)
	if err != nil {
		return nil, err
	}
	var pkgs []*typedPackage
	for _, dir := range dirs {
		names, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
		if err != nil {
			return nil, err
		}
		p := &typedPackage{dir: dir, fset: fset}
		for _, name := range names {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
			if err != nil {
				return nil, err
			}
			p.files = append(p.files, f)
		}
		if err := p.check(from); err != nil {
			return nil, err
		}
		pkgs = append(pkgs, p)
	}
	return pkgs, nil
}

func (p *typedPackage) check(from types.Importer) (err error) {
	p.info = &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{},
		Uses: map[*ast.Ident]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{}}
	conf := types.Config{Importer: from}
	p.types, err = conf.Check(p.dir, p.fset, p.files, p.info)
	return err
}

// holdsValues reports whether a variable of the type holds a Lua value or an array: itself, or in lists and maps of
// such. An any may be one.
func holdsValues(t types.Type) bool {
	switch t := types.Unalias(t).(type) {
	case *types.Pointer:
		return isValueType(t.Elem()) || holdsValues(t.Elem())
	case *types.Slice:
		return holdsValues(t.Elem())
	case *types.Array:
		return holdsValues(t.Elem())
	case *types.Chan:
		return holdsValues(t.Elem())
	case *types.Map:
		return holdsValues(t.Key()) || holdsValues(t.Elem())
	case *types.Interface:
		return t.NumMethods() == 0
	case *types.Named:
		if isValueType(t) {
			return true
		}
		switch under := t.Underlying().(type) {
		case *types.Slice, *types.Map, *types.Array, *types.Pointer:
			return holdsValues(under)
		case *types.Interface:
			return under.NumMethods() == 0
		}
	}
	return false
}

// isValueType reports whether t is one of gopher-lua's types of values, or the engine's arrays.
func isValueType(t types.Type) bool {
	n, ok := types.Unalias(t).(*types.Named)
	if !ok || n.Obj().Pkg() == nil {
		return false
	}
	switch name, path := n.Obj().Name(), n.Obj().Pkg().Path(); path {
	case "github.com/yuin/gopher-lua":
		values := []string{"LValue", "LTable", "LFunction", "LUserData", "LState", "LChannel", "Upvalue"}
		return slices.Contains(values, name)
	case modulePath + "/tensor", "tensor":
		return name == "Array"
	}
	return false
}

// modulePath is the module's name.
const modulePath = "github.com/mlxlua/mlxlua"

// holdChecker applies the rules to packages.
type holdChecker struct {
	allowed map[string]heldValue
	used    map[string]bool
	faults  []string
}

// checkHolds finds what holds Lua values or arrays out of the looks' sight, and exceptions that are none.
func checkHolds(pkgs []*typedPackage, allowed map[string]heldValue) []string {
	c := &holdChecker{allowed: allowed, used: map[string]bool{}}
	for _, p := range pkgs {
		c.fieldsAndVariables(p)
		for _, f := range p.files {
			for _, d := range f.Decls {
				c.captures(p, d)
			}
		}
	}
	for name := range allowed {
		if !c.used[name] {
			c.faults = append(c.faults, name+" holds no Lua value any more: take it off the list")
		}
	}
	slices.Sort(c.faults)
	return slices.Compact(c.faults)
}

// kind is how the list has a name, or the whole of what it belongs to.
func (c *holdChecker) kind(of, name string) heldKind {
	for _, key := range []string{of + "." + name, of + ".*"} {
		if v, ok := c.allowed[key]; ok {
			c.used[key] = true
			return v.kind
		}
	}
	return 0
}

// fieldsAndVariables applies the rules to a package's structs and variables.
func (c *holdChecker) fieldsAndVariables(p *typedPackage) {
	scope := p.types.Scope()
	for _, name := range scope.Names() {
		switch o := scope.Lookup(name).(type) {
		case *types.Var:
			if holdsValues(o.Type()) && c.kind(p.dir, name) == 0 {
				c.fault(p, o.Pos(), "the variable %s holds Lua values or arrays that no look comes to", name)
			}
		case *types.TypeName:
			c.fields(p, o)
		}
	}
}

// fields applies them to a struct. A field that the method reached names is one that looks come to.
func (c *holdChecker) fields(p *typedPackage, o *types.TypeName) {
	s, ok := o.Type().Underlying().(*types.Struct)
	if !ok {
		return
	}
	for i := range s.NumFields() {
		f := s.Field(i)
		if holdsValues(f.Type()) && !p.reaches(o, f) && c.kind(p.dir+"."+o.Name(), f.Name()) == 0 {
			c.fault(p, f.Pos(), "the field %s.%s holds Lua values or arrays that no look comes to", o.Name(), f.Name())
		}
	}
}

// reaches reports whether the type's method reached names the field.
func (p *typedPackage) reaches(o *types.TypeName, f *types.Var) (found bool) {
	for _, file := range p.files {
		for _, d := range file.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Name.Name != "reached" || fn.Recv == nil || receiverType(fn).Name != o.Name() {
				continue
			}
			ast.Inspect(fn.Body, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok && p.info.Uses[id] == f {
					found = true
				}
				return !found
			})
			if f.Embedded() { // its methods are the type's
				found = true
			}
		}
	}
	return found
}

// captures finds functions made in a declaration that outlive the call, and what they capture.
func (c *holdChecker) captures(p *typedPackage, d ast.Decl) {
	fn, ok := d.(*ast.FuncDecl)
	if !ok || fn.Body == nil {
		return
	}
	name := fn.Name.Name
	if fn.Recv != nil {
		name = receiverType(fn).Name + "." + name
	}
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			for i, arg := range n.Args {
				if isLuaFunction(p.parameter(n, i)) {
					c.outlives(p, name, arg)
				}
			}
		case *ast.KeyValueExpr:
			c.outlives(p, name, n.Value)
		case *ast.AssignStmt:
			for i, l := range n.Lhs {
				if _, ok := l.(*ast.SelectorExpr); ok && i < len(n.Rhs) {
					c.outlives(p, name, n.Rhs[i])
				}
			}
		case *ast.ReturnStmt:
			for _, r := range n.Results {
				c.outlives(p, name, r)
			}
		}
		return true
	})
}

// parameter is the type of what a call's argument i is given to.
func (p *typedPackage) parameter(call *ast.CallExpr, i int) types.Type {
	sig, ok := p.info.TypeOf(call.Fun).(*types.Signature)
	if !ok || sig.Params().Len() == 0 {
		return nil
	}
	return sig.Params().At(min(i, sig.Params().Len()-1)).Type()
}

// isLuaFunction reports whether t is the type of functions that gopher-lua calls.
func isLuaFunction(t types.Type) bool {
	n, ok := types.Unalias(t).(*types.Named)
	return ok && n.Obj().Name() == "LGFunction"
}

// outlives applies the rule to an expression that is a function, or calls a method's receiver.
func (c *holdChecker) outlives(p *typedPackage, in string, e ast.Expr) {
	switch e := e.(type) {
	case *ast.FuncLit:
		c.literal(p, in, e, map[*ast.FuncLit]bool{})
	case *ast.SelectorExpr:
		if s := p.info.Selections[e]; s != nil && s.Kind() == types.MethodVal {
			if id, ok := e.X.(*ast.Ident); ok {
				c.captured(p, in, id, p.info.Uses[id])
			}
		}
	}
}

// literal looks at the variables around a function that it uses.
func (c *holdChecker) literal(p *typedPackage, in string, fn *ast.FuncLit, seen map[*ast.FuncLit]bool) {
	if seen[fn] {
		return
	}
	seen[fn] = true
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		if !ok {
			return true
		}
		o, ok := p.info.Uses[id].(*types.Var)
		if !ok || o.IsField() || o.Pkg() != p.types || o.Parent() == p.types.Scope() {
			return true
		}
		if fn.Pos() <= o.Pos() && o.Pos() < fn.End() {
			return true // its own
		}
		c.captured(p, in, id, o)
		if _, ok := o.Type().Underlying().(*types.Signature); ok {
			for _, made := range p.functionsOf(o) {
				c.literal(p, in, made, seen)
			}
		}
		return true
	})
}

// functionsOf are the functions that a variable is given where it is declared.
func (p *typedPackage) functionsOf(o *types.Var) (out []*ast.FuncLit) {
	for _, f := range p.files {
		if o.Pos() < f.FileStart || o.Pos() >= f.FileEnd {
			continue
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if a, ok := n.(*ast.AssignStmt); ok {
				for i, l := range a.Lhs {
					id, isName := l.(*ast.Ident)
					if lit, isLit := a.Rhs[min(i, len(a.Rhs)-1)].(*ast.FuncLit); isName && isLit &&
						(p.info.Defs[id] == o || p.info.Uses[id] == o) {
						out = append(out, lit)
					}
				}
			}
			return true
		})
	}
	return out
}

// captured applies the rule to a variable that a function captures: it holds no value, and neither does what it points
// at but in fields that looks come to.
func (c *holdChecker) captured(p *typedPackage, in string, id *ast.Ident, o types.Object) {
	if o == nil || c.kind(p.dir+"."+in, id.Name) != 0 {
		return
	}
	t := o.Type()
	if holdsValues(t) {
		c.fault(p, id.Pos(), "%s: a function captures %s, a Lua value or an array, and outlives the call", in, id.Name)
		return
	}
	if ptr, ok := types.Unalias(t).(*types.Pointer); ok {
		t = ptr.Elem()
	}
	n, ok := types.Unalias(t).(*types.Named)
	if !ok || n.Obj().Pkg() != p.types {
		return
	}
	s, ok := n.Underlying().(*types.Struct)
	if !ok {
		return
	}
	for i := range s.NumFields() {
		f := s.Field(i)
		if holdsValues(f.Type()) && !p.reaches(n.Obj(), f) && c.kind(p.dir+"."+n.Obj().Name(), f.Name()) != isRoot {
			c.fault(p, id.Pos(), "%s: a function captures %s, whose field %s looks do not come to, and outlives the call",
				in, id.Name, f.Name())
		}
	}
}

func (c *holdChecker) fault(p *typedPackage, at token.Pos, format string, args ...any) {
	pos := p.fset.Position(at)
	c.faults = append(c.faults, fmt.Sprintf("%s/%s:%d: %s", p.dir, filepath.Base(pos.Filename), pos.Line,
		fmt.Sprintf(format, args...)))
}
