package msl

// declareAll enters the declarations of a file, namespace or class into its scope. Nothing is evaluated yet.
func (c *compiler) declareAll(e *env, decls []Decl) {
	for _, d := range decls {
		c.declare(e, d)
	}
}

// declare enters one declaration into a namespace or class.
func (c *compiler) declare(e *env, d Decl) {
	switch d := d.(type) {
	case *VarDecl:
		c.declareVar(e, d)
	case *FuncDecl:
		c.declareFunc(e, d, nil)
	case *ClassDecl:
		c.declareClass(e, d)
	case *EnumDecl:
		c.declareEnum(e, d)
	case *AliasDecl:
		c.declareType(e, &entity{kind: eType, name: d.Name, alias: d, at: d.Pos()})
	case *NamespaceDecl:
		c.declareAll(c.openNamespace(e, d), d.Decls)
	case *NamespaceAliasDecl:
		if ns := c.findNamespace(e, d.Target); ns != nil {
			e.put(&entity{kind: eNamespace, name: d.Name, ns: ns, at: d.Pos()})
		}
	case *UsingDirectiveDecl:
		if ns := c.findNamespace(e, d.Name); ns != nil {
			e.using = append(e.using, ns)
		}
	case *UsingDecl:
		c.declareUsing(e, d)
	case *TemplateDecl:
		c.declareTemplate(e, d)
	case *InstantiateDecl:
		c.instantiations = append(c.instantiations, pendingInst{d, e})
	case *StaticAssertDecl:
		c.asserts = append(c.asserts, pendingAssert{d, e})
	case *PragmaStmt:
		switch d.Name {
		case "contract":
			c.noContract = d.Value == "off"
		}
	}
}

type pendingInst struct {
	d *InstantiateDecl
	e *env
}

type pendingAssert struct {
	d *StaticAssertDecl
	e *env
}

func (c *compiler) openNamespace(e *env, d *NamespaceDecl) *env {
	name := d.Name
	if name == "" {
		name = "(unnamed)"
	}
	if x := e.own(name); x != nil && x.kind == eNamespace {
		return x.ns
	}
	ns := &env{kind: envNamespace, up: e, name: d.Name}
	if e.frozen != nil {
		if x := e.frozen.own(name); x != nil && x.kind == eNamespace {
			ns.frozen = x.ns
			c.overlay[x.ns] = ns
		}
	}
	switch {
	case ns.frozen != nil: // predeclared functions are found there
	case name == "metal" && e.up == nil:
		ns.metal = 1
	case e.metal == 1 && name == "fast":
		ns.metal = 2
	case e.metal == 1 && name == "precise":
		ns.metal = 3
	}
	e.put(&entity{kind: eNamespace, name: name, ns: ns, at: d.Pos()})
	if d.Name == "" || d.Inline {
		e.using = append(e.using, ns)
	}
	return ns
}

// findNamespace resolves the name of a namespace, reporting one that does not exist.
func (c *compiler) findNamespace(e *env, n *Name) *env {
	cur := e
	first := true
	if n.Global {
		for cur.up != nil {
			cur = cur.up
		}
		first = false
	}
	for _, p := range append(append([]NamePart(nil), n.Quals...), n.NamePart) {
		var x *entity
		if first {
			x = c.lookup(cur, p.Ident)
		} else {
			x = c.find(cur, p.Ident, 0)
		}
		first = false
		if x == nil || x.kind != eNamespace {
			c.errorf(Undeclared, n.Pos(), "there is no namespace '%s'", p.Ident)
			return nil
		}
		cur = x.ns
	}
	return cur
}

func (c *compiler) declareUsing(e *env, d *UsingDecl) {
	x := c.resolverIn(e).resolveEntity(d.Name)
	if x == nil {
		return
	}
	y := *x
	if old := e.own(x.name); old != nil && old.kind == eFunc && x.kind == eFunc {
		y = *mergeEntities(old, x)
	}
	e.put(&y)
}

