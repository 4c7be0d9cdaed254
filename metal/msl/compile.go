package msl

import (
	"embed"
	"fmt"
	std "github.com/mlxlua/mlxlua/metal/prelude"
	"io/fs"
	"runtime"
	"sort"
	"strings"
	"sync"

	"github.com/mlxlua/mlxlua/metal/kir"
)

// Options say how to compile.
type Options struct {
	Float64  bool     // accept double, which Metal has not
	Portable bool     // refuse what the portable dialect of built-in kernels leaves out (see portable.go, dialect.go)
	Apple    bool     // refuse what Apple's compiler refuses (see dialect.go), as Portable does
	Defines  []Define // macros defined before the text
	// FunctionConstants are the values of function constants. One that has none is an error of the kernels that reach it.
	FunctionConstants []FunctionConstant
	// Include resolves #include of names that are no Metal headers; nil resolves none.
	Include func(name string) (text string, ok bool)
	// Stop is asked every few milliseconds; an error from it ends the compilation, which returns it. nil: nothing does.
	Stop func() error
}

// frozen is a parsed prelude with its scope. It never changes.
type frozen struct {
	file *File
	root *env
}

//go:embed lib/*.metal
var libFS embed.FS

var prelude = sync.OnceValues(func() (*frozen, error) { return freeze(preludeSources()) })

// preludeSources are the texts that every unit stands on: what Metal's headers declare, the math library in the
// order of its files' names, and MLX's helpers.
func preludeSources() []Source {
	var list []Source
	for _, s := range std.Standard() {
		list = append(list, Source(s))
	}
	names, _ := fs.Glob(libFS, "lib/*.metal")
	sort.Strings(names)
	for _, n := range names {
		text, _ := libFS.ReadFile(n)
		list = append(list, Source{Name: n, Text: string(text)})
	}
	for _, s := range std.Helpers() {
		list = append(list, Source(s))
	}
	return list
}

// freeze parses a prelude and enters its declarations.
func freeze(sources []Source) (*frozen, error) {
	f, errs := Parse(Unit{Sources: sources})
	if len(errs) > 0 {
		return nil, fmt.Errorf("[msl] BUG: the prelude has errors: %w", errs.Err())
	}
	c := newCompiler(f, Options{Float64: true})
	c.freezing = true
	root := &env{kind: envNamespace}
	c.declareAll(root, f.Decls)
	if x := root.own("metal"); x != nil && x.kind == eNamespace {
		root.using = append(root.using, x.ns)
	}
	if len(*c.errs) > 0 {
		return nil, fmt.Errorf("[msl] BUG: the prelude has errors: %w", c.errs.Err())
	}
	return &frozen{f, root}, nil
}

// panicFrames names the innermost functions of the package that a recovered panic went through.
func panicFrames() string {
	pcs := make([]uintptr, 40)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs)])
	var names []string
	for {
		f, more := frames.Next()
		if i := strings.LastIndex(f.Function, "/msl."); i >= 0 && len(names) < 6 {
			names = append(names, f.Function[i+5:])
		}
		if !more {
			return strings.Join(names, " < ")
		}
	}
}

func sortErrors(l ErrorList) {
	sort.SliceStable(l, func(i, j int) bool {
		a, b := l[i], l[j]
		if (a.Code == TooManyErrors) != (b.Code == TooManyErrors) {
			return b.Code == TooManyErrors
		}
		if a.Pos.File != b.Pos.File {
			return a.Pos.File < b.Pos.File
		}
		if a.Pos.Line != b.Pos.Line {
			return a.Pos.Line < b.Pos.Line
		}
		return a.Pos.Col < b.Pos.Col
	})
}

