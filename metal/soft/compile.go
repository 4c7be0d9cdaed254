package soft

import (
	"context"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/metal/msl"
)

// compileMSL is the Compiler that a Driver has by itself.
func compileMSL(ctx context.Context, src metal.Source) (Text, error) {
	mode := msl.Fast
	switch src.Options.MathMode {
	case metal.MathRelaxed:
		mode = msl.Relaxed
	case metal.MathSafe:
		mode = msl.Safe
	}
	l, err := msl.Load(msl.Source{Name: src.Label, Text: src.Text}, msl.Options{
		Float64: src.Options.Float64, Portable: src.Options.Portable, MathMode: mode,
		Stop: func() error { return context.Cause(ctx) },
	})
	if err != nil {
		return nil, err
	}
	return l, nil
}
