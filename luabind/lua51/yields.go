package lua51

import (
	"errors"
	"reflect"

	lua "github.com/yuin/gopher-lua"
)

// opcodeShift is where gopher-lua keeps an instruction's operation: the highest 6 of its 32 bits.
const opcodeShift = 26

// unyielding returns why the function of Go's that L runs, coroutine.yield, cannot suspend L; nil if it can.
//
// A yield gives up the frames of Go between itself and the resume; frames of Lua stay, and the next resume goes on with
// them. So a yield is possible if every frame below it is Lua's and has called the next one by a call instruction.
// Metamethods and iterators of generic loops run in a loop of Go's, which the yield leaves: Lua 5.1 refuses to yield
// there, gopher-lua goes on in the wrong place.
//
// The frames are gopher-lua's own, which its API shows one at a time and counts from the top: this reads them in place,
// once each.
func unyielding(L *lua.LState) error {
	if L.Parent == nil {
		return nil // the yield itself says so
	}
	frame := reflect.ValueOf(L).Elem().FieldByName("currentFrame")
	for frame = frame.Elem().FieldByName("Parent"); !frame.IsNil(); frame = frame.Elem().FieldByName("Parent") {
		fn := frame.Elem().FieldByName("Fn").Elem()
		if fn.FieldByName("IsG").Bool() {
			return errors.New("attempt to yield across a function that is not Lua's")
		}
		pc := frame.Elem().FieldByName("Pc").Int() // of the instruction behind the one that runs
		code := fn.FieldByName("Proto").Elem().FieldByName("Code")
		switch int(code.Index(int(pc)-1).Uint() >> opcodeShift) {
		case lua.OP_CALL, lua.OP_TAILCALL:
		case lua.OP_TFORLOOP:
			return errors.New("attempt to yield across the iterator of a loop")
		default:
			return errors.New("attempt to yield across a metamethod")
		}
	}
	return nil
}
