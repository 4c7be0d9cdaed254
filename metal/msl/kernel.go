package msl

import (
	"github.com/mlxlua/mlxlua/metal/kir"
)

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

// kernel compiles one entry point.
func (c *compiler) kernel(inst *funcInst, name string, specs *Specs) *kir.Kernel {
	f := inst.f
	g := newGenerator(c, name, inst.env)
	c.instrs, c.work = 0, 0
	c.link.active = true
	defer func() { c.link.active = false }()
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
	fr := &frame{inst: inst, ret: qt(typeVoid), kernel: true, ptr: -1}
	e := &env{kind: envFunc, up: inst.env}
	pb := &paramBinder{g: g, e: e, usedBuf: map[int]string{}, usedTG: map[int]string{}}
	for i := range inst.params {
		pb.reserve(&inst.params[i])
	}
	for i := range inst.params {
		pb.bind(&inst.params[i])
	}
	g.res.env, g.stmts.frame, g.arith.contract = e, fr, contractOf(f)
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
			g.c.apple.refuse(a.At, "required_threads_per_threadgroup is Metal 4's, and texts are Metal 3.1")
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
		c.errorf(NoBody, at, "%s is declared, but has no body", c.signature(inst.f))
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

// checkUnused checks the functions of the text that no kernel calls. Templates that are not used are not
// instantiated.
func (c *compiler) checkUnused() {
	for _, f := range c.order {
		if f.tmpl != nil || c.used[f] || f.decl.Body == nil || isKernel(&f.decl.Specs) || !f.ofUnit {
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
