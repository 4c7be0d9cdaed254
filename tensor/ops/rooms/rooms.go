// Package rooms imports every room of the ops, so that all functions that scripts call are declared. Its tests run over
// all of them: golden data, rules, and what a wrong signature would do.
package rooms

import (
	_ "github.com/mlxlua/mlxlua/tensor/ops"              // the core
	_ "github.com/mlxlua/mlxlua/tensor/ops/conv"         // convolutions
	_ "github.com/mlxlua/mlxlua/tensor/ops/fast"         // mx.fast
	_ "github.com/mlxlua/mlxlua/tensor/ops/fft"          // mx.fft
	_ "github.com/mlxlua/mlxlua/tensor/ops/linalg"       // mx.linalg
	_ "github.com/mlxlua/mlxlua/tensor/ops/multivariate" // random.multivariate_normal
	_ "github.com/mlxlua/mlxlua/tensor/ops/products"     // sums of products
	_ "github.com/mlxlua/mlxlua/tensor/ops/quant"        // packed matrices
	_ "github.com/mlxlua/mlxlua/tensor/ops/random"       // mx.random
)
