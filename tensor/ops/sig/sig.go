// Package sig is the registry of the functions that scripts call. A room declares each of its functions beside the Go
// function, with Def: its name, its parameters in one line of text, and how a call reads them. What a script may write,
// help(), the manual, the comparison with MLX's own parameters and the tests of all functions are derived from that.
//
// A signature is a list of parameters between spaces:
//
//	a shift:ints axis:axes? mode:'constant'|'edge'=constant arrays:array...
//
// A parameter is a name, after a colon its kinds (array where none is given; see Kind) or words in quotes, between bars
// where it takes several; after that "..." if it takes any number of arguments; and in the end ? if it may be left out,
// or = and a default. Parameters behind one with "..." are given by keyword only, unless that one is a list (a shape,
// axes): those may be written without a table, as the last arguments. Nothing in this package knows Lua.
package sig

import (
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/mlxlua/mlxlua/tensor"
)

// Func is a function that scripts call.
type Func struct {
	// Name is the function's name in mx: "softmax", "random.normal".
	Name   string
	Params []Param
	// Call makes the result of a call whose arguments are converted: an array or an error that says what is wrong, nil
	// for none, a bool, an int, a float64, a string or a dtype, a tensor.Shape, a []*tensor.Array for several results, a
	// Table for a list of arrays, Lists for a list of lists of integers, Several for results of several kinds.
	Call func(a *Args) any
	// Alias is the name of the function that this one is a second name of, or "".
	Alias string
	// Room is the name of the package that declares the function: "ops", "linalg".
	Room string
	// Doc is the Go function whose comment is the help, "Concatenate" or "linalg.Norm"; "": the one whose name is Name
	// but for upper case and underscores.
	Doc string
	// Same are faults of the signature that would not change what calls give, and why: "a and b swapped", "the default of
	// precise". Others, the tests demand, are found by a golden call.
	Same map[string]string
	// Overloaded says that one argument alone, by position, is the second parameter: arange(5). The first one's name is
	// no name for it.
	Overloaded bool

	elementwise bool
}

// Table is a list of arrays as one result.
type Table []*tensor.Array

// Lists is a list of lists of integers as one result.
type Lists [][]int

// Several are results of several kinds, each as Func.Call says.
type Several []any

var funcs = map[string]*Func{}

// Option says something about a function that its signature does not.
type Option func(f *Func)

// Doc names the Go function whose comment is the help, if it is not named like the function.
func Doc(name string) Option { return func(f *Func) { f.Doc = name } }

// Overloaded says that one argument alone, by position, is the second parameter.
func Overloaded(f *Func) { f.Overloaded = true }

// Same says that a fault of the signature would not change what calls give: see Func.
func Same(fault, why string) Option {
	return func(f *Func) {
		if f.Same == nil {
			f.Same = map[string]string{}
		}
		f.Same[fault] = why
	}
}

// Commutative says that the operands a and b may change places.
func Commutative(f *Func) { Same("a and b swapped", "it is commutative")(f) }

// Def declares a function of mx, for a variable or an init function of its room. It panics if the signature is wrong or
// the name is taken: signatures are part of the program.
func Def(name, signature string, call func(a *Args) any, options ...Option) *Func {
	f := &Func{Name: name, Params: MustParse(signature), Call: call}
	for _, p := range f.Params {
		if !p.Go() {
			panic(fmt.Sprintf("BUG: sig: %s: only the binding knows the kind of %s", name, p.Name))
		}
	}
	for _, o := range options {
		o(f)
	}
	return add(f)
}

// Alias declares a second name of a function, which may be declared later.
func Alias(name, of string) *Func { return add(&Func{Name: name, Alias: of}) }

func add(f *Func) *Func {
	if funcs[f.Name] != nil {
		panic("BUG: sig: " + f.Name + " is declared twice")
	}
	f.Room = room()
	funcs[f.Name] = f
	return f
}

// room is the name of the package that calls this one.
func room() string {
	var pcs [8]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	for more := true; more; {
		var frame runtime.Frame
		frame, more = frames.Next()
		path := frame.Function // a package's path, a dot, and what is in it
		name, _, _ := strings.Cut(path[strings.LastIndexByte(path, '/')+1:], ".")
		if name != "sig" {
			return name
		}
	}
	return ""
}

// Lookup is the function of that name with an alias's parameters and call filled in, or nil.
func Lookup(name string) *Func {
	f := funcs[name]
	if f != nil && f.Alias != "" && f.Call == nil {
		of := funcs[f.Alias]
		if of == nil || of.Alias != "" {
			panic("BUG: sig: " + name + " is a second name of " + f.Alias + ", which is no function")
		}
		f.Params, f.Call, f.Doc = of.Params, of.Call, of.Doc
	}
	return f
}

// Elementwise reports whether the function was declared by Unary or Binary.
func (f *Func) Elementwise() bool {
	if f.Alias != "" {
		return Lookup(f.Alias).Elementwise()
	}
	return f.elementwise
}

// All are the functions of all rooms that the program imports, sorted by name. Nobody may change them.
func All() []*Func {
	out := make([]*Func, 0, len(funcs))
	for name := range funcs {
		out = append(out, Lookup(name))
	}
	slices.SortFunc(out, func(a, b *Func) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// Unary declares an element-wise function of one array.
func Unary(name string, f func(*tensor.Array, ...*tensor.Ctx) *tensor.Array, options ...Option) *Func {
	d := Def(name, "a", func(a *Args) any { return f(a.Array(0), a.Ctx) }, options...)
	d.elementwise = true
	return d
}

// Binary declares an element-wise function of two operands.
func Binary(name string, f func(x, y *tensor.Array, c ...*tensor.Ctx) *tensor.Array, options ...Option) *Func {
	d := Def(name, "a:operand b:operand", func(a *Args) any { return f(a.Array(0), a.Array(1), a.Ctx) }, options...)
	d.elementwise = true
	return d
}

// Reduce declares a reduction along axes, all if none are given.
func Reduce(name string, f func(*tensor.Array, []int, bool, ...*tensor.Ctx) *tensor.Array, options ...Option) *Func {
	return Def(name, "a axis:axes? keepdims:bool=false", func(a *Args) any {
		return f(a.Array(0), a.Ints(1), a.Bool(2), a.Ctx)
	}, options...)
}
