// Package linalg is the linear algebra that runs on the host, in float64: decompositions and inverses of batches of
// matrices.
package linalg

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/mlxlua/mlxlua/tensor"
)

// square is the Shape rule of an op from square matrices to ones of the same size.
func square(in []tensor.Spec, _ tensor.None, outs []tensor.Shape) ([]tensor.Shape, error) {
	s := in[0].Shape
	if n := len(s); n < 2 || s[n-1] != s[n-2] {
		return nil, fmt.Errorf("want square matrices, not an array of shape %v", s)
	}
	return append(outs, s), nil
}

// realDType is the DType rule of ops that take float32 and float64.
func realDType(in []tensor.Spec, _ tensor.None, outs []tensor.DType) ([]tensor.DType, error) {
	if d := in[0].DType; d != tensor.Float32 && d != tensor.Float64 {
		return nil, fmt.Errorf("does not take dtype %v, want float32 or float64", d)
	}
	return append(outs, in[0].DType), nil
}

// eachMatrix calls f with each matrix of input 0 as n rows of n numbers, which f changes into the result's.
func eachMatrix(h *tensor.HostCall, f func(i, n int, a []float64) error) error {
	s, d := h.In[0].Shape, h.In[0].DType
	n := s[len(s)-1]
	if n == 0 {
		return nil
	}
	a := make([]float64, n*n)
	size := n * n * d.Size()
	for i := range s.Size() / (n * n) {
		if err := h.Context().Err(); err != nil {
			return err
		}
		load(a, h.In[0].Bytes[i*size:], d)
		if err := f(i, n, a); err != nil {
			return err
		}
		store(h.Out[0].Bytes[i*size:], a, d)
	}
	return nil
}

func load(a []float64, b []byte, d tensor.DType) {
	for i := range a {
		if d == tensor.Float64 {
			a[i] = math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
		} else {
			a[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:])))
		}
	}
}

func store(b []byte, a []float64, d tensor.DType) {
	for i, v := range a {
		if d == tensor.Float64 {
			binary.LittleEndian.PutUint64(b[8*i:], math.Float64bits(v))
		} else {
			binary.LittleEndian.PutUint32(b[4*i:], math.Float32bits(float32(v)))
		}
	}
}
