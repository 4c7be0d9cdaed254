package interp

import "github.com/mlxlua/mlxlua/metal/kir"

// builtin computes a position or size; in.mode says which, in.imm its component.
func builtin(f *frame, in *inst) {
	d, c := at[uint32](f, in.d), in.imm
	g := f.group
	first := uint32(f.sg * lanes)
	switch in.mode {
	case kir.ThreadPositionInGrid:
		base := uint32(g.origin[c])
		for i := range d {
			d[i] = base + f.tpos[c][i]
		}
		return
	case kir.ThreadPositionInThreadgroup:
		*d = f.tpos[c]
		return
	case kir.ThreadIndexInThreadgroup:
		for i := range d {
			d[i] = first + uint32(i)
		}
		return
	case kir.ThreadIndexInSimdgroup:
		for i := range d {
			d[i] = uint32(i)
		}
		return
	case kir.ThreadIndexInQuadgroup:
		for i := range d {
			d[i] = uint32(i) & 3
		}
		return
	case kir.QuadgroupIndexInThreadgroup:
		for i := range d {
			d[i] = first/4 + uint32(i)/4
		}
		return
	}
	v := g.uniform(in.mode, c, f)
	for i := range d {
		d[i] = v
	}
}

// uniform returns a builtin that has one value for the SIMD-group.
func (g *group) uniform(m kir.Mode, c uint64, f *frame) uint32 {
	r := g.run
	switch m {
	case kir.ThreadgroupPositionInGrid:
		return uint32(g.pos[c])
	case kir.ThreadsPerThreadgroup:
		return uint32(g.size[c])
	case kir.DispatchThreadsPerThreadgroup:
		return uint32(r.tg[c])
	case kir.ThreadgroupsPerGrid:
		return uint32(r.groups[c])
	case kir.ThreadsPerGrid, kir.GridSize:
		return uint32(r.grid[c])
	case kir.SimdgroupIndexInThreadgroup:
		return uint32(f.sg)
	case kir.SimdgroupsPerThreadgroup:
		return uint32(ceilDiv(g.threads, lanes))
	case kir.DispatchSimdgroupsPerThreadgroup:
		return uint32(ceilDiv(r.tg[0]*r.tg[1]*r.tg[2], lanes))
	case kir.ThreadsPerSimdgroup:
		return lanes
	case kir.QuadgroupsPerThreadgroup:
		return uint32(ceilDiv(g.threads, 4))
	}
	return 0 // GridOrigin
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }
