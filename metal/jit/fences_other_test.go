//go:build !(linux || darwin)

package jit_test

// fenced is memory for a case's buffers, without fences here.
type fenced struct{}

func (*fenced) place(_ uint64, from [][]byte) [][]byte { return clones(from) }
