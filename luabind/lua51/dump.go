package lua51

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// gopher-lua has no bytecode that can be written and read back: a prototype that was not made by its compiler lacks
// what no other package can set. But it compiles a text to the same functions each time. So string.dump gives the text
// of the chunk with the number of the function in it, and what loads that compiles the text again.

// dumped begins what string.dump gives, as Lua's bytecode begins.
const dumped = "\x1bLuaQ mlxlua\n"

// What prototypes hold is kept as names of calls of no instruction.
const (
	sourceAt = -1 // what the chunk was compiled from: "@" and a file's name, "=" and a name, or the text
	textAt   = -2 // the text, with the function's number below it: the chunk is -2, its first function -3 ...
)

// keepText has the functions of a chunk know its text.
func keepText(chunk *lua.FunctionProto, text string) {
	at := textAt
	eachPrototype(chunk, func(p *lua.FunctionProto) {
		p.DbgCalls = append(slices.Clip(p.DbgCalls), lua.DbgCall{Pc: at, Name: text})
		at--
	})
}

// setSource has the functions of a chunk tell what it was compiled from.
func setSource(chunk *lua.FunctionProto, source string) {
	eachPrototype(chunk, func(p *lua.FunctionProto) {
		p.DbgCalls = append(slices.Clip(p.DbgCalls), lua.DbgCall{Pc: sourceAt, Name: source})
	})
}

// eachPrototype visits a prototype and those in it, in an order that is always the same.
func eachPrototype(p *lua.FunctionProto, visit func(p *lua.FunctionProto)) {
	visit(p)
	for _, inner := range p.FunctionPrototypes {
		eachPrototype(inner, visit)
	}
}

// sourceText is what a function was compiled from: a file, if nobody has said so.
func sourceText(p *lua.FunctionProto) string {
	for _, c := range p.DbgCalls {
		if c.Pc == sourceAt {
			return c.Name
		}
	}
	return "@" + p.SourceName
}

// dump is string.dump.
func dump(s *State, L *lua.LState) int {
	f := L.CheckFunction(1)
	if !f.IsG {
		for _, c := range f.Proto.DbgCalls {
			if c.Pc <= textAt {
				source := sourceText(f.Proto)
				s.Charge(int64(len(c.Name)))
				L.Push(lua.LString(fmt.Sprintf("%s%d %d %d\n%s%s%s", dumped, textAt-c.Pc, len(f.Proto.SourceName), len(source),
					f.Proto.SourceName, source, c.Name)))
				return 1
			}
		}
	}
	s.fail("unable to dump given function")
	return 0
}

// undumped is the function that string.dump was given, with variables of its own.
func undumped(ctx context.Context, s *State, text string) (*lua.LFunction, error) {
	bad := fmt.Errorf("bad binary format: it does not come from string.dump")
	head, rest, _ := strings.Cut(strings.TrimPrefix(text, dumped), "\n")
	var numbers [3]int // of the function, and the lengths of the chunk's name and source
	fields := strings.Fields(head)
	if !strings.HasPrefix(text, dumped) || len(fields) != len(numbers) {
		return nil, bad
	}
	for i, field := range fields {
		n, err := strconv.Atoi(field)
		if err != nil || n < 0 || n > len(text) {
			return nil, bad
		}
		numbers[i] = n
	}
	no, name, source := numbers[0], numbers[1], numbers[2]
	if name+source > len(rest) {
		return nil, bad
	}
	chunk, err := s.Compile(ctx, strings.NewReader(rest[name+source:]), rest[:name])
	if err != nil {
		return nil, err
	}
	setSource(chunk, rest[name:name+source])
	var found *lua.FunctionProto
	eachPrototype(chunk, func(p *lua.FunctionProto) {
		if no == 0 {
			found = p
		}
		no--
	})
	if found == nil {
		return nil, bad
	}
	f := s.L.NewFunctionFromProto(found)
	for i := range f.Upvalues {
		f.Upvalues[i] = &lua.Upvalue{}
		f.Upvalues[i].SetValue(lua.LNil)
	}
	return f, nil
}

// isDumped reports whether a chunk begins as what string.dump gives, and reads it then.
func isDumped(src *bufio.Reader) (text string, is bool, err error) {
	first, err := src.Peek(1)
	if err != nil || first[0] != dumped[0] {
		return "", false, nil
	}
	all, err := io.ReadAll(src)
	return string(all), true, err
}
