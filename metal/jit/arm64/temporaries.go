package arm64

import "github.com/mlxlua/mlxlua/metal/jit/code"

// temporaries are the registers that values without one of their own pass through. What one of them holds serves the
// next instructions that want the same, up to where control may come from elsewhere.
type temporaries struct {
	held [code.NumClasses][3]struct {
		v    code.R // the value, a virtual register, 0 if none
		last int    // the instruction that used it last, of those that took temporaries
	}
	now int
	hot []temporaries // what was held where cold code began, which hot code jumps over
}

// temporariesOf are those of a class.
func temporariesOf(c code.Class) []code.R {
	if c == code.Vec {
		return spillVec
	}
	return spillGPR
}

// begin begins an instruction.
func (t *temporaries) begin() { t.now++ }

// take returns a register for a value in the instruction that begin began, and whether the value is there: it is not
// when it is taken anew. It returns 0 if the instruction has all of them.
func (t *temporaries) take(v code.R) (r code.R, there bool) {
	held := &t.held[v.Class()]
	oldest := 0
	for k := range held {
		if held[k].v == v {
			held[k].last = t.now
			return temporariesOf(v.Class())[k], true
		}
		if held[k].last < held[oldest].last {
			oldest = k
		}
	}
	if held[oldest].last == t.now {
		return 0, false
	}
	held[oldest].v, held[oldest].last = v, t.now
	return temporariesOf(v.Class())[oldest], false
}

// forget forgets all of them.
func (t *temporaries) forget() {
	for c := range t.held {
		for k := range t.held[c] {
			t.held[c][k].v = 0
		}
	}
}

// lost says that the slot of a value was written from another register.
func (t *temporaries) lost(v code.R) {
	held := &t.held[v.Class()]
	for k := range held {
		if held[k].v == v {
			held[k].v = 0
		}
	}
}

// pass says that code has come to a pseudo operation.
func (t *temporaries) pass(op opcode) {
	switch op {
	case place:
		t.forget()
	case coldBegin:
		t.hot = append(t.hot, temporaries{held: t.held})
		t.forget()
	case coldEnd:
		t.held, t.hot = t.hot[len(t.hot)-1].held, t.hot[:len(t.hot)-1]
	}
}
