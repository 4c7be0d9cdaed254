package lua51

import (
	"fmt"
	"weak"

	lua "github.com/yuin/gopher-lua"
)

// Objects have an address as their text: "table: 0xc000123456". Where an object lies depends on what all states of the
// program have made, so a script in a sandbox gets numbers of its own state instead, in the order in which it asks.
type numbered struct {
	last      uint64
	tables    numbers[lua.LTable]
	functions numbers[lua.LFunction]
	threads   numbers[lua.LState]
	userdata  numbers[lua.LUserData]
}

// numbers are objects of a type that have numbers, those that are gone among them until there are many.
type numbers[T any] struct {
	of   map[weak.Pointer[T]]uint64
	many int
}

// fewNumbers is how many numbers are kept before it is asked which objects are gone.
const fewNumbers = 64

// numberedBytes is what a number takes: an entry of a map, twice while that grows, and what stands for the object.
const numberedBytes = 96

// number is an object's number: a new one, for which the state is charged, where it has none.
func number[T any](s *State, ns *numbers[T], object *T) uint64 {
	key := weak.Make(object)
	if n, ok := ns.of[key]; ok {
		return n
	}
	if len(ns.of) >= ns.many {
		for old := range ns.of {
			if old.Value() == nil {
				delete(ns.of, old)
			}
		}
		ns.many = max(2*len(ns.of), fewNumbers)
	}
	s.Charge(numberedBytes)
	if ns.of == nil {
		ns.of = map[weak.Pointer[T]]uint64{}
	}
	s.numbered.last++
	ns.of[key] = s.numbered.last
	return s.numbered.last
}

// bytes is what the numbers take.
func (n *numbered) bytes() int64 {
	return numberedBytes * int64(len(n.tables.of)+len(n.functions.of)+len(n.threads.of)+len(n.userdata.of))
}

// plainly is a value's text without its __tostring.
func plainly(L *lua.LState, v lua.LValue) string {
	s := stateOf(L)
	if s == nil || !s.opt.Sandbox {
		return v.String()
	}
	n := uint64(0)
	switch v := v.(type) {
	case *lua.LTable:
		n = number(s, &s.numbered.tables, v)
	case *lua.LFunction:
		n = number(s, &s.numbered.functions, v)
	case *lua.LState:
		n = number(s, &s.numbered.threads, v)
	case *lua.LUserData:
		n = number(s, &s.numbered.userdata, v)
	default:
		return v.String()
	}
	return fmt.Sprintf("%s: 0x%08x", v.Type(), n)
}
