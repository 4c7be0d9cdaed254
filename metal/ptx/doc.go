// Package ptx prints kir kernels as PTX text, which NVIDIA's driver compiles. It opens nothing: what a driver must know
// to launch a printed kernel is data beside the text (Layout, Control).
//
// A thread of a kernel is a thread of the card, a SIMD-group is a warp, a threadgroup is a block of one dimension whose
// size is rounded up to whole warps. Results are kir's to the bit, but for what README.md lists.
package ptx
