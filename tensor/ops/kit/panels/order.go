package panels

import _ "embed"

// Order is how the products of an element are added up. Kernels of one order give the same bytes: which of them makes a
// product may depend on the device, its order may not. The zero Order is that of depth, one after the other.
type Order struct {
	// Lanes: the lanes of a SIMD-group share an element. Lane l adds up the places l, l + 32, ... along depth in their
	// order, then the lanes are added.
	Lanes bool
	// Runs, if not 0, is how many runs depth is cut into, a power of two. Each is added up in order, then the sums of
	// two halves of them are added, again and again.
	Runs int
}

// DotMSL is dot, the sum of products that kernels of any order are compared with, for kernels whose variants have
// Elements and an Order.
//
//go:embed dot.metal
var DotMSL string
