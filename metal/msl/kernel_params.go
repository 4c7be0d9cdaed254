package msl

import (
	"maps"
	"slices"

	"github.com/mlxlua/mlxlua/metal/kir"
)

// maxBuffers is the number of buffers a Metal kernel can have.
const maxBuffers = 31

// paramBinder gives a kernel's parameters their places.
type paramBinder struct {
	g       *generator
	e       *env
	usedBuf map[int]string
	usedTG  map[int]string
	next    int
	nextTG  int
}

// attr finds an attribute of a parameter.
func attrOf(p *ParamDecl, name string) *Attr {
	for i := range p.Attrs {
		if p.Attrs[i].Name == name {
			return &p.Attrs[i]
		}
	}
	return nil
}

// reserve notes the indices that are given explicitly, so that parameters without one get others.
func (b *paramBinder) reserve(p *paramInst) {
	g := b.g
	for _, kind := range []string{"buffer", "threadgroup"} {
		a := attrOf(p.decl, kind)
		if a == nil {
			continue
		}
		used, limit := b.usedBuf, maxBuffers
		if kind == "threadgroup" {
			used = b.usedTG
		}
		n, ok := b.index(a, kind)
		if !ok {
			continue
		}
		if n < 0 || n >= limit {
			g.c.errorf(TooManyBuffers, a.At, "%s(%d): the index must be 0 to %d", kind, n, limit-1)
			continue
		}
		if old, dup := used[n]; dup {
			g.c.errorf(Redefinition, a.At, "%s(%d) is given to '%s' and to '%s'", kind, n, old, p.decl.Name)
		}
		used[n] = p.decl.Name
	}
}

func (b *paramBinder) index(a *Attr, kind string) (int, bool) {
	if len(a.Args) != 1 {
		b.g.c.errorf(UnknownAttribute, a.At, "%s takes one index", kind)
		return 0, false
	}
	n, ok := b.g.consts.constInt(a.Args[0], "the index of "+kind)
	if !ok || n < -1 || n > 1<<20 {
		n = 1 << 20
	}
	return int(n), ok
}

func (b *paramBinder) bind(p *paramInst) {
	g := b.g
	d := p.decl
	g.em.at(d.Pos())
	v := badValue
	isRef := p.q.T.kind == tRef
	for i := range d.Attrs {
		a := &d.Attrs[i]
		if _, ok := positionAttrs[a.Name]; ok {
			v = b.position(p, a)
			b.declare(d, v, false)
			return
		}
		switch a.Name {
		case "buffer", "threadgroup", "maybe_unused", "id":
		case "function_constant":
			if !b.present(a) { // the parameter does not exist: a null pointer
				if p.q.T.kind == tPtr {
					v = g.mem.newLocal(d.Name, p.q, rval(p.q.T, operand{ty: p.q.T.kirScalar()}))
				} else if p.q.T.kind == tRef {
					v = g.c.types.dummy(p.q.T.elem)
				}
				b.declare(d, v, isRef)
				return
			}
		case "stage_in", "texture", "sampler", "patch_control_point", "payload", "visible_function_table":
			g.c.errorf(Unsupported, a.At, "'%s' parameters are not supported", a.Name)
			b.declare(d, badValue, isRef)
			return
		default:
			names := append([]string{"buffer", "threadgroup", "function_constant"}, slices.Collect(maps.Keys(positionAttrs))...)
			g.c.errorf(UnknownAttribute, a.At, "there is no attribute '%s' for parameters of kernels%s", a.Name,
				nearOf(a.Name, names...))
			b.declare(d, badValue, isRef)
			return
		}
	}
	t := p.q.T
	switch t.kind {
	case tPtr, tRef:
		v = b.buffer(p, t)
	case tBad:
	default:
		g.c.errorf(KernelParam, d.Pos(),
			"nothing can be bound to the parameter '%s' of type %s: it is no pointer or reference, and no position",
			d.Name, p.q)
	}
	b.declare(d, v, isRef)
}

func (b *paramBinder) declare(d *ParamDecl, v value, isRef bool) {
	if d.Name != "" {
		if old := b.e.put(&entity{kind: eVar, name: d.Name, local: true, val: v, at: d.Pos(), isRef: isRef}); old != nil {
			b.g.c.redefined(d.Name, d.Pos(), old)
		}
		b.g.c.hides(b.e.up, d.Name, d.Pos())
	}
}

// present evaluates the condition of [[function_constant(c)]].
func (b *paramBinder) present(a *Attr) bool {
	if len(a.Args) != 1 {
		b.g.c.errorf(UnknownAttribute, a.At, "function_constant takes the name of a function constant")
		return true
	}
	v, ok := b.g.consts.specialExpr(a.Args[0], "the condition of a parameter")
	return !ok || len(v.comps) != 1 || v.comps[0].bits != 0
}

