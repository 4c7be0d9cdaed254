package luabind

import (
	"weak"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
)

// scopes are the calls of mx.scope under way, outermost first.
type scopes []*scope

// scope is a call of mx.scope under way. It notes the arrays that are made meanwhile, and does not keep them alive.
type scope struct {
	since uint64 // arrays of nodes up to this one were there before
	made  []weak.Pointer[tensor.Array]
	kept  map[tensor.Value]bool
}

// scopeRows are the functions that give memory back by block.
var scopeRows = []row{
	{name: "scope", sig: "f:any", help: "Calls f and gives its results. The arrays that f made and neither returned " +
		"(also in tables) nor passed to mx.keep are freed then, as by x:free(), also after an error; later use of one is " +
		"an error that names where it was made. In a function that is being traced nothing is freed.",
		call: scopeCall, through: true},
	{name: "keep", sig: "t:any", help: "Keeps the arrays of a tree, which it returns, beyond the end of the mx.scope " +
		"that runs; a scope around that one decides anew.", call: func(a *args) any {
		if sc := a.s.scopes.inner(); sc != nil {
			sc.keep(a.s.arraysIn("keep", a.raw))
		}
		return a.raw[0]
	}},
}

func (sc *scope) keep(xs []*tensor.Array) {
	for _, x := range xs {
		sc.kept[x.Value()] = true
	}
}

// inner is the scope that runs: nil for none.
func (o scopes) inner() *scope {
	if len(o) == 0 {
		return nil
	}
	return o[len(o)-1]
}

// watch notes an array that a script gets to see if it was made in the scope that runs.
func (o scopes) watch(x *tensor.Array) {
	if sc := o.inner(); sc != nil && x.Value().Node.ID() > sc.since {
		sc.note(x)
	}
}

// note notes an array for the end of the scope that runs.
func (o scopes) note(x *tensor.Array) {
	if sc := o.inner(); sc != nil {
		sc.note(x)
	}
}

// note notes an array for the scope's end.
func (sc *scope) note(x *tensor.Array) { sc.made = append(sc.made, weak.Make(x)) }

// scopeCall is mx.scope(f).
func scopeCall(a *args) any {
	s, fn := a.s, a.callable(0)
	since := ops.Number(0, tensor.Float32).Value().Node.ID()
	sc := &scope{since: since, kept: map[tensor.Value]bool{}}
	s.scopes = append(s.scopes, sc)
	defer s.scopes.end(len(s.scopes)-1, a.Ctx)
	out := s.results(fn)
	sc.keep(s.arraysIn("scope", out))
	return out
}

// end ends the scopes from depth on and frees what was made in them.
func (o *scopes) end(depth int, c *tensor.Ctx) {
	ended := (*o)[depth:]
	*o = (*o)[:depth]
	var made []*tensor.Array
	traced, kept := false, ended[0].kept
	for _, sc := range ended {
		for _, w := range sc.made {
			if x := w.Value(); x != nil {
				made = append(made, x)
				traced = traced || tensor.Traced(x)
			}
		}
	}
	clear(ended)
	for _, x := range made {
		if traced || kept[x.Value()] {
			o.watch(x) // now it is up to the scope around
		} else {
			x.Free(c)
		}
	}
}
