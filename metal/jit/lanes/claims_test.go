package lanes_test

import (
	"math/bits"

	"github.com/mlxlua/mlxlua/metal/jit/lanes"
	"github.com/mlxlua/mlxlua/metal/kir"
)

// checkValue holds the pattern and the object of a value against the active lanes.
func (m *machine) checkValue(in *kir.Instr, mask uint32) {
	if in.Type == kir.Void || m.err != nil {
		return
	}
	s, v := m.info.Patterns[in.ID], &m.vals[in.ID]
	first := bits.TrailingZeros32(mask)
	if in.Op == kir.Load || in.Op == kir.AtomicRMW {
		m.base[in.ID] = v[first]
	}
	base := m.base[in.ID]
	switch {
	case s.Kind == lanes.Uniform && in.Type.IsFloat():
		base = v[first]
		m.base[in.ID] = base
	case s.Kind == lanes.Varying:
		base = v[first]
	}
	if s.Align == 0 || s.Align&(s.Align-1) != 0 || s.Kind == lanes.Based != (s.Offsets != nil) {
		m.fail(in, "pattern %+v", s)
	}
	if s.Kind == lanes.Based {
		m.checkOffsets(in, s)
	}
	number := func(x uint64) uint64 {
		if in.Type.IsPtr() {
			return uint64(kir.PtrOffset(x))
		}
		return x
	}
	lanesOf(mask, func(l int) {
		if s.Kind != lanes.Varying && add(in.Type, base, s, l) != v[l] {
			m.fail(in, "lane %d: %#x, base %#x and %+v", l, v[l], base, s)
		}
		if (in.Type.IsInt() || in.Type.IsPtr()) && s.Kind == lanes.Varying && number(v[l])%uint64(s.Align) != 0 {
			m.fail(in, "lane %d: %#x is no multiple of %d", l, v[l], s.Align)
		}
		if o := m.info.Object[in.ID]; in.Type.IsPtr() && o != 0 && kir.PtrObject(v[l]) != o {
			m.fail(in, "lane %d: %#x is not in object %d", l, v[l], o)
		}
	})
	if in.Type.IsInt() || in.Type.IsPtr() {
		// A number aligned to more than its type has bits is 0.
		if a := uint64(s.Align); s.Kind != lanes.Varying && number(base)&in.Type.Mask()%a != 0 {
			m.fail(in, "base %#x is no multiple of %d", base, a)
		}
	}
	m.seen[s.Kind]++
}

func (m *machine) checkOffsets(in *kir.Instr, s lanes.Pattern) {
	least := s.Offsets[0]
	for _, o := range s.Offsets[:m.group] {
		least = min(least, o)
	}
	if least != 0 {
		m.fail(in, "the smallest offset is %d", least)
	}
}

// extend widens a value by its type.
func extend(t kir.Type, v uint64) int64 {
	if sh := 64 - t.Bits(); t.IsSigned() {
		return int64(v<<sh) >> sh
	}
	return int64(v)
}

// checkAccess computes each lane's address as the Access describes it.
func (m *machine) checkAccess(in *kir.Instr, mask uint32) {
	a := m.info.Access[in.ID]
	if a == nil {
		m.fail(in, "no access")
		return
	}
	if m.err != nil {
		return
	}
	ptr := &m.vals[in.Args[0].ID]
	lanesOf(mask, func(l int) {
		if a.Object != 0 && kir.PtrObject(ptr[l]) != a.Object {
			m.fail(in, "lane %d: %#x is not in object %d", l, ptr[l], a.Object)
		}
	})
	m.seen[3]++
	if a.Mode == lanes.AccessDynamic {
		return
	}
	m.seen[4]++
	sum := a.Disp
	for _, x := range a.Terms {
		if x.Type.IsPtr() {
			sum += kir.PtrOffset(m.base[x.ID])
		} else {
			sum += int64(m.base[x.ID])
		}
		if m.info.Patterns[x.ID].Kind == lanes.Varying || !m.info.NeedBase[x.ID] {
			m.fail(in, "term %%%d is no base", x.ID)
		}
	}
	for _, b := range a.Bases {
		t, v := b.Value.Type, m.base[b.Value.ID]
		if b.Span < 0 || extend(t, (v+uint64(b.Span))&t.Mask()) != extend(t, v)+b.Span {
			return // a lane may wrap: not as described
		}
		sum += b.Scale * extend(t, v)
		if m.info.Patterns[b.Value.ID].Kind == lanes.Varying || !m.info.NeedBase[b.Value.ID] {
			m.fail(in, "base %%%d", b.Value.ID)
		}
	}
	lanesOf(mask, func(l int) {
		off := sum
		switch a.Mode {
		case lanes.AccessOffsets:
			if o := int64(a.Offsets[l]); o < 0 || o > a.Span {
				m.fail(in, "lane %d: offset %d, span %d", l, o, a.Span)
			}
			off += int64(a.Offsets[l])
		case lanes.AccessGather:
			x := a.Index.Value
			off += a.Index.Scale * extend(x.Type, m.vals[x.ID][l])
			if !m.info.NeedVec[x.ID] {
				m.fail(in, "index %%%d is not in lanes", x.ID)
			}
		}
		if off != kir.PtrOffset(ptr[l]) {
			m.fail(in, "lane %d: described as %d, is %d: %+v", l, off, kir.PtrOffset(ptr[l]), a)
		}
	})
}
