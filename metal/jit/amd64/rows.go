package amd64

import "github.com/mlxlua/mlxlua/metal/jit/code"

var noRow row

// rowOf returns an opcode's row, an empty one for numbers that are no opcode.
func rowOf(op code.Opcode) *row {
	switch n := int(op); {
	case n < len(general):
		return &general[n]
	case n < len(floats):
		return &floats[n]
	case n < len(integers):
		return &integers[n]
	case n < len(moves):
		return &moves[n]
	}
	return &noRow
}

// broadcastSize returns how many bytes of a memory operand the instruction can read for all lanes, 0 if it cannot.
func broadcastSize(i *code.Inst) int { return rowOf(i.Op).enc.bcast() }
