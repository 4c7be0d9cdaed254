package drivers

import (
	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/metal/cuda"
	"github.com/mlxlua/mlxlua/metal/soft"
)

// list is the drivers of this system, the preferred one first.
func list() []driver {
	return []driver{
		{"cuda", true, func(_ Options, index int) (metal.Driver, error) {
			d, err := cuda.Open(index)
			if err != nil {
				return nil, err // and no driver that is a nil pointer
			}
			return d, nil
		}},
		{"cpu", false, func(o Options, _ int) (metal.Driver, error) {
			return soft.New(soft.Options{Workers: o.Threads}), nil
		}},
	}
}
