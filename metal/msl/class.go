package msl

// structFor returns the type of a class declared in e: one type for each scope that the declaration is reached
// through, so that a class inside a template is another one in each instance.
func (c *compiler) structFor(d *StructDecl, e *env) *ctype {
	key := structKey{d, e}
	if t := c.structs[key]; t != nil {
		return t
	}
	st := &structInfo{name: "(unnamed " + d.Key + ")", decl: d, union: d.Key == "union"}
	if d.Name != nil {
		st.name = d.Name.Ident
	}
	st.typ = &ctype{kind: tStruct, st: st}
	st.scope = &env{kind: envClass, up: e, cls: st}
	c.structs[key] = st.typ
	return st.typ
}

type structKey struct {
	d *StructDecl
	e *env
}

// declareMembers enters a class's members into its scope.
func (c *compiler) declareMembers(st *structInfo) {
	if st.declared || st.decl == nil || !st.decl.Complete {
		return
	}
	st.declared = true
	if st.name != "" {
		st.scope.put(&entity{kind: eType, name: st.name, ty: qt(st.typ), tmpl: st.tmpl})
	}
	for _, m := range st.decl.Members {
		switch d := m.(type) {
		case *FuncDecl:
			if d.Kind == FuncConstructor {
				st.userCtor = st.userCtor || !d.Default
			}
			c.declareMethod(st, d, nil)
		case *TemplateDecl:
			if f, ok := d.Decl.(*FuncDecl); ok {
				if f.Kind == FuncConstructor {
					st.userCtor = true
				}
				c.declareMethod(st, f, d)
			} else {
				c.declareTemplate(st.scope, d)
			}
		case *VarDecl:
			c.declareMemberVar(st, d)
		case *StaticAssertDecl:
			st.asserts = append(st.asserts, d)
		case *StructDecl:
			if d.Anonymous {
				for _, x := range d.Members {
					if f, ok := x.(*VarDecl); ok {
						c.declareMemberVar(st, f)
					}
				}
				continue
			}
			c.declare(st.scope, m)
		case *UsingDecl:
			if !c.inheritCtors(st, d) {
				c.declare(st.scope, m)
			}
		case *EnumDecl, *AliasDecl:
			c.declare(st.scope, m)
		}
	}
}

// inheritCtors notes using Base::Base, which makes a base's constructors the class's own; it returns false for other
// declarations with using.
func (c *compiler) inheritCtors(st *structInfo, d *UsingDecl) bool {
	n := len(d.Name.Quals)
	if n == 0 || d.Name.Op != OpNone || d.Name.Quals[n-1].Ident != d.Name.Ident {
		return false
	}
	st.inherits = append(st.inherits, d.Name.Ident)
	st.userCtor = true
	return true
}

// declareMemberVar enters a field or a static member into the scope of its class.
func (c *compiler) declareMemberVar(st *structInfo, d *VarDecl) {
	if !d.Field {
		c.declareVar(st.scope, d)
		return
	}
	if d.Name != nil {
		st.scope.put(&entity{kind: eVar, name: d.Name.Ident, vdecl: d, at: d.Pos()})
	}
}

func (c *compiler) declareMethod(st *structInfo, d *FuncDecl, tmpl *TemplateDecl) {
	if d.Name == nil {
		return
	}
	f := &funcEnt{decl: d, env: st.scope, tmpl: tmpl, cls: st, usr: !c.inPrelude(d.Pos())}
	f.noContract = st.noContract || !f.usr
	name := funcKey(d)
	if d.Specs.Friend {
		if d.Body != nil { // else the definition is found where it stands
			if st.friends == nil {
				st.friends = map[string][]*funcEnt{}
			}
			f.cls = nil
			st.friends[name] = append(st.friends[name], f)
		}
		return
	}
	if old := st.scope.own(name); old != nil && old.kind == eFunc {
		if tmpl != nil && tmpl.Spec {
			if p := primaryOf(old, d); p != nil {
				p.specs = append(p.specs, f)
				return
			}
		}
		old.funcs = append(old.funcs, f)
		return
	}
	st.scope.put(&entity{kind: eFunc, name: name, funcs: []*funcEnt{f}, at: d.Pos()})
}

// complete lays a class out: its bases and fields in order, each aligned. It does nothing for a class without a body.
func (c *compiler) complete(st *structInfo) {
	if st.state != 0 || st.lambda != nil {
		return
	}
	if st.decl == nil || !st.decl.Complete {
		return
	}
	st.state = 1
	if !c.enter(st.decl.Pos()) {
		return
	}
	defer c.leave()
	c.declareMembers(st)
	rs := c.resolverIn(st.scope)
	t := st.typ
	t.align = 1
	lay := layout{st: st}
	for _, a := range st.decl.Attrs {
		switch a.Name {
		case "packed", "__packed__":
			lay.packed = true
		default:
			t.align = max(t.align, rs.alignment(&a))
		}
	}
	for _, b := range st.decl.Bases {
		bt := rs.typeOf(b.Type).T
		switch {
		case bt.kind == tBad:
		case bt.kind != tStruct || !c.isComplete(bt):
			c.errorf(Incomplete, st.decl.Pos(), "the base class %s is no complete class", bt)
		default:
			st.bases = append(st.bases, bt)
			lay.add(field{q: qt(bt), base: true})
		}
	}
	for _, m := range st.decl.Members {
		switch d := m.(type) {
		case *VarDecl:
			if d.Field {
				c.addField(rs, &lay, d)
			}
		case *StructDecl:
			if d.Anonymous {
				at := c.structFor(d, st.scope)
				if c.isComplete(at) {
					lay.add(field{q: qt(at), anon: true})
				}
			}
		}
	}
	if t.size == 0 {
		t.size = 1
	}
	t.size = alignUp(t.size, t.align)
	if t.size > maxBytes {
		c.fatal(TooLarge, st.decl.Pos(), "the class %s is larger than %d bytes", st, maxBytes)
	}
	st.state = 2
	for _, a := range st.asserts {
		c.staticAssert(a, st.scope)
	}
}

