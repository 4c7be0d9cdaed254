package kernelgen

import "math"

// A copy between layouts that run along different dimensions goes through tiles in threadgroup memory: both sides
// are touched a run of neighbours at a time. A tile has as many rows as columns, and its rows one more place, so that
// the elements of a column lie in different banks.
const (
	leastTile = 16
	// leastCopy is the fewest elements for which tiles are worth a kernel of their own.
	leastCopy = 4096
)

// tileSide is the rows of a tile of elements of size bytes: it fits in threadgroup memory.
func tileSide(size int) int {
	if size > 4 {
		return 32
	}
	return 64
}

// TileEntry is the name of the kernel that PrintTile prints.
const TileEntry = "tile"

// Tile is a copy through tiles: what Layout.Tile finds.
type Tile struct {
	numbers []int
	groups  int
	wide    bool
}

// Tile reports whether a copy from array 0 to array 1 of a planned layout should go through tiles of elements of size
// bytes: array 1 runs along the last dimension, array 0 along another one, both are long enough, and array 0 is not
// broadcast along the last dimension, where it has nothing to turn.
func (l *Layout) Tile(size int) (Tile, bool) {
	last := len(l.Shape) - 1
	if len(l.Strides) != 2 || size > 8 || l.Strides[1][last] != 1 || l.Shape[last] < leastTile {
		return Tile{}, false
	}
	across, total := -1, 1
	for d, n := range l.Shape {
		total *= n
		if d != last && l.Strides[0][d] == 1 && n >= leastTile {
			across = d
		}
	}
	if across < 0 || l.Strides[0][last] == 0 || l.Strides[0][last] == 1 || total < leastCopy {
		return Tile{}, false
	}
	rows, columns, side := l.Shape[last], l.Shape[across], tileSide(size)
	down, right := (rows+side-1)/side, (columns+side-1)/side
	t := Tile{wide: l.Wide(), groups: down * right}
	t.numbers = append(t.numbers, rows, columns, l.Strides[0][last], l.Strides[1][across], right, down*right,
		l.Base[0], l.Base[1], last-1)
	for _, v := range [][]int{l.Shape, l.Strides[0], l.Strides[1]} {
		for d := range last {
			if d != across {
				t.numbers = append(t.numbers, v[d])
			}
		}
	}
	for d := range last {
		if d != across {
			t.groups *= l.Shape[d]
		}
	}
	return t, t.groups <= math.MaxInt32/GroupThreads
}

// Threads is the size of the launch, in threads; threadgroups have GroupThreads.
func (t Tile) Threads() int { return t.groups * GroupThreads }

// Numbers are the kernel's numbers: int, or long if wide.
func (t Tile) Numbers() (numbers []int, wide bool) { return t.numbers, t.wide }

// PrintTile prints the kernel: element is the expression of an element from $0, from and to are MSL types, the source's
// elements are of size bytes. Its parameters are the source, the destination and Tile.Numbers.
func PrintTile(from, to, element string, bytes int, wide bool) string {
	w := printer{wide: wide}
	side := tileSide(bytes)
	it, size, pitch := w.index(), itoa(side), itoa(side+1)
	step := itoa(GroupThreads / 32)
	w.line("// copy through tiles\n#pragma clang fp contract(off)")
	w.line("[[kernel]] void ", TileEntry, "(")
	w.param("device const " + from + "* a")
	w.param("device " + to + "* o")
	w.param("constant " + it + "* p")
	w.WriteString(positions)
	w.line("  threadgroup ", from, " part[", size, " * ", pitch, "];")
	w.line("  ", it, " rest = ", it, "(group) / p[5];")
	w.line("  const ", it, " tile = ", it, "(group) - rest * p[5];")
	w.line("  const ", it, " down = tile / p[4];")
	w.line("  const ", it, " row = down * ", size, ", column = (tile - down * p[4]) * ", size, ";")
	w.line("  const ", it, " rows = min(p[0] - row, ", it, "(", size, "));")
	w.line("  const ", it, " columns = min(p[1] - column, ", it, "(", size, "));")
	w.line("  const ", it, " nd = p[8];")
	w.line("  constant ", it, "* q = p + 9;")
	w.line("  ", it, " from = p[6] + row * p[2] + column;")
	w.line("  ", it, " to = p[7] + column * p[3] + row;")
	w.line("  for (", it, " d = nd - 1; d >= 0; --d) {")
	w.line("    const ", it, " next = rest / q[d], c = rest - next * q[d];")
	w.line("    rest = next;")
	w.line("    from += c * q[nd + d];")
	w.line("    to += c * q[2 * nd + d];")
	w.line("  }")
	value := func(at string) string {
		return "static_cast<" + to + ">(" + expand(element, func(int) string { return "part[" + at + "]" }, "r") + ")"
	}
	// Whole tiles have no condition for each lane, and more of their loads are on their way at once.
	w.line("  const bool whole = rows == ", size, " && columns == ", size, ";")
	w.line("  if (whole) {")
	w.line("    for (", it, " r = sg; r < ", size, "; r += ", step, ") {")
	w.line("      const ", it, " at = from + r * p[2] + lane, in = r * ", pitch, " + lane;")
	for c := 0; c < side; c += 32 {
		w.line("      part[in + ", itoa(c), "] = a[at + ", itoa(c), "];")
	}
	w.line("    }\n  } else {")
	w.line("    for (", it, " r = sg; r < rows; r += ", step, ") {")
	w.line("      for (", it, " c = lane; c < columns; c += 32) part[r * ", pitch, " + c] = a[from + r * p[2] + c];")
	w.line("    }\n  }")
	w.line("  threadgroup_barrier(mem_flags::mem_threadgroup);")
	w.line("  if (whole) {")
	w.line("    for (", it, " c = sg; c < ", size, "; c += ", step, ") {")
	w.line("      const ", it, " at = to + c * p[3] + lane, in = c + lane * ", pitch, ";")
	for r := 0; r < side; r += 32 {
		w.line("      o[at + ", itoa(r), "] = ", value("in + "+itoa(r*(side+1))), ";")
	}
	w.line("    }\n  } else {")
	w.line("    for (", it, " c = sg; c < columns; c += ", step, ") {")
	w.line("      for (", it, " r = lane; r < rows; r += 32) o[to + c * p[3] + r] = ", value("r * "+pitch+" + c"), ";")
	w.line("    }\n  }\n}")
	return w.String()
}