func (c *compiler) declareVar(e *env, d *VarDecl) {
	t := d.Type
	for t != nil && t.Kind == TypeArray {
		t = t.Elem
	}
	if t != nil && !c.freezing && d.Name != nil && t.Kind != TypePointer && t.Kind != TypeReference &&
		(t.Quals.Space == SpaceThreadgroup || t.Quals.Space == SpaceDevice) {
		c.errorf(AddressSpace, d.Pos(), "the variable '%s' outside functions must be in the constant address space",
			d.Name.Ident)
	}
	if d.Field || d.Name == nil {
		return
	}
	if len(d.Name.Quals) > 0 { // the definition of a static member: its declaration has the value
		return
	}
	x := &entity{kind: eVar, name: d.Name.Ident, vdecl: d, at: d.Pos()}
	old := e.put(x)
	if _, is := d.constantAttr(); is && !c.freezing {
		c.link.vars = append(c.link.vars, x)
	}
	if old == nil || c.freezing {
		return
	}
	if old.kind == eVar && old.vdecl != nil && (old.vdecl.Specs.Extern || d.Specs.Extern) {
		if d.Specs.Extern {
			e.put(old)
		}
		return
	}
	c.redefined(x.name, d.Pos(), old)
}

func (c *compiler) redefined(name string, at Pos, old *entity) {
	note := ""
	if old.at != 0 {
		l := c.file.Location(old.at)
		note = noteAt("the first declaration is at", l)
	}
	c.errorNote(Redefinition, at, note, "'%s' is declared twice", name)
}

// hides reports a parameter of a function that has the name of one of its template's parameters. Local variables may:
// texts rely on it.
func (c *compiler) hides(e *env, name string, at Pos) {
	if name == "" || c.inPrelude(at) {
		return
	}
	for ; e != nil && e.kind != envNamespace; e = e.up {
		if e.kind == envTemplate && e.own(name) != nil {
			c.errorf(Redefinition, at, "'%s' is the name of a template parameter, and is declared again inside the template",
				name)
			return
		}
	}
}

func (c *compiler) declareType(e *env, x *entity) {
	old := e.put(x)
	if old != nil && old.kind != eType && old.kind != eFunc && old.kind != eVar {
		c.redefined(x.name, x.at, old)
	}
}

func (c *compiler) declareClass(e *env, d *ClassDecl) {
	if d.Name == nil || d.Name.HasArgs {
		return
	}
	name := d.Name.Ident
	if old := e.own(name); old != nil && old.class != nil {
		if old.class.Complete && d.Complete && old.class != d {
			c.redefined(name, d.Pos(), old)
			return
		}
		if d.Complete && !old.class.Complete {
			old.class = d
		}
		return
	}
	if e.frozen != nil && !d.Complete && c.find(e.frozen, name, 0) != nil {
		return
	}
	c.declareType(e, &entity{kind: eType, name: name, class: d, at: d.Pos()})
}

func (c *compiler) declareEnum(e *env, d *EnumDecl) {
	name := "(unnamed enum)"
	if d.Name != nil {
		name = d.Name.Ident
		c.declareType(e, &entity{kind: eType, name: name, enum: d, at: d.Pos()})
	}
	if d.Scoped {
		return
	}
	for i := range d.Values { // evaluated when used
		e.put(&entity{kind: eConst, name: d.Values[i].Name, enum: d, at: d.Values[i].At})
	}
}

func (c *compiler) declareFunc(e *env, d *FuncDecl, tmpl *TemplateDecl) {
	if d.Name == nil {
		return
	}
	f := &funcEnt{decl: d, env: e, tmpl: tmpl, class: e.class, ofUnit: !c.freezing, noContract: c.noContract}
	if len(d.Name.Quals) > 0 {
		c.defineMember(e, d, tmpl)
		return
	}
	name := funcKey(d)
	c.order = append(c.order, f)
	old := e.own(name)
	switch {
	case old == nil:
		e.put(&entity{kind: eFunc, name: name, funcs: []*funcEnt{f}, at: d.Pos()})
	case old.kind == eFunc:
		if tmpl != nil && tmpl.Spec {
			if primary := primaryOf(old, d); primary != nil {
				primary.specs = append(primary.specs, f)
				return
			}
		}
		old.funcs = append(old.funcs, f)
	case old.kind == eType && (old.class != nil || old.enum != nil): // a function hides a class of the same name
		e.put(&entity{kind: eFunc, name: name, funcs: []*funcEnt{f}, at: d.Pos(), hidden: old})
	default:
		c.redefined(name, d.Pos(), old)
	}
	if tmpl != nil && tmpl.Spec && old == nil && e.frozen != nil {
		if x := c.find(e.frozen, name, 0); x != nil && x.kind == eFunc {
			if p := primaryOf(x, d); p != nil {
				c.extraSpecs[p] = append(c.extraSpecs[p], f)
			}
		}
	}
}

