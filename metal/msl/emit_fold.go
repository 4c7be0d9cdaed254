package msl

import (
	"github.com/mlxlua/mlxlua/metal/kir"
)

// fold computes an operation on constants by kir's semantics.
func fold(op kir.Op, t kir.Type, args []operand) (operand, bool) {
	var raw [3]uint64
	for i, a := range args {
		raw[i] = a.bits
	}
	at := args[0].ty
	if op == kir.Select {
		at = args[1].ty
	}
	bits, ok := kir.Eval(op, t, at, raw[:len(args)]...)
	return operand{ty: t, bits: bits}, ok
}

// simplify applies identities that hold for every operand, NaNs and signed zeros included.
func simplify(op kir.Op, t kir.Type, args []operand) (operand, bool) {
	isInt := t.IsInt()
	switch op {
	case kir.Add, kir.Or, kir.Xor:
		if isInt && isZero(args[1]) {
			return args[0], true
		}
		if isInt && isZero(args[0]) {
			return args[1], true
		}
		if t == kir.Bool && op == kir.Or {
			return boolOr(args[0], args[1])
		}
	case kir.Sub, kir.Shl, kir.Shr:
		if isInt && isZero(args[1]) {
			return args[0], true
		}
	case kir.Mul:
		if isInt && isOne(args[1]) {
			return args[0], true
		}
		if isInt && isOne(args[0]) {
			return args[1], true
		}
		if isInt && (isZero(args[0]) || isZero(args[1])) {
			return operand{ty: t}, true
		}
	case kir.Div:
		if isInt && isOne(args[1]) {
			return args[0], true
		}
	case kir.And:
		if t == kir.Bool {
			return boolAnd(args[0], args[1])
		}
	case kir.Not:
		if in := args[0].in; in != nil && in.Op == kir.Not {
			return operand{in: in.Args[0], ty: t}, true
		}
	case kir.Select:
		if args[0].isConst() {
			if args[0].bits != 0 {
				return args[1], true
			}
			return args[2], true
		}
		if args[1] == args[2] {
			return args[1], true
		}
	case kir.Convert, kir.Bitcast:
		if args[0].ty == t {
			return args[0], true
		}
	}
	return operand{}, false
}

func boolAnd(a, b operand) (operand, bool) {
	switch {
	case isZero(a), isOne(b):
		return a, true
	case isZero(b), isOne(a):
		return b, true
	}
	return operand{}, false
}

func boolOr(a, b operand) (operand, bool) {
	switch {
	case isOne(a), isZero(b):
		return a, true
	case isOne(b), isZero(a):
		return b, true
	}
	return operand{}, false
}
