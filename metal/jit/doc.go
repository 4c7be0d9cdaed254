// Package jit compiles kernels to machine code: amd64 with AVX-512 or AVX2. Prepare readies a kernel, and its launches
// behave as the interpreter's (package interp), byte for byte, faults included. README.md tells how it is done.
package jit
