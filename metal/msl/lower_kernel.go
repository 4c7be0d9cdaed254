package msl

import (
	"maps"
	"slices"

	"github.com/mlxlua/mlxlua/metal/kir"
)

// maxBuffers is the number of buffers a Metal kernel can have.
const maxBuffers = 31

func isKernel(s *Specs) bool {
	if s.Kernel {
		return true
	}
	for _, a := range s.Attrs {
		if a.Name == "kernel" {
			return true
		}
	}
	return false
}

func kernelName(s *Specs, name string) string {
	for _, a := range s.Attrs {
		if a.Name == "host_name" && len(a.Args) == 1 {
			if l, ok := a.Args[0].(*StringLit); ok {
				return l.Value
			}
		}
	}
	return name
}

// explicitInst finds what `template [[host_name("x")]] [[kernel]] decltype(f<float>) f<float>;` and its like ask for.
// An instantiation that is no kernel is only checked.
func (c *compiler) explicitInst(p pendingInst) (en kernelEntry, ok bool) {
	var name *Name
	var specs *Specs
	at := p.d.Pos()
	switch d := p.d.Decl.(type) {
	case *VarDecl:
		name, specs = d.Name, &d.Specs
	case *FuncDecl:
		name, specs = d.Name, &d.Specs
	default:
		return kernelEntry{}, false
	}
	ch := c.chooserIn(p.e)
	rs := ch.res
	ent := rs.resolveEntity(name)
	if ent == nil {
		return kernelEntry{}, false
	}
	if ent.kind != eFunc {
		return kernelEntry{}, false
	}
	args, ok := rs.templateArgs(name.Args)
	if !ok {
		return kernelEntry{}, false
	}
	var inst *funcInst
	best := -1
	for _, f := range ent.funcs {
		if f.tmpl == nil {
			continue
		}
		d := newDeduction(rs.c, f.tmpl.Params, f.env)
		if !rs.explicitArgs(d, args) {
			continue
		}
		if fd, isFunc := p.d.Decl.(*FuncDecl); isFunc && len(fd.Params) == len(f.decl.Params) {
			for i, fp := range fd.Params {
				d.typ(f.decl.Params[i].Type, rs.typeOf(fp.Type), false)
			}
		}
		if _, full := rs.fill(d, at); !full {
			continue
		}
		if in := ch.instFor(f, d.got); in != nil {
			if n := ch.instantiates(p.d.Decl, in); n > best {
				inst, best = in, n
			}
		}
	}
	if inst != nil && inst.f.decl.Body == nil {
		c.errorf(Undeclared, at, "%s is declared, but has no body", c.signature(inst.f))
		return kernelEntry{}, false
	}
	if inst == nil {
		if c.errCount() == 0 {
			c.errorf(BadTemplateArgs, at, "no template '%s' can be instantiated with %s", name.Ident, argsString(args))
		}
		return kernelEntry{}, false
	}
	if !isKernel(specs) && !isKernel(&inst.f.decl.Specs) {
		return kernelEntry{}, false
	}
	all := inst.f.decl.Specs
	all.Attrs = append(append([]Attr(nil), all.Attrs...), specs.Attrs...)
	return kernelEntry{inst: inst, name: kernelName(specs, name.Ident), specs: &all, at: at}, true
}

// instantiates ranks a function as what an explicit instantiation means: first those with its parameters, for templates
// may be overloaded, and of these the definition rather than a declaration before it.
func (ch *chooser) instantiates(d Decl, inst *funcInst) int {
	rank := 0
	if inst.f.decl.Body != nil {
		rank = 1
	}
	fd, isFunc := d.(*FuncDecl)
	if !isFunc || len(fd.Params) != len(inst.params) {
		return rank
	}
	for i, p := range fd.Params {
		if ch.c.types.paramType(ch.res.typeOf(p.Type)).T != inst.params[i].q.T {
			return rank
		}
	}
	return rank + 2
}

// checkUnused checks the functions of the text that no kernel calls. Templates that are not used are not
// instantiated.
func (c *compiler) checkUnused() {
	for _, f := range c.order {
		if f.tmpl != nil || c.used[f] || f.decl.Body == nil || isKernel(&f.decl.Specs) || !f.usr {
			continue
		}
		inst := c.chooserIn(f.env).instFor(f, nil)
		if inst == nil || inst.takesFunction() { // whose calls say which
			continue
		}
		g := newGenerator(c, "unused", f.env)
		g.em.at(f.decl.Pos())
		var args []value
		ok := true
		for i := range inst.params {
			t := inst.params[i].q.noRef()
			if !c.isComplete(t.T) {
				ok = t.T.kind == tArray
				if !ok {
					break
				}
			}
			args = append(args, g.c.types.dummy(t))
		}
		if ok {
			g.calls.call(inst, args, nil, f.decl.Pos())
		}
	}
}

