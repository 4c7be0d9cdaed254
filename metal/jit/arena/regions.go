package arena

import (
	"github.com/mlxlua/mlxlua/metal/jit/lanes"
	"github.com/mlxlua/mlxlua/metal/kir"
)

// regionLayout decides how the lanes' own memory lies in a frame. A Thread region whose every access has the same
// size, at a multiple of that size, is interleaved: element by element, each for all lanes, so that lanes at one
// index touch consecutive memory. Others lie lane after lane.
func regionLayout(k *kir.Kernel, info *lanes.Info, l *Layout) {
	size := make([]int, len(k.Regions)) // of every access so far, -1 if they differ
	lost := false                       // a pointer to unknown Thread memory is followed: addresses must be plain
	k.Body.Walk(func(i *kir.Instr) {
		if i.Op != kir.Load && i.Op != kir.Store {
			return
		}
		a := info.Access[i.ID]
		if a.Object == 0 {
			lost = lost || i.Args[0].Type == kir.PtrThread
			return
		}
		n := a.Object - 1 - len(k.Params)
		if n < 0 || k.Regions[n].Space != kir.Thread {
			return
		}
		narrow := a.Size < 4 && a.Mode == lanes.AccessGather // loads words of 4 bytes
		if size[n] != 0 && size[n] != a.Size || narrow || !multiple(a, info, i.Args[0], int64(a.Size)) {
			size[n] = -1
			return
		}
		size[n] = a.Size
	})
	for n, r := range k.Regions {
		if r.Space != kir.Thread {
			continue
		}
		if s := size[n]; !lost && s > 0 && r.Size%s == 0 {
			l.RegionStep[n], l.RegionLane[n] = l.Lanes, s
			continue
		}
		l.RegionStep[n], l.RegionLane[n] = 1, Align(r.Size+4, 16) // room for a word at the last byte
	}
}

// multiple reports whether every offset of an access is known to be a multiple of size, a power of two.
func multiple(a *lanes.Access, info *lanes.Info, ptr *kir.Instr, size int64) bool {
	alignOf := func(i *kir.Instr) int64 {
		switch i.Op {
		case kir.ParamAddr, kir.RegionAddr:
			return size
		case kir.Const:
			return 1 // constants count in Disp
		}
		return max(int64(info.Patterns[i.ID].Align), 1)
	}
	if a.Mode == lanes.AccessDynamic {
		return alignOf(ptr)%size == 0
	}
	if a.Disp%size != 0 {
		return false
	}
	for _, t := range a.Terms {
		if alignOf(t)%size != 0 {
			return false
		}
	}
	scaled := a.Bases
	if a.Mode == lanes.AccessGather {
		scaled = append(scaled[:len(scaled):len(scaled)], a.Index)
	}
	for _, b := range scaled {
		m := b.Scale
		if b.Value != a.Index.Value { // the lanes of an Index have no common divisor that Align tells
			m *= alignOf(b.Value)
		}
		if m%size != 0 {
			return false
		}
	}
	if a.Offsets != nil {
		for _, o := range a.Offsets {
			if int64(o)%size != 0 {
				return false
			}
		}
	}
	return true
}