func (c *compiler) addField(rs *resolver, lay *layout, d *VarDecl) {
	x := rs.typeOf(d.Type)
	name := ""
	if d.Name != nil {
		name = d.Name.Ident
	}
	switch {
	case x.T.kind == tBad:
		x = qt(typeInt)
	case x.T.kind == tRef && lay.st.union:
		c.errorf(BadType, d.Pos(), "the field '%s' of a union is a reference", name)
		x = qt(typeInt)
	case x.Space.normal() != SpaceNone:
		c.errorf(AddressSpace, d.Pos(), "the field '%s' names the address space %s: a field lives where its object does",
			name, x.Space)
		x.Space = SpaceNone
	case !c.isComplete(x.T):
		c.errorf(Incomplete, d.Pos(), "the field '%s' has the incomplete type %s", name, x)
		return
	}
	for _, f := range lay.st.fields {
		if f.name == name && name != "" {
			c.errorf(Redefinition, d.Pos(), "'%s' is declared twice", name)
			return
		}
	}
	lay.align = 0
	for _, a := range d.Specs.Attrs {
		lay.align = max(lay.align, rs.alignment(&a))
	}
	if d.Bits != nil {
		lay.addBits(rs, field{name: name, q: x, decl: d})
		return
	}
	lay.add(field{name: name, q: x, decl: d})
}

// layout places fields one after another, or all at the start of a union.
type layout struct {
	st     *structInfo
	align  int
	packed bool // fields are not aligned
	bits   int  // bits taken, if the last field is a bit-field: t.size holds them rounded up
}

func (l *layout) add(f field) {
	t := l.st.typ
	ft := f.q.T
	l.bits = 0
	align := max(ft.align, l.align, 1)
	if l.packed {
		align = max(l.align, 1)
	}
	f.comp = t.comps
	if l.st.union {
		t.size = max(t.size, ft.size)
		t.comps = -1
	} else {
		if !(f.base && len(ft.st.fields) == 0) { // an empty base takes no room
			f.off = alignUp(t.size, align)
			t.size = min(f.off+ft.size, maxBytes+1)
		}
		if t.comps >= 0 && ft.comps >= 0 {
			t.comps = min(t.comps+ft.comps, maxBytes)
		} else {
			t.comps = -1
		}
	}
	t.align = max(t.align, align)
	l.st.fields = append(l.st.fields, f)
}

func alignUp(n, a int) int { return (n + a - 1) / a * a }

// fieldPath finds a field by name, through bases and anonymous members; path lists the fields on the way.
func (st *structInfo) fieldPath(name string, path []*field) []*field {
	for i := range st.fields {
		f := &st.fields[i]
		if f.name == name && !f.base && !f.anon {
			return append(path, f)
		}
	}
	for i := range st.fields {
		f := &st.fields[i]
		if f.base || f.anon {
			if p := f.q.T.st.fieldPath(name, append(path, f)); p != nil {
				return p
			}
		}
	}
	return nil
}

// methods returns the functions of a name in a class, its bases included.
func (c *compiler) methods(t *ctype, name string) []*funcEnt {
	if t.kind != tStruct {
		return nil
	}
	c.declareMembers(t.st)
	c.complete(t.st)
	if t.st.scope == nil {
		return nil
	}
	if name == "(constructor)" {
		if x := t.st.scope.own(name); x != nil {
			return x.funcs
		}
		return nil
	}
	if x := c.find(t.st.scope, name, 0); x != nil && x.kind == eFunc {
		return x.funcs
	}
	return nil
}

// usesDefaultCtor reports whether a class without constructors of its own still needs code to make an object: for
// default member initialisers or fields that have constructors.
func (c *compiler) needsInit(t *ctype) bool {
	switch t.kind {
	case tRef:
		return true
	case tArray:
		return c.needsInit(t.elem.T)
	case tStruct:
		c.complete(t.st)
		if t.st.union {
			return false
		}
		if t.st.userCtor || t.st.lambda != nil {
			return t.st.userCtor
		}
		if t.st.state == 2 && t.st.inits != 0 {
			return t.st.inits == 1
		}
		t.st.inits = 2
		for i := range t.st.fields {
			f := &t.st.fields[i]
			if f.decl != nil && f.decl.Init != nil || c.needsInit(f.q.T) {
				t.st.inits = 1
				break
			}
		}
		return t.st.inits == 1
	}
	return false
}

// derivesFrom returns the fields that lead from a class to a base class, nil if it is no base; found for the class
// itself.
func derivesFrom(t, base *ctype) (path []*field, found bool) {
	if t == base {
		return nil, true
	}
	if t.kind != tStruct || base.kind != tStruct {
		return nil, false
	}
	for i := range t.st.fields {
		f := &t.st.fields[i]
		if f.base {
			if p, ok := derivesFrom(f.q.T, base); ok {
				return append([]*field{f}, p...), true
			}
		}
	}
	return nil, false
}
