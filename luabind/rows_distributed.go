package luabind

import (
	"slices"

	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/luabind/lua51"
)

// group is a group of processes that work together: this one alone, since there is no communication backend. Scripts
// that are written for several processes run with it.
type group struct{}

const groupKind = "group"

// backends are the names that init and is_available take.
var backends = []string{"any", "jaccl", "mpi", "nccl", "ring"}

// distributedRows are the functions of mx.distributed.
var distributedRows = append([]row{
	{name: "distributed.init", sig: "strict:bool=false backend:string=any all_gather_factory:any?", host: true,
		help: "The group of processes that work together. There is no communication backend, so it has this process " +
			"alone: g:rank() is 0, g:size() is 1, and g:split(color, key) is such a group again. With strict it is an error.",
		call: func(a *args) any {
			switch backend := a.Text(1); {
			case !slices.Contains(backends, backend):
				a.fail("backend is %s, want one of \"any\", \"jaccl\", \"mpi\", \"nccl\" and \"ring\"", quote(backend))
			case a.raw[2] != lua.LNil && backend != "jaccl":
				a.fail("all_gather_factory is for the backend \"jaccl\" alone, and backend is %s", quote(backend))
			case a.Bool(0):
				a.fail("there is no backend %s, and strict asks for one", quote(backend))
			}
			return a.s.userdata(groupKind, group{})
		}},
	{name: "distributed.is_available", sig: "backend:string=any", host: true,
		help: "Whether there is a communication backend of that name, or one at all: there is none.",
		call: func(*args) any { return false }},
	{name: "distributed.send", sig: "x dst:int group:value?",
		help: "Sends x to the process of rank dst. It is an error: the group is this process alone.",
		call: func(a *args) any { a.groupArg(2); a.fail("a group of one process has nobody to send to"); return nil }},
	{name: "distributed.recv", sig: "shape:shape dtype:dtype src:int group:value?",
		help: "An array that the process of rank src sends. It is an error: the group is this process alone.",
		call: func(a *args) any {
			a.groupArg(3)
			a.fail("a group of one process has nobody to receive from")
			return nil
		}},
	{name: "distributed.recv_like", sig: "x src:int group:value?",
		help: "An array of x's shape and dtype that the process of rank src sends. It is an error: the group is this " +
			"process alone.",
		call: func(a *args) any {
			a.groupArg(2)
			a.fail("a group of one process has nobody to receive from")
			return nil
		}},
},
	collective("all_sum", "The sum of the x of all processes in the group"),
	collective("all_max", "The maximum of the x of all processes in the group, element by element"),
	collective("all_min", "The minimum of the x of all processes in the group, element by element"),
	collective("all_gather", "The x of all processes in the group, one behind the other along axis 0"),
	collective("sum_scatter", "This process's share along axis 0 of the sum of the x of all processes in the group"),
)

// collective is a function that combines the arrays of all processes: of one process it is the identity.
func collective(name, help string) row {
	return row{name: "distributed." + name, sig: "x group:value?",
		help: help + ": x itself, since the group is this process alone.",
		call: func(a *args) any {
			a.groupArg(1)
			return a.Array(0)
		}}
}

// groupArg checks that argument i is a group, or left out.
func (a *args) groupArg(i int) {
	if _, ok := unwrap[group](a.raw[i]); !ok && a.raw[i] != lua.LNil && a.raw[i] != lua.LFalse {
		a.fail("%s is %s, want a group of mx.distributed.init", a.f.params[i].Name, describe(a.raw[i]))
	}
}

// openGroups makes the metatable of groups.
func openGroups(s *State) {
	mt := s.meta(groupKind)
	s.setToString(mt, groupKind)
	methods := s.NewTable(0, 1)
	mt.RawSetString("__index", methods)
	method := func(name string, numbers int, call func() lua.LValue) {
		s.method(methods, groupObject, name, func(L *lua.LState) int {
			args := lua51.Args(L)
			if len(args) < 1+min(numbers, 1) {
				s.raise(s.call().Errorf(name, "color is missing"))
			}
			for i, v := range args[1:] {
				if _, err := toInt(v); err != nil && i < numbers {
					s.raise(s.call().Errorf(name, "%s %w", []string{"color", "key"}[i], err))
				}
			}
			L.Push(call())
			return 1
		})
	}
	method("rank", 0, func() lua.LValue { return lua.LNumber(0) })
	method("size", 0, func() lua.LValue { return lua.LNumber(1) })
	method("split", 2, func() lua.LValue { return s.userdata(groupKind, group{}) })
}
