package lanes_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal/jit/lanes"
	"github.com/mlxlua/mlxlua/metal/kerneltest"
	"github.com/mlxlua/mlxlua/metal/kir"
	"github.com/mlxlua/mlxlua/metal/kir/opt"
)

// pattern is that of a launch, one threadgroup high and deep or not.
type pattern struct {
	grid, size [3]int
	group      int
	geo        lanes.Geometry
}

var launches = []pattern{
	{[3]int{77, 1, 1}, [3]int{40, 1, 1}, 32, lanes.Geometry{Row: true}},
	{[3]int{128, 1, 1}, [3]int{64, 1, 1}, 32, lanes.Geometry{Row: true, Aligned: true}},
	{[3]int{32, 3, 1}, [3]int{32, 3, 1}, 16, lanes.Geometry{Row: true, Aligned: true}},
	{[3]int{24, 4, 1}, [3]int{12, 4, 1}, 32, lanes.Geometry{}},
	{[3]int{61, 1, 1}, [3]int{61, 1, 1}, 8, lanes.Geometry{Row: true, Aligned: true}},
}

// check runs a kernel on every group of lanes of a launch and returns how much it saw.
func check(t *testing.T, k *kir.Kernel, l pattern, buffers map[int][]byte, label string) [5]int {
	info := lanes.Analyse(k, l.group, l.geo)
	require.Equal(t, l.group, info.Group)
	groups := [3]int{}
	for c := range groups {
		groups[c] = (l.grid[c] + l.size[c] - 1) / l.size[c]
	}
	var seen [5]int
	for y := range groups[1] {
		for x := range groups[0] {
			p := place{group: [3]int{x, y}, first: [3]int{x * l.size[0], y * l.size[1]}, asked: l.size, grid: l.grid,
				groups: groups}
			for c := range p.size {
				p.size[c] = min(l.size[c], l.grid[c]-p.first[c])
			}
			threads := p.size[0] * p.size[1] * p.size[2]
			for i := 0; i < threads; i += l.group {
				p.index = i
				m := &machine{k: k, info: info, group: l.group, place: p, objects: buffers}
				mask := uint32(1<<min(l.group, threads-i) - 1)
				if err := m.run(mask); err != errOutside { // a varied kernel may
					require.NoError(t, err, "%s\n%s", label, k)
				}
				for j := range seen {
					seen[j] += m.seen[j]
				}
			}
		}
	}
	return seen
}

// TestClaimsHoldInRandomPrograms executes random kernels, as they are and optimised, and holds all that Analyse says
// against every value.
func TestClaimsHoldInRandomPrograms(t *testing.T) {
	var seen [5]int
	programs(t, func(c *kerneltest.Case, varied int, crossing bool, k *kir.Kernel) {
		bound, _ := kerneltest.Bind(k, c.Buffers())
		objects := map[int][]byte{}
		for i, b := range bound {
			objects[1+i] = b
		}
		addRegions(k, objects)
		for i, l := range launches {
			if crossing && l.group != 32 {
				continue
			}
			k, optimised := k, i%2 == int(c.Seed/2)%2
			if optimised {
				k = opt.Run(k, opt.Launch{})
			}
			for j, n := range check(t, k, l, objects, fmt.Sprintf("seed %d, %d, launch %d, optimised %v", c.Seed, varied, i,
				optimised)) {
				seen[j] += n
			}
		}
	})
	for i, n := range seen {
		require.NotZero(t, n, "nothing of kind %d was seen", i)
	}
	t.Logf("uniform %d, pattern %d, varying %d; accesses %d, described %d", seen[0], seen[1], seen[2], seen[3], seen[4])
}
