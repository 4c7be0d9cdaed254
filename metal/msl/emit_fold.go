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

// simplify is what the front end itself acts on: a condition that comes to a constant leaves out a branch and its code.
// All other identities are those of metal/kir/opt.
func simplify(op kir.Op, t kir.Type, args []operand) (operand, bool) {
	switch {
	case op == kir.And && t == kir.Bool:
		return boolAnd(args[0], args[1])
	case op == kir.Or && t == kir.Bool:
		return boolOr(args[0], args[1])
	case op == kir.Select && args[0].isConst():
		if args[0].bits != 0 {
			return args[1], true
		}
		return args[2], true
	case (op == kir.Convert || op == kir.Bitcast) && args[0].ty == t:
		return args[0], true
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
