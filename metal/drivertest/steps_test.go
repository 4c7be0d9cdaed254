package drivertest

import (
	"slices"

	"github.com/mlxlua/mlxlua/metal"
)

// defectsOfSteps are those of drivers that keep forms of steps.
func defectsOfSteps() []defect {
	return []defect{
		{"a step's first memory again and again", "steps", func() wrong {
			var first []metal.Range
			return wrong{Fake: model(), submit: func(f *Fake, _ int, cb *metal.CommandBuffer, done func(metal.Result)) {
				parts := slices.Clone(cb.Parts())
				for i := range parts {
					if first == nil {
						first = parts[i].Slots
					}
					parts[i].Slots = first
				}
				for _, c := range made(cb.Commands(), parts) {
					_ = f.command(cb.Context(), c)
				}
				done(metal.Result{})
			}}
		}},
	}
}
