package msl

// classFor returns the type of a class declared in e: one type for each scope that the declaration is reached
// through, so that a class inside a template is another one in each instance.
func (c *compiler) classFor(d *ClassDecl, e *env) *ctype {
	key := classKey{d, e}
	if t := c.classes[key]; t != nil {
		return t
	}
	cls := &classInfo{name: "(unnamed " + d.Key + ")", decl: d, union: d.Key == "union"}
	if d.Name != nil {
		cls.name = d.Name.Ident
	}
	cls.typ = &ctype{kind: tClass, class: cls}
	cls.scope = &env{kind: envClass, up: e, class: cls}
	c.classes[key] = cls.typ
	return cls.typ
}

type classKey struct {
	d *ClassDecl
	e *env
}

// declareMembers enters a class's members into its scope.
func (c *compiler) declareMembers(cls *classInfo) {
	if cls.declared || cls.decl == nil || !cls.decl.Complete {
		return
	}
	cls.declared = true
	if cls.name != "" {
		cls.scope.put(&entity{kind: eType, name: cls.name, ty: qt(cls.typ), tmpl: cls.tmpl})
	}
	for _, m := range cls.decl.Members {
		switch d := m.(type) {
		case *FuncDecl:
			if d.Kind == FuncConstructor {
				cls.userCtor = cls.userCtor || !d.Default
			}
			c.declareMethod(cls, d, nil)
		case *TemplateDecl:
			if f, ok := d.Decl.(*FuncDecl); ok {
				if f.Kind == FuncConstructor {
					cls.userCtor = true
				}
				c.declareMethod(cls, f, d)
			} else {
				c.declareTemplate(cls.scope, d)
			}
		case *VarDecl:
			c.declareMemberVar(cls, d)
		case *StaticAssertDecl:
			cls.asserts = append(cls.asserts, d)
		case *ClassDecl:
			if d.Anonymous {
				for _, x := range d.Members {
					if f, ok := x.(*VarDecl); ok {
						c.declareMemberVar(cls, f)
					}
				}
				continue
			}
			c.declare(cls.scope, m)
		case *UsingDecl:
			if !c.inheritCtors(cls, d) {
				c.declare(cls.scope, m)
			}
		case *EnumDecl, *AliasDecl:
			c.declare(cls.scope, m)
		}
	}
}

// inheritCtors notes using Base::Base, which makes a base's constructors the class's own; it returns false for other
// declarations with using.
func (c *compiler) inheritCtors(cls *classInfo, d *UsingDecl) bool {
	n := len(d.Name.Quals)
	if n == 0 || d.Name.Operator != NoOperator || d.Name.Quals[n-1].Ident != d.Name.Ident {
		return false
	}
	cls.inherits = append(cls.inherits, d.Name.Ident)
	cls.userCtor = true
	return true
}

// declareMemberVar enters a field or a static member into the scope of its class.
func (c *compiler) declareMemberVar(cls *classInfo, d *VarDecl) {
	if !d.Field {
		c.declareVar(cls.scope, d)
		return
	}
	if d.Name != nil {
		cls.scope.put(&entity{kind: eVar, name: d.Name.Ident, vdecl: d, at: d.Pos()})
	}
}

func (c *compiler) declareMethod(cls *classInfo, d *FuncDecl, tmpl *TemplateDecl) {
	if d.Name == nil {
		return
	}
	f := &funcEnt{decl: d, env: cls.scope, tmpl: tmpl, class: cls, ofUnit: !c.inPrelude(d.Pos())}
	f.noContract = cls.noContract || !f.ofUnit
	name := funcKey(d)
	if d.Specs.Friend {
		if d.Body != nil { // else the definition is found where it stands
			if cls.friends == nil {
				cls.friends = map[string][]*funcEnt{}
			}
			f.class = nil
			cls.friends[name] = append(cls.friends[name], f)
		}
		return
	}
	if old := cls.scope.own(name); old != nil && old.kind == eFunc {
		if tmpl != nil && tmpl.Spec {
			if p := primaryOf(old, d); p != nil {
				p.specs = append(p.specs, f)
				return
			}
		}
		old.funcs = append(old.funcs, f)
		return
	}
	cls.scope.put(&entity{kind: eFunc, name: name, funcs: []*funcEnt{f}, at: d.Pos()})
}

