package conv

import "github.com/mlxlua/mlxlua/tensor"

var chosen = choose

// Direct makes the plain kernel compute all convolutions until the function that it gives is called.
func Direct() (undo func()) {
	choose = func(_ *tensor.Run, s *sums) way { return direct{s} }
	return func() { choose = chosen }
}

// Tiled makes tiles of the shape of that number, along an axis, compute whatever they can until undo is called; count
// is how often they did.
func Tiled(axis, shape int, wide bool) (count func() int, undo func()) {
	n := 0
	choose = func(_ *tensor.Run, s *sums) way {
		v := s.folded().rows(axis)
		if v == nil {
			return direct{s}
		}
		t := v.tiles(tileShapes[shape], wide)
		if t == nil {
			return direct{s}
		}
		n++
		return t
	}
	return func() int { return n }, func() { choose = chosen }
}

// AcrossGroups makes lanes of groups compute whatever they can until undo is called; count is how often they did.
func AcrossGroups() (count func() int, undo func()) {
	n := 0
	choose = func(_ *tensor.Run, s *sums) way {
		g := s.acrossGroups()
		if g == nil {
			return direct{s}
		}
		n++
		return g
	}
	return func() int { return n }, func() { choose = chosen }
}

// TileShapes is how many shapes of tiles there are.
var TileShapes = len(tileShapes)