// primaryOf finds the function template that a full specialisation belongs to: by the number of parameters.
func primaryOf(x *entity, d *FuncDecl) *funcEnt {
	for _, f := range x.funcs {
		if f.tmpl != nil && !f.tmpl.Spec && len(f.decl.Params) == len(d.Params) {
			return f
		}
	}
	return nil
}

// funcKey is the name that a function is looked up by.
func funcKey(d *FuncDecl) string {
	switch d.Kind {
	case FuncConstructor:
		return "(constructor)"
	case FuncConversion:
		return "(conversion)"
	case FuncOperator:
		return operatorKey(d.Name.Operator)
	case FuncGuide:
		return guidePrefix + d.Name.Ident
	}
	return d.Name.Ident
}

func operatorKey(op Operator) string { return "operator" + op.String() }

// defineMember records the definition of a method outside its class.
func (c *compiler) defineMember(e *env, d *FuncDecl, tmpl *TemplateDecl) {
	qual := d.Name.Quals[len(d.Name.Quals)-1].Ident
	key := memberKey{qual, funcKey(d)}
	c.members[key] = append(c.members[key], memberDef{d, tmpl, e})
}

type memberKey struct{ class, name string }

type memberDef struct {
	decl *FuncDecl
	tmpl *TemplateDecl
	env  *env
}

func (c *compiler) declareTemplate(e *env, d *TemplateDecl) {
	switch x := d.Decl.(type) {
	case *FuncDecl:
		c.declareFunc(e, x, d)
	case *ClassDecl:
		if x.Name == nil {
			return
		}
		c.addTemplate(e, d, x.Name, x.Complete)
	case *AliasDecl:
		c.addTemplate(e, d, &Name{NamePart: NamePart{Ident: x.Name}}, true)
	case *VarDecl:
		if x.Name == nil || len(x.Name.Quals) > 0 {
			return
		}
		c.addTemplate(e, d, x.Name, true)
	case *TemplateDecl:
		if f, ok := x.Decl.(*FuncDecl); ok {
			c.declareFunc(e, f, x)
		}
	}
}

func (c *compiler) addTemplate(e *env, d *TemplateDecl, n *Name, complete bool) {
	x := e.own(n.Ident)
	if n.HasArgs || d.Spec { // a specialisation
		if x == nil && e.frozen != nil {
			x = c.find(e.frozen, n.Ident, 0)
		}
		if x == nil || x.kind != eTemplate {
			c.errorf(Undeclared, d.Pos(), "there is no template '%s' to specialise", n.Ident)
			return
		}
		if x.env == e || c.freezing {
			x.tmpl.specs = append(x.tmpl.specs, d)
		} else {
			c.extraTmpl[x.tmpl] = append(c.extraTmpl[x.tmpl], d)
		}
		return
	}
	if x != nil && x.kind == eTemplate {
		if complete {
			x.tmpl.decl = mergeDefaults(d, x.tmpl.decl)
		}
		return
	}
	old := e.put(&entity{kind: eTemplate, name: n.Ident, at: d.Pos(), tmpl: &tmplInfo{name: n.Ident, decl: d, env: e}})
	if old != nil {
		c.redefined(n.Ident, d.Pos(), old)
	}
}

// mergeDefaults returns a template's definition with the default arguments of its earlier declaration.
func mergeDefaults(d, old *TemplateDecl) *TemplateDecl {
	if old == nil || len(old.Params) != len(d.Params) {
		return d
	}
	m := *d
	m.Params = nil
	for i, p := range d.Params {
		if p.DefaultType == nil && p.Default == nil && (old.Params[i].DefaultType != nil || old.Params[i].Default != nil) {
			cp := *p
			cp.DefaultType, cp.Default = old.Params[i].DefaultType, old.Params[i].Default
			p = &cp
		}
		m.Params = append(m.Params, p)
	}
	return &m
}
