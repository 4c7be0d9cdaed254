// Package regalloc chooses registers: linear scan over intervals of one list of instructions. What it needs of a
// processor is the Func interface.
//
// A virtual register lives from the first instruction that names it to the last one; where it is older than a
// loop that names it, to that loop's end. It has one place all that time: a register, or a slot of the frame
// (then the processor's package moves it through scratch registers), or none if the instruction that makes it
// can be repeated at each use.
package regalloc
