// Package kernelgen prints kernels: a typed expression DAG becomes MSL text (element-wise, reduce, copy). It is the
// only kernel printer; eager, fused and compiled evaluation all print through it, so they cannot disagree.
package kernelgen

// Reducer is a reduction in MSL expressions. In Load, $0 is the element and $i its index along the reduced axes in
// row-major order (a ulong); in Combine, $0 and $1 are accumulators; in Finish, $0 is the accumulator. Combine
// must be associative up to rounding and commutative, and combining with Init must change nothing. Next, if not
// empty, is what Combine is where all elements in $1 come after those in $0. Down, if not empty, is the
// accumulator $0 of the lane $1 above, for types that MSL passes from lane to lane in parts only.
type Reducer struct {
	Acc     string // MSL type of the accumulator
	Header  string // MSL text that defines Acc and helpers, if they are not built in; "" if none
	Init    string
	Load    string
	Next    string
	Combine string
	Finish  string
	Down    string
}
