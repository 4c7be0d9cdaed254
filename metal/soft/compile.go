package soft

import (
	"context"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/metal/msl"
)

// compileMSL is the Compiler that a Driver has by itself. All math modes give the same bits; what a text sees of its
// own is Clang's macro.
func compileMSL(ctx context.Context, src metal.Source) (Text, error) {
	var defines []msl.Define
	if src.Options.MathMode == metal.MathFast {
		defines = append(defines, msl.Define{Name: "__FAST_MATH__", Text: "1"})
	}
	l, err := msl.Load(msl.Source{Name: src.Label, Text: src.Text}, msl.Options{
		Float64: src.Options.Float64, Portable: src.Options.Portable, Defines: defines,
		Stop: func() error { return context.Cause(ctx) },
	})
	if err != nil {
		return nil, err
	}
	return l, nil
}
