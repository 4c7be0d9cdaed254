package drivertest

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/mlxlua/mlxlua/metal"
)

// Library computes routines on a device's memory, as a GPU's libraries do.
type Library interface {
	Offers(metal.Routine) bool
	Call(r metal.Routine, reads, writes [][]byte) error
}

// Products is a library of products of matrices in plain Go. It adds up in the order of depth, each product with one
// rounding, as the portable kernel does with many rows: so results are that kernel's, to the byte.
type Products struct{}

// mostProducts is the most numbers that Products multiplies: one by one that takes about 10 ms.
const mostProducts = 1 << 20

// Offers says yes to products of matrices with rows or columns that lie without gaps between them, and that take not
// too long.
func (Products) Offers(r metal.Routine) bool {
	m, ok := r.(metal.MatMul)
	if !ok || m.M < 1 || m.N < 1 || m.K < 1 || m.Batch < 1 {
		return false
	}
	for _, n := range []int{m.M, m.N, m.K, m.Batch} {
		if n > mostProducts {
			return false
		}
	}
	return m.M*m.N <= mostProducts && m.M*m.N*m.K <= mostProducts && m.M*m.N*m.K*m.Batch <= mostProducts &&
		reaches(m.A, m.M, m.K, m.Batch) >= 0 && reaches(m.B, m.K, m.N, m.Batch) >= 0
}

// reaches is how many elements a batch of rows by cols matrices spans, or -1 where it is none.
func reaches(m metal.Matrix, rows, cols, batch int) int {
	if m.Turned {
		rows, cols = cols, rows
	}
	if m.Lead < cols || m.Step < 0 {
		return -1
	}
	return (batch-1)*m.Step + (rows-1)*m.Lead + cols
}

// Call multiplies.
func (Products) Call(r metal.Routine, reads, writes [][]byte) error {
	m := r.(metal.MatMul)
	if len(reads) != 2 || len(writes) != 1 {
		return fmt.Errorf("[matmul] it reads 2 ranges and writes 1: %d and %d", len(reads), len(writes))
	}
	size := m.Element.Size()
	for i, want := range []int{reaches(m.A, m.M, m.K, m.Batch), reaches(m.B, m.K, m.N, m.Batch), m.Batch * m.M * m.N} {
		if i == 2 {
			size = m.Out().Size()
		}
		if got := len([][]byte{reads[0], reads[1], writes[0]}[i]); got < want*size {
			return fmt.Errorf("[matmul] range %d has %d bytes, the product needs %d", i, got, want*size)
		}
	}
	at := 0
	for batch := range m.Batch {
		for i := range m.M {
			for j := range m.N {
				var sum [2]float64
				for k := range m.K {
					a := element(m.Element, reads[0], batch*m.A.Step+index(m.A, i, k))
					b := element(m.Element, reads[1], batch*m.B.Step+index(m.B, k, j))
					sum = addProduct(m.Element, a, b, sum)
				}
				store(m.Out(), writes[0], at, sum)
				at++
			}
		}
	}
	return nil
}

// index is where element (i, j) of a matrix is.
func index(m metal.Matrix, i, j int) int {
	if m.Turned {
		return m.Lead*j + i
	}
	return m.Lead*i + j
}

// element is element i of b, its imaginary part second.
func element(e metal.Element, b []byte, i int) [2]float64 {
	switch e {
	case metal.Float16:
		return [2]float64{half(binary.LittleEndian.Uint16(b[2*i:]))}
	case metal.BFloat16:
		return [2]float64{single(uint32(binary.LittleEndian.Uint16(b[2*i:])) << 16)}
	case metal.Float64:
		return [2]float64{math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))}
	case metal.Complex64:
		return [2]float64{single(binary.LittleEndian.Uint32(b[8*i:])), single(binary.LittleEndian.Uint32(b[8*i+4:]))}
	}
	return [2]float64{single(binary.LittleEndian.Uint32(b[4*i:]))}
}

func single(bits uint32) float64 { return float64(math.Float32frombits(bits)) }

// half is the number of a float16.
func half(bits uint16) float64 {
	exponent, fraction := int(bits>>10&31), float64(bits&1023)
	v := math.Ldexp(1024+fraction, exponent-25)
	switch {
	case exponent == 0:
		v = math.Ldexp(fraction, -24)
	case exponent == 31 && fraction == 0:
		v = math.Inf(1)
	case exponent == 31:
		v = math.NaN()
	}
	if bits>>15 != 0 {
		return math.Copysign(v, -1)
	}
	return v
}

// store makes element i of b a number, rounded to the nearest.
func store(e metal.Element, b []byte, i int, v [2]float64) {
	bits := math.Float32bits(float32(v[0]))
	switch e {
	case metal.Float16:
		binary.LittleEndian.PutUint16(b[2*i:], toHalf(v[0]))
	case metal.BFloat16:
		if v[0] != v[0] {
			bits = 0x7FC00000
		} else {
			bits += 0x7FFF + bits>>16&1
		}
		binary.LittleEndian.PutUint16(b[2*i:], uint16(bits>>16))
	case metal.Float64:
		binary.LittleEndian.PutUint64(b[8*i:], math.Float64bits(v[0]))
	case metal.Complex64:
		binary.LittleEndian.PutUint32(b[8*i:], bits)
		binary.LittleEndian.PutUint32(b[8*i+4:], math.Float32bits(float32(v[1])))
	default:
		binary.LittleEndian.PutUint32(b[4*i:], bits)
	}
}

// toHalf is a number as a float16.
func toHalf(v float64) uint16 {
	sign := uint16(math.Float64bits(v) >> 63 << 15)
	v = math.Abs(v)
	switch {
	case v != v:
		return 0x7E00
	case v >= 65520:
		return sign | 0x7C00
	}
	exponent := -24 // of the last place
	if v >= 0x1p-14 {
		exponent = math.Ilogb(v) - 10
	}
	places := uint16(math.RoundToEven(math.Ldexp(v, -exponent))) // 2048, where it was rounded up, carries over
	return sign | uint16(exponent+24)<<10 + places
}

// addProduct is sum + a*b in what products of such elements are added up in.
func addProduct(e metal.Element, a, b, sum [2]float64) [2]float64 {
	switch e {
	case metal.Float64:
		return [2]float64{math.FMA(a[0], b[0], sum[0])}
	case metal.Complex64:
		rounded := func(v float64) float64 { return float64(float32(v)) } // of one operation on float32: see below
		re := rounded(rounded(a[0]*b[0]) - rounded(a[1]*b[1]))
		im := rounded(rounded(a[0]*b[1]) + rounded(a[1]*b[0]))
		return [2]float64{rounded(re + sum[0]), rounded(im + sum[1])}
	}
	return [2]float64{fma32(a[0], b[0], sum[0])}
}

// fma32 is a*b + c of float32, rounded once. The product is exact in float64; the sum is rounded there to an odd last
// place where it is not exact, so that rounding it again is as if it had not been.
func fma32(a, b, c float64) float64 {
	p := a * b
	s := p + c
	rest := s - p
	rest = (p - (s - rest)) + (c - rest)
	if bits := math.Float64bits(s); rest != 0 && bits&1 == 0 && !math.IsInf(s, 0) && s == s {
		if (rest > 0) == (s > 0) {
			bits++
		} else {
			bits--
		}
		s = math.Float64frombits(bits)
	}
	return float64(float32(s))
}