// kernel compiles one entry point.
func (c *compiler) kernel(inst *funcInst, name string, specs *Specs) *kir.Kernel {
	f := inst.f
	g := newGenerator(c, name, inst.env)
	c.instrs, c.work = 0, 0
	clear(c.missing)
	c.used[f] = true
	g.em.at(f.decl.Pos())
	if specs.Function != "" {
		c.errorf(Unsupported, f.decl.Pos(), "'%s' functions are not supported: only kernels are", specs.Function)
		return nil
	}
	if inst.ret.T.kind != tVoid && inst.ret.T.kind != tBad {
		c.errorf(BadReturn, f.decl.Pos(), "the kernel '%s' must return void, not %s", name, inst.ret)
	}
	g.kernelAttrs(specs)
	before := c.errCount()
	fr := &inl{inst: inst, ret: qt(typeVoid), kernel: true, ptr: -1}
	e := &env{kind: envFunc, up: inst.env}
	pb := &paramBinder{g: g, e: e, usedBuf: map[int]string{}, usedTG: map[int]string{}}
	for i := range inst.params {
		pb.reserve(&inst.params[i])
	}
	for i := range inst.params {
		pb.bind(&inst.params[i])
	}
	g.res.env, g.stmts.fr, g.arith.contract = e, fr, contractOf(f)
	g.stmts.block(f.decl.Body, true)
	if c.errCount() != before {
		c.failed[f]++
		return nil
	}
	if len(c.list) > 0 { // then nobody wants the kernel
		return nil
	}
	g.mem.demote()
	g.em.finish()
	g.em.k.Refused = g.vars.refused.Err()
	if c.opt.Portable {
		checkPortable(c, g.em.k)
	}
	return g.em.k
}

func (g *generator) kernelAttrs(specs *Specs) {
	for i := range specs.Attrs {
		a := &specs.Attrs[i]
		switch a.Name {
		case "kernel", "host_name", "visible", "stitchable", "gnu::always_inline", "always_inline", "clang::always_inline",
			"gnu::noinline", "noinline", "clang::noinline", "max_total_threadgroups_per_mesh_grid", "maybe_unused", "nodiscard",
			"deprecated":
		case "max_total_threads_per_threadgroup":
			if len(a.Args) != 1 {
				g.c.errorf(UnknownAttribute, a.At, "max_total_threads_per_threadgroup takes one number")
				continue
			}
			n, ok := g.consts.constInt(a.Args[0], "max_total_threads_per_threadgroup")
			if ok && (n < 1 || n > 1024) {
				g.c.errorf(UnknownAttribute, a.At, "max_total_threads_per_threadgroup(%d) is outside 1 to 1024", n)
			} else if ok {
				g.em.k.MaxThreads = int(n)
			}
		case "required_threads_per_threadgroup":
			g.requiredThreads(a)
		default:
			g.c.errorf(UnknownAttribute, a.At, "there is no attribute '%s' for kernels%s", a.Name, nearOf(a.Name,
				"max_total_threads_per_threadgroup", "required_threads_per_threadgroup", "host_name", "kernel"))
		}
	}
}

// requiredThreads notes the size that a kernel's threadgroups must have: one to three numbers, 1 for those left out.
func (g *generator) requiredThreads(a *Attr) {
	if len(a.Args) < 1 || len(a.Args) > 3 {
		g.c.errorf(UnknownAttribute, a.At, "required_threads_per_threadgroup takes one to three numbers")
		return
	}
	size, count := [3]int{1, 1, 1}, 1
	for i, x := range a.Args {
		n, ok := g.consts.constInt(x, a.Name)
		if !ok {
			return
		}
		if n < 1 || n > 1024 || count*int(n) > 1024 {
			g.c.errorf(UnknownAttribute, a.At, "required_threads_per_threadgroup is not 1 to 1024 threads")
			return
		}
		size[i] = int(n)
		count *= int(n)
	}
	g.em.k.Threads = size
}

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
	v, ok := b.g.consts.constExpr(a.Args[0], "the condition of a parameter")
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
	if kp.Elem == kir.U64 && e.T.kind == tStruct {
		kp.Elem = kir.U8
	}
	kp.Part = hasParts(e.T)
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
