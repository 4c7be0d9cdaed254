package soft

import (
	"context"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/metal/msl"
)

// compileMSL is the Compiler that a Driver has by itself. All math modes give the same bits, so the source's is not
// handed on.
func compileMSL(ctx context.Context, src metal.Source) (Text, error) {
	l, err := msl.Load(msl.Source{Name: src.Label, Text: src.Text}, msl.Options{
		Float64: src.Options.Float64, Portable: src.Options.Portable,
		Stop: func() error { return context.Cause(ctx) },
	})
	if err != nil {
		return nil, err
	}
	return l, nil
}
