// Package regalloc chooses registers. What it needs of a processor is the Func interface.
//
// From the flow of control it finds where each virtual register is live: a list of ranges of positions, with
// holes. In order of their first positions, virtual registers take a register that is free in all their ranges,
// preferably that of what they are copied from or to. If there is none, those that cost less give up theirs.
// What has no register has a slot of the frame all its life (the processor's package moves it through scratch
// registers), or, if the instruction that makes it can be repeated at each use, nothing.
package regalloc
