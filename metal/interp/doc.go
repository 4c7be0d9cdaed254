// Package interp executes kir kernels as they are: the oracle of other executors, and the fallback where there is
// none.
//
// The unit of execution is one SIMD-group of 32 lanes under a mask. Prepare flattens a kernel into a list of
// instructions that each work on 32 lanes in typed registers; control flow moves lanes between masks, and an
// instruction runs only while a lane is active. Every memory access is checked; what a kernel does wrong is a
// *launch.Fault.
//
// SIMD-groups of a threadgroup run one after another, each until it waits at a barrier; when all wait that have not
// ended, all go on. Loops that contain atomics may wait for other threadgroups, so they give up their turn after a
// while, and threadgroups of one launch then take turns.
package interp
