package msl

import "github.com/mlxlua/mlxlua/metal/kir"

// CompileRaw is Compile without the cleaning of kernels: what they mean, as the front end wrote it.
func CompileRaw(src Source, opt Options) (*kir.Module, error) { return compileWhole(src, opt, true) }
