package kit

import (
	"github.com/mlxlua/mlxlua/metal"
)

// TileRows is how many rows of a product a thread makes.
func TileRows(rows int) int {
	if rows == 1 {
		return 1
	}
	return 4
}

// Tiles is the grid of a batch of products.
func Tiles(rows, cols, tile, batch int) (grid, group metal.Size) {
	grid = metal.Size{X: cols, Y: (rows + tile - 1) / tile, Z: batch}
	x := min(cols, 64)
	return grid, metal.Size{X: x, Y: min(grid.Y, max(256/x, 1)), Z: 1}
}

// Line is a grid of n threads in one dimension.
func Line(n int) metal.Size { return metal.Size{X: n, Y: 1, Z: 1} }

// Plane is a grid of x times y threads, and threadgroups for it that fill 256 threads where they can.
func Plane(x, y int) (grid, group metal.Size) {
	gx := min(x, 256)
	return metal.Size{X: x, Y: y, Z: 1}, metal.Size{X: gx, Y: min(y, max(256/gx, 1)), Z: 1}
}

// SimdRows is a grid of one SIMD-group for each row.
func SimdRows(rows int) (grid, group metal.Size) {
	return metal.Size{X: 32, Y: rows, Z: 1}, metal.Size{X: 32, Y: min(rows, 8), Z: 1}
}