// compiler holds what is known of one unit while it is compiled.
type compiler struct {
	file     *File
	opt      Options
	apple    dialect
	root     *env
	list     ErrorList
	errs     *ErrorList // where errors go: list, or aside during a trial
	trials   int        // how many trials are under way
	freezing bool
	raw      bool // kernels stay as they were written: for tests of opt.Clean
	// syntaxErrs says that the text has syntax errors: then undeclared names may be their consequence and are not
	// reported.
	syntaxErrs bool
	hidden     int             // errors not reported because of syntaxErrs or missing
	missing    map[string]bool // undeclared names that have been reported for the kernel
	lastPos    Pos
	depth      int
	instrs     int
	work       int              // statements and expressions walked for the kernel
	unitWork   int              // and for all kernels so far
	errorWork  int              // of that, since the first error
	instCount  int              // instances of templates
	failed     map[*funcEnt]int // kernels with errors, by their template

	types     typeTable
	classes   map[classKey]*ctype
	enums     map[enumKey]*ctype
	enumVals  map[enumValKey]operand
	resolved  map[*entity]qtype
	globals   map[*entity]value
	images    []image          // the memory of constants
	busy      map[*entity]bool // types and constants being worked out
	insts     map[*tmplInfo]*instances[*classInfo]
	varInsts  map[*tmplInfo][]varInst
	funcInsts map[*funcEnt]*instances[*funcInst]
	guides    map[*tmplInfo][]*funcEnt // of constructors
	// funcTypes are the types of the functions that are handed on as values.
	funcTypes map[*funcEnt]*ctype
	used      map[*funcEnt]bool
	overlay   map[*env]*env // a namespace of the prelude to the unit's part of it

	extraTmpl  map[*tmplInfo][]*TemplateDecl // specialisations by the unit of the prelude's templates
	extraSpecs map[*funcEnt][]*funcEnt
	members    map[memberKey][]memberDef

	link           linkage
	instantiations []pendingInst
	asserts        []pendingAssert
	places         map[kir.Pos]Pos // of what is checked in the end: see emit
	order          []*funcEnt
	noContract     bool // of the file-scope pragmas so far
}

func newCompiler(f *File, opt Options) *compiler {
	c := &compiler{
		file: f, opt: opt, types: typeTable{byKey: map[typeKey]*ctype{}},
		classes: map[classKey]*ctype{}, enums: map[enumKey]*ctype{},
		enumVals: map[enumValKey]operand{}, resolved: map[*entity]qtype{}, globals: map[*entity]value{},
		busy:  map[*entity]bool{},
		insts: map[*tmplInfo]*instances[*classInfo]{}, varInsts: map[*tmplInfo][]varInst{},
		funcInsts: map[*funcEnt]*instances[*funcInst]{}, guides: map[*tmplInfo][]*funcEnt{},
		funcTypes: map[*funcEnt]*ctype{},
		used:      map[*funcEnt]bool{}, overlay: map[*env]*env{}, extraTmpl: map[*tmplInfo][]*TemplateDecl{},
		extraSpecs: map[*funcEnt][]*funcEnt{}, members: map[memberKey][]memberDef{},
		places: map[kir.Pos]Pos{},
		failed: map[*funcEnt]int{}, missing: map[string]bool{},
	}
	c.errs = &c.list
	c.apple = dialect{c}
	c.link = linkage{c: c, constants: map[*entity]*functionConstant{}}
	return c
}

func (c *compiler) kirPos(p Pos) kir.Pos { return c.file.KirPos(p) }

// inPrelude reports whether a place is in the prelude's text.
func (c *compiler) inPrelude(p Pos) bool { return c.freezing || p != 0 && p <= c.file.base }

func (c *compiler) errorf(code Code, at Pos, format string, args ...any) {
	c.errorNote(code, at, "", format, args...)
}

func (c *compiler) errorNote(code Code, at Pos, note, format string, args ...any) {
	c.lastPos = at
	if c.syntaxErrs && (code == Undeclared || code == NotAType) && c.errs == &c.list {
		c.hidden++
		return
	}
	e := c.file.Errorf(code, at, format, args...)
	if note != "" {
		if e.Note != "" {
			note = e.Note + "\n" + note
		}
		e.Note = note
	}
	if !c.errs.Add(e) && c.errs == &c.list {
		panic(bailout{})
	}
}

// fatal reports an error that there is no point in going on after, also from within a trial.
func (c *compiler) fatal(code Code, at Pos, format string, args ...any) {
	c.errs = &c.list
	c.errorf(code, at, format, args...)
	panic(bailout{})
}

func noteAt(what string, l Location) string {
	return fmt.Sprintf("%s %s:%d:%d", what, l.File, l.Pos.Line, l.Pos.Col)
}

func (c *compiler) errCount() int { return len(*c.errs) + c.hidden }
func (c *compiler) full() bool    { return len(c.list) > MaxErrors }

// trial runs f with its errors kept aside and reports whether there were none.
func (c *compiler) trial(f func()) bool {
	var errs ErrorList
	return c.trialErrs(&errs, f)
}

func (c *compiler) trialErrs(errs *ErrorList, f func()) bool {
	saved := c.errs
	c.errs = errs
	c.trials++
	defer func() { c.errs = saved; c.trials-- }()
	f()
	return len(*errs) == 0
}

// enter counts a nested instantiation; it reports templates that never end.
func (c *compiler) enter(at Pos) bool {
	if c.depth >= maxInstDepth {
		c.fatal(TooLarge, at, "templates are instantiated more than %d deep", maxInstDepth)
	}
	c.depth++
	return true
}

func (c *compiler) leave() { c.depth-- }

