package lua51

import (
	"errors"

	lua "github.com/yuin/gopher-lua"
)

// YieldAcross begins the messages of yields that cannot be.
const YieldAcross = "attempt to yield across"

// unyielding returns why the function of Go's that L runs, coroutine.yield, cannot suspend L; nil if it can.
//
// A yield gives up the frames of Go between itself and the resume; frames of Lua stay, and the next resume goes on with
// them. So a yield is possible if every frame below it is Lua's and has called the next one by a call instruction.
// Metamethods and iterators of generic loops run in a loop of Go's, which the yield leaves: Lua 5.1 refuses to yield
// there, gopher-lua goes on in the wrong place.
func unyielding(s *State, L *lua.LState) error {
	if L.Parent == nil {
		if s.protected[len(s.protected)-1].thread == L && len(s.protected) > 1 {
			return errors.New(YieldAcross + " a function that is not Lua's")
		}
		return nil // the yield itself says so
	}
	yield := frame{current(L).Elem()}
	for f, ok := yield.parent(); ok; f, ok = f.parent() {
		if f.isGo() {
			return errors.New(YieldAcross + " a function that is not Lua's")
		}
		switch op, _, _, _ := f.instruction(); op {
		case lua.OP_CALL, lua.OP_TAILCALL:
		case lua.OP_TFORLOOP:
			return errors.New(YieldAcross + " the iterator of a loop")
		default:
			return errors.New(YieldAcross + " a metamethod")
		}
	}
	return nil
}
