// Package jit compiles kernels to machine code: amd64 with AVX-512 or AVX2. Prepare readies a kernel, and its
// launches behave as the interpreter's (package interp), byte for byte, but for the payloads of NaNs: whether a
// signalling NaN of float16 that only passes through is quieted is open too.
//
// A launch faults where the interpreter's does, with an error of the same form. If several accesses are wrong, the
// error is that of the first threadgroup with one, on any number of workers; where threadgroups may wait for each
// other (loops with atomics) it is the one that came first in time. Within a threadgroup it is the first one in
// the order of execution, which differs: the interpreter runs 32 lanes at a time to their end or to the next
// barrier, machine code 8, 16 or 32. So when one instruction is wrong in a kernel without loops both report its
// first lane, and when several are, each reports one of them. What a launch that faults has written is undefined.
//
// README.md tells how it is done.
package jit
