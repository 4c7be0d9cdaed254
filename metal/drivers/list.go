package drivers

import (
	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/metal/soft"
)

// list is the drivers of this system, the preferred one first.
func list() []driver {
	return []driver{
		{"cpu", false, func(o Options, _ int) (metal.Driver, error) {
			return soft.New(soft.Options{Workers: o.Threads}), nil
		}},
	}
}
