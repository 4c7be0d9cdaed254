package lua51

import (
	lua "github.com/yuin/gopher-lua"
)

// variable is what a program calls a value: the field 'x', say. Its kind is "" where it calls it nothing.
type variable struct{ kind, name string }

// variableIn finds what a program calls the value in a register before an instruction: a local variable, or what the
// last instruction has read that set the register. It goes as Lua 5.1's ldebug.c does: it follows jumps ahead.
func variableIn(p *lua.FunctionProto, register, before int) variable {
	if name := localIn(p, register, before); name != "" && name[0] != '(' { // which no program has written
		return variable{"local", name}
	}
	return setIn(p, register, before)
}

// localIn is the name of the local variable that a register is at an instruction, or "".
func localIn(p *lua.FunctionProto, register, at int) string {
	for _, l := range p.DbgLocals {
		if l.StartPc < at && at < l.EndPc {
			if register == 0 {
				return l.Name
			}
			register--
		}
	}
	return ""
}

// setIn finds what the instruction reads that has set a register before another, where only one may be the last to do
// so.
func setIn(p *lua.FunctionProto, register, before int) variable {
	last := -1
	for pc := 0; pc < before; pc++ {
		in := decode(p.Code[pc])
		if in.sets(register) {
			last = pc
		}
		switch in.op {
		case lua.OP_JMP, lua.OP_FORLOOP, lua.OP_FORPREP:
			for to := pc + 1 + in.jump; pc+1 < to && to <= before; pc++ {
				if decode(p.Code[pc+1]).sets(register) {
					last = -1
				}
			}
		case lua.OP_CLOSURE: // the next instructions name its upvalues
			pc += int(p.FunctionPrototypes[in.bx].NumUpvalues)
		case lua.OP_SETLIST:
			if in.c == 0 { // the next is a number
				pc++
			}
		}
	}
	if last < 0 {
		return variable{}
	}
	in := decode(p.Code[last])
	switch in.op {
	case lua.OP_GETGLOBAL:
		return variable{"global", p.Constants[in.bx].String()}
	case lua.OP_MOVE, lua.OP_MOVEN:
		if in.b < in.a {
			return variableIn(p, in.b, last)
		}
	case lua.OP_GETTABLE, lua.OP_GETTABLEKS:
		return variable{"field", keyText(p, in, last)}
	case lua.OP_GETUPVAL:
		if in.b < len(p.DbgUpvalues) {
			return variable{"upvalue", p.DbgUpvalues[in.b]}
		}
	case lua.OP_SELF:
		if register == in.a {
			return variable{"method", keyText(p, in, last)}
		}
	case lua.OP_CALL:
		if was := passed(p, register, last); in.a == register && was >= 0 {
			return variableIn(p, was, last)
		}
	}
	return variable{}
}

// keyText is the key of a field that an instruction reads if the program has written it as a name, or as a text; else
// it is "?".
func keyText(p *lua.FunctionProto, in instruction, at int) string {
	key := constantOf(p, in.c)
	if key == nil && in.op != lua.OP_GETTABLE { // it has been put into a register just before
		for pc := at - 1; pc >= 0 && key == nil; pc-- {
			if load := decode(p.Code[pc]); load.op == lua.OP_LOADK && load.a == in.c {
				key = p.Constants[load.bx]
			}
		}
	}
	if text, ok := key.(lua.LString); ok {
		return string(text)
	}
	return "?"
}

// constantOf is the constant that an operand is; nil: it is a register.
func constantOf(p *lua.FunctionProto, operand int) lua.LValue {
	const constant = 1 << 8
	if operand&constant == 0 || operand&^constant >= len(p.Constants) {
		return nil
	}
	return p.Constants[operand&^constant]
}

// instruction is one that is decoded.
type instruction struct{ op, a, b, c, bx, jump int }

func decode(code uint32) instruction {
	bx := int(code & 0x3ffff)
	return instruction{op: int(code >> 26), a: int(code>>18) & 0xff, b: int(code & 0x1ff), c: int(code>>9) & 0x1ff,
		bx: bx, jump: bx - 0x1ffff}
}

// sets reports whether an instruction sets a register.
func (in instruction) sets(register int) bool {
	switch in.op {
	case lua.OP_SETGLOBAL, lua.OP_SETUPVAL, lua.OP_SETTABLE, lua.OP_SETTABLEKS, lua.OP_JMP, lua.OP_EQ, lua.OP_LT,
		lua.OP_LE, lua.OP_TEST, lua.OP_RETURN, lua.OP_SETLIST, lua.OP_CLOSE, lua.OP_NOP:
		return false
	case lua.OP_LOADNIL:
		return in.a <= register && register <= in.b
	case lua.OP_CALL, lua.OP_TAILCALL:
		return register >= in.a
	case lua.OP_TFORLOOP:
		return register >= in.a+2
	case lua.OP_VARARG:
		return register >= in.a && (in.b == 0 || register < in.a+in.b-1)
	case lua.OP_SELF:
		return register == in.a || register == in.a+1
	case lua.OP_FORLOOP, lua.OP_FORPREP:
		return register == in.a || register == in.a+3
	}
	return register == in.a
}

// calledBy is what the call that is under way in a frame calls the function: nothing where the frame is Go's, or the
// function that of a metamethod.
func calledBy(L *lua.LState, f frame) variable {
	if f.isGo() {
		return variable{}
	}
	p := functionOf(L, f).Proto
	pc := f.pc()
	switch in := decode(p.Code[pc]); in.op {
	case lua.OP_TFORLOOP:
		return variable{"local", "(for generator)"}
	case lua.OP_CALL, lua.OP_TAILCALL: // the function is in a register that no variable has, though one may begin there
		return setIn(p, in.a, pc)
	}
	return variable{}
}

// functionOf is the function of a frame of a thread.
func functionOf(L *lua.LState, f frame) *lua.LFunction {
	no := 0 // as GetStack counts
	for g, ok := frameIn(current(L)); ok && g.depth() > f.depth(); g, ok = g.parent() {
		no++
		if !g.isGo() {
			no += g.tailCalls()
		}
	}
	return functionAt(L, no)
}

// functionAt is the function of a thread's frame by its number.
func functionAt(L *lua.LState, no int) *lua.LFunction {
	dbg, ok := L.GetStack(no)
	if !ok {
		return nil
	}
	fn, err := L.GetInfo("f", dbg, lua.LNil)
	if err != nil {
		return nil
	}
	f, _ := fn.(*lua.LFunction)
	return f
}