// signature writes a function's declaration for messages.
func (c *compiler) signature(f *funcEnt) string {
	var b strings.Builder
	d := f.decl
	switch {
	case f.lambda != nil:
		b.WriteString("the lambda")
	case f.class != nil:
		b.WriteString(f.class.String() + "::")
	}
	switch d.Kind {
	case FuncConstructor:
		b.WriteString(f.class.name)
	case FuncConversion:
		b.WriteString("operator " + typeText(d.Name.Conv))
	case FuncOperator:
		b.WriteString(operatorKey(d.Name.Operator))
	default:
		if f.lambda == nil {
			b.WriteString(d.Name.Ident)
		}
	}
	b.WriteByte('(')
	for i, p := range d.Params {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(typeText(p.Type))
	}
	b.WriteByte(')')
	return b.String()
}

// typeText writes a type as it stands in the source.
func typeText(t *TypeExpr) string {
	s := ""
	if t.Quals.Space != SpaceNone {
		s += t.Quals.Space.String() + " "
	}
	if t.Quals.Const {
		s += "const "
	}
	switch t.Kind {
	case TypeBasic:
		s += t.Basic
	case TypeNamed:
		s += nameText(t.Name)
		if t.Name.HasArgs {
			var parts []string
			for _, a := range t.Name.Args {
				if a.Type != nil {
					parts = append(parts, typeText(a.Type))
				} else {
					parts = append(parts, exprText(a.X))
				}
			}
			s += "<" + strings.Join(parts, ", ") + ">"
		}
	case TypePointer:
		return typeText(t.Elem) + "*" + strings.TrimSuffix(" "+s, " ")
	case TypeReference:
		return typeText(t.Elem) + "&"
	case TypeArray:
		return typeText(t.Elem) + "[]"
	case TypeAuto:
		s += "auto"
	default:
		s += "..."
	}
	if t.Pack {
		s += "..."
	}
	return s
}

func exprText(x Expr) string {
	switch x := x.(type) {
	case *NameExpr:
		return nameText(x.Name)
	case *IntLit:
		return fmt.Sprint(x.Value)
	case *BoolLit:
		return fmt.Sprint(x.Value)
	}
	return "..."
}

// memberSpec finds the explicit specialisation of a method for its class: template <> void C<float>::f() {...}.
func (c *compiler) memberSpec(inst *funcInst) *memberDef {
	f := inst.f
	if f.class == nil || f.class.args == nil || len(c.members) == 0 {
		return nil
	}
	list := c.members[memberKey{f.class.name, funcKey(f.decl)}]
	for i := range list {
		d := &list[i]
		qual := &d.decl.Name.Quals[len(d.decl.Name.Quals)-1]
		if d.tmpl == nil || !d.tmpl.Spec || !qual.HasArgs || d.decl.Body == nil ||
			len(d.decl.Params) != len(f.decl.Params) || d.decl.Quals.Space != f.decl.Quals.Space {
			continue
		}
		same := false
		if !c.trial(func() {
			n := *d.decl.Name
			n.NamePart, n.Quals = *qual, n.Quals[:len(n.Quals)-1]
			rs := c.resolverIn(d.env)
			if ent := rs.resolveEntity(&n); ent != nil {
				t, ok := rs.entityType(ent, &n)
				same = ok && t.T == f.class.typ
			}
		}) || !same {
			continue
		}
		def := *d
		def.env = inst.env
		return &def
	}
	return nil
}

// definition finds the body of a function that was declared without one: a later definition with the same
// parameters, or one outside the class.
func (c *compiler) definition(inst *funcInst) *memberDef {
	f := inst.f
	name := funcKey(f.decl)
	if f.class != nil {
		for i := range c.members[memberKey{f.class.name, name}] {
			d := &c.members[memberKey{f.class.name, name}][i]
			if len(d.decl.Params) == len(f.decl.Params) && d.decl.Quals.Const == f.decl.Quals.Const &&
				d.decl.Quals.Space == f.decl.Quals.Space && d.decl.Body != nil && !(d.tmpl != nil && d.tmpl.Spec) {
				def := *d
				def.env = inst.env
				return &def
			}
		}
		return nil
	}
	ent := f.env.own(name)
	if ent == nil || ent.kind != eFunc {
		return nil
	}
	for _, o := range ent.funcs {
		if o == f || o.decl.Body == nil || len(o.decl.Params) != len(f.decl.Params) || (o.tmpl == nil) != (f.tmpl == nil) {
			continue
		}
		var same bool
		var other *funcInst
		if !c.trial(func() {
			other = c.chooserIn(o.env).instFor(o, inst.args)
			same = other != nil && sameParams(other, inst)
		}) || !same {
			continue
		}
		return &memberDef{decl: o.decl, tmpl: o.tmpl, env: other.env}
	}
	return nil
}