// buffer makes a kir parameter for a pointer or reference.
func (b *paramBinder) buffer(p *paramInst, t *ctype) value {
	g := b.g
	d := p.decl
	e := t.elem
	space := e.Space.normal()
	if space == SpaceNone {
		g.c.errorf(AddressSpace, d.Pos(), "the parameter '%s' points to thread memory: name device, constant or threadgroup",
			d.Name)
		return badValue
	}
	if e.T.kind != tVoid && !g.c.isComplete(e.T) && !(e.T.kind == tArray && e.T.n < 0) {
		g.c.errorf(Incomplete, d.Pos(), "the parameter '%s' points to the incomplete type %s", d.Name, e)
		return badValue
	}
	if e.T.kind == tPtr {
		g.c.errorf(KernelParam, d.Pos(), "the parameter '%s' is a pointer to pointers", d.Name)
		return badValue
	}
	kp := kir.Param{Name: d.Name, Space: space.kir(), Elem: e.T.firstScalar(), ElemSize: max(e.T.size, 1)}
	if e.T.kind == tArray {
		kp.ElemSize = max(e.T.elem.T.size, 1)
	}
	if kp.Elem == kir.U64 && e.T.kind == tClass {
		kp.Elem = kir.U8
	}
	kp.Part = hasParts(e.T)
	kp.ReadOnly = space == SpaceConstant || space == SpaceDevice && constPointee(e)
	if t.kind == tRef {
		kp.MinBytes = e.T.size
	}
	kind := "buffer"
	used, next := b.usedBuf, &b.next
	if space == SpaceThreadgroup {
		kind, used, next = "threadgroup", b.usedTG, &b.nextTG
	}
	if a := attrOf(d, kind); a != nil {
		if n, ok := b.index(a, kind); ok {
			kp.Index = n
		}
	} else {
		for used[*next] != "" {
			*next++
		}
		kp.Index = *next
		used[*next] = "(" + d.Name + ")"
		if kp.Index >= maxBuffers {
			g.c.errorf(TooManyBuffers, d.Pos(), "the parameter '%s' is buffer %d: Metal has %d", d.Name, kp.Index, maxBuffers)
		}
	}
	i := len(g.em.k.Params)
	g.em.k.Params = append(g.em.k.Params, kp)
	ptr := g.em.leaf(kir.ParamAddr, kir.PtrTo(kp.Space), 0, uint64(i))
	if t.kind == tRef {
		return value{k: vMem, q: e, ptr: ptr}
	}
	return g.mem.newLocal(d.Name, p.q, rval(t, ptr))
}

// constPointee reports whether all that a type describes is const.
func constPointee(q qtype) bool {
	for !q.Const && q.T.kind == tArray {
		q = q.T.elem
	}
	return q.Const
}

// position binds a parameter with a position attribute: a uint or ushort, or a vector of them.
func (b *paramBinder) position(p *paramInst, a *Attr) value {
	g := b.g
	mode := positionAttrs[a.Name]
	e, n := p.q.T.shape()
	if e == nil || !(e.kt == kir.U32 || e.kt == kir.U16) || n > mode.Components() || mode.Components() == 3 && n > 3 {
		if p.q.T.kind != tBad {
			want := "uint or ushort"
			if mode.Components() == 3 {
				want = "uint, uint2, uint3, ushort, ushort2 or ushort3"
			}
			g.c.errorf(KernelParam, p.decl.Pos(), "'%s' must be %s, not %s", a.Name, want, p.q)
		}
		return badValue
	}
	v := value{k: vRight, q: qt(p.q.T)}
	for i := range n {
		x := g.em.leaf(kir.Builtin, kir.U32, mode, uint64(i))
		v.comps = append(v.comps, g.em.convert(x, e.kt))
	}
	return g.mem.newLocal(p.decl.Name, p.q, v)
}

// positionAttrs are the attributes that give a thread its place and the launch's sizes.
var positionAttrs = map[string]kir.Mode{
	"thread_position_in_grid":             kir.ThreadPositionInGrid,
	"thread_position_in_threadgroup":      kir.ThreadPositionInThreadgroup,
	"threadgroup_position_in_grid":        kir.ThreadgroupPositionInGrid,
	"threads_per_threadgroup":             kir.ThreadsPerThreadgroup,
	"dispatch_threads_per_threadgroup":    kir.DispatchThreadsPerThreadgroup,
	"threadgroups_per_grid":               kir.ThreadgroupsPerGrid,
	"threads_per_grid":                    kir.ThreadsPerGrid,
	"thread_index_in_threadgroup":         kir.ThreadIndexInThreadgroup,
	"thread_index_in_simdgroup":           kir.ThreadIndexInSimdgroup,
	"simdgroup_index_in_threadgroup":      kir.SimdgroupIndexInThreadgroup,
	"simdgroups_per_threadgroup":          kir.SimdgroupsPerThreadgroup,
	"dispatch_simdgroups_per_threadgroup": kir.DispatchSimdgroupsPerThreadgroup,
	"threads_per_simdgroup":               kir.ThreadsPerSimdgroup,
	"thread_execution_width":              kir.ThreadsPerSimdgroup,
	"thread_index_in_quadgroup":           kir.ThreadIndexInQuadgroup,
	"quadgroup_index_in_threadgroup":      kir.QuadgroupIndexInThreadgroup,
	"quadgroups_per_threadgroup":          kir.QuadgroupsPerThreadgroup,
	"grid_origin":                         kir.GridOrigin,
	"grid_size":                           kir.GridSize,
}
