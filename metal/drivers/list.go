package drivers

import (
	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/metal/apple"
	"github.com/mlxlua/mlxlua/metal/cuda"
	"github.com/mlxlua/mlxlua/metal/soft"
)

// list is the drivers of this system, the preferred one first.
func list() []driver {
	return []driver{
		{name: "cuda", many: true, open: func(_ Options, index int) (metal.Driver, error) {
			d, err := cuda.Open(index)
			if err != nil {
				return nil, err // and no driver that is a nil pointer
			}
			return d, nil
		}},
		{name: "metal", unchecked: true, open: func(Options, int) (metal.Driver, error) { return openMetal() },
			auto: func() (metal.Driver, error) { return trusted(notePath, openMetal) }},
		{name: "cpu", open: func(o Options, _ int) (metal.Driver, error) {
			return soft.New(soft.Options{Workers: o.Threads}), nil
		}},
	}
}

// openMetal opens a Mac's GPU.
func openMetal() (metal.Driver, error) {
	d, err := apple.Open()
	if err != nil {
		return nil, err
	}
	return d, nil
}