// complete lays a class out: its bases and fields in order, each aligned. It does nothing for a class without a body.
func (c *compiler) complete(cls *classInfo) {
	if cls.state != 0 || cls.lambda != nil {
		return
	}
	if cls.decl == nil || !cls.decl.Complete {
		return
	}
	cls.state = 1
	if !c.enter(cls.decl.Pos()) {
		return
	}
	defer c.leave()
	c.declareMembers(cls)
	rs := c.resolverIn(cls.scope)
	t := cls.typ
	t.align = 1
	lay := layout{st: cls}
	for _, a := range cls.decl.Attrs {
		switch a.Name {
		case "packed", "__packed__":
			lay.packed = true
		default:
			t.align = max(t.align, rs.alignment(&a))
		}
	}
	for _, b := range cls.decl.Bases {
		bt := rs.typeOf(b.Type).T
		switch {
		case bt.kind == tBad:
		case bt.kind != tClass || !c.isComplete(bt):
			c.errorf(Incomplete, cls.decl.Pos(), "the base class %s is no complete class", bt)
		default:
			cls.bases = append(cls.bases, bt)
			lay.add(field{q: qt(bt), base: true})
		}
	}
	for _, m := range cls.decl.Members {
		switch d := m.(type) {
		case *VarDecl:
			if d.Field {
				c.addField(rs, &lay, d)
			}
		case *ClassDecl:
			if d.Anonymous {
				at := c.classFor(d, cls.scope)
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
		c.fatal(TooLarge, cls.decl.Pos(), "the class %s is larger than %d bytes", cls, maxBytes)
	}
	cls.state = 2
	for _, a := range cls.asserts {
		c.staticAssert(a, cls.scope)
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
	st     *classInfo
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
		if !(f.base && len(ft.class.fields) == 0) { // an empty base takes no room
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
func (cls *classInfo) fieldPath(name string, path []*field) []*field {
	for i := range cls.fields {
		f := &cls.fields[i]
		if f.name == name && !f.base && !f.anon {
			return append(path, f)
		}
	}
	for i := range cls.fields {
		f := &cls.fields[i]
		if f.base || f.anon {
			if p := f.q.T.class.fieldPath(name, append(path, f)); p != nil {
				return p
			}
		}
	}
	return nil
}

// methods returns the functions of a name in a class, its bases included.
func (c *compiler) methods(t *ctype, name string) []*funcEnt {
	if t.kind != tClass {
		return nil
	}
	c.declareMembers(t.class)
	c.complete(t.class)
	if t.class.scope == nil {
		return nil
	}
	if name == "(constructor)" {
		if x := t.class.scope.own(name); x != nil {
			return x.funcs
		}
		return nil
	}
	if x := c.find(t.class.scope, name, 0); x != nil && x.kind == eFunc {
		return x.funcs
	}
	return nil
}

// needsInit reports whether a class without constructors of its own still needs code to make an object: for
// default member initialisers or fields that have constructors.
func (c *compiler) needsInit(t *ctype) bool {
	switch t.kind {
	case tRef:
		return true
	case tArray:
		return c.needsInit(t.elem.T)
	case tClass:
		c.complete(t.class)
		if t.class.union {
			return false
		}
		if t.class.userCtor || t.class.lambda != nil {
			return t.class.userCtor
		}
		if t.class.state == 2 && t.class.inits != 0 {
			return t.class.inits == 1
		}
		t.class.inits = 2
		for i := range t.class.fields {
			f := &t.class.fields[i]
			if f.decl != nil && f.decl.Init != nil || c.needsInit(f.q.T) {
				t.class.inits = 1
				break
			}
		}
		return t.class.inits == 1
	}
	return false
}

// derivesFrom returns the fields that lead from a class to a base class, nil if it is no base; found for the class
// itself.
func derivesFrom(t, base *ctype) (path []*field, found bool) {
	if t == base {
		return nil, true
	}
	if t.kind != tClass || base.kind != tClass {
		return nil, false
	}
	for i := range t.class.fields {
		f := &t.class.fields[i]
		if f.base {
			if p, ok := derivesFrom(f.q.T, base); ok {
				return append([]*field{f}, p...), true
			}
		}
	}
	return nil, false
}
