package msl

// template parses a template, a specialisation or an explicit instantiation.
func (p *declParser) template(w where, out *[]Decl) {
	at := p.in.base()
	p.in.advance()
	if p.in.kind() != tLt {
		p.instantiation(at, false, w, out)
		return
	}
	m := p.scopes.mark()
	defer p.scopes.pop(m)
	t := &TemplateDecl{declNode: declNode{at}}
	p.scopes.level++
	t.Params = p.templateParams()
	if p.in.bad {
		return
	}
	t.Spec = len(t.Params) == 0
	tc := tmplPrimary
	if t.Spec {
		tc = tmplSpecial
	}
	var decls []Decl
	switch {
	case p.in.kind() == kTemplate:
		p.template(w, &decls)
	case p.in.kind() == kUsing:
		p.using(w, true, &decls)
	case p.in.kind() == tIdent && (p.in.tok().text == "requires" || p.in.tok().text == "concept"):
		p.in.errorf(NotInMetal, "concepts are not part of the Metal Shading Language")
		return
	default:
		p.simpleDeclaration(w, tc, &decls)
	}
	if p.in.bad {
		return
	}
	if len(decls) != 1 {
		p.in.errorAt(at.At, BadTemplate, "a template declares one thing, not %d", len(decls))
		return
	}
	t.Decl = decls[0]
	*out = append(*out, t)
}

// instantiation parses an explicit instantiation, from behind the keyword template.
func (p *declParser) instantiation(at Base, extern bool, w where, out *[]Decl) {
	if w != inNamespace {
		p.in.errorf(BadTemplate, "expected '<' after template, found %s", p.in.tok().name())
		return
	}
	var decls []Decl
	p.simpleDeclaration(w, tmplInstantiate, &decls)
	if p.in.bad {
		return
	}
	if len(decls) != 1 {
		p.in.errorAt(at.At, BadTemplate, "an explicit instantiation names one thing, not %d", len(decls))
		return
	}
	*out = append(*out, &InstantiateDecl{declNode: declNode{at}, Extern: extern, Decl: decls[0]})
}

// templateParams reads template parameters from < to >, declaring them.
func (p *declParser) templateParams() []*TemplateParam {
	if !p.in.enter() {
		return nil
	}
	defer p.in.leave()
	p.in.advance()
	noGT := p.in.noGT
	p.in.noGT = true
	var list []*TemplateParam
	for p.in.kind() != tGt && !p.in.bad {
		list = append(list, p.templateParam())
		if !p.in.accept(tComma) {
			break
		}
	}
	p.in.noGT = noGT
	p.in.expect(tGt, "after the template parameters")
	return list
}

// templateParam reads one template parameter.
func (p *declParser) templateParam() *TemplateParam {
	t := &TemplateParam{Base: p.in.base()}
	switch k := p.in.kind(); {
	case k == kTemplate:
		p.in.advance()
		if p.in.kind() != tLt {
			p.in.expect(tLt, "after template")
			return t
		}
		m := p.scopes.push()
		t.Templ = p.templateParams()
		p.scopes.pop(m)
		if t.Templ == nil && !p.in.bad {
			t.Templ = []*TemplateParam{}
		}
		if !p.in.accept(kClass) {
			p.in.expect(kTypename, "after the parameters of a template parameter")
		}
		p.templateParamName(t, nkTypeTemplate)
		if p.in.accept(tAssign) {
			t.DefaultType = p.types.typeID()
		}
	case k == kClass, k == kTypename && p.in.peek(1) != tColonColon &&
		(p.in.peek(1) != tIdent || p.in.peek(2) != tColonColon):
		p.in.advance()
		t.TypeParam = true
		p.templateParamName(t, nkType)
		if p.in.accept(tAssign) {
			t.DefaultType = p.types.typeID()
		}
	default:
		sr := p.types.specifiers(inParam)
		if sr.typ == nil {
			p.in.errorAt(t.At, BadTemplate, "expected a template parameter, found %s", p.in.f.token(t.At).name())
			return t
		}
		d := p.declarators.declarator(sr.typ, declMaybe)
		t.ValueType, t.Pack = d.typ, d.pack
		if d.name != nil {
			t.Name, t.At = d.name.Ident, d.at
		}
		p.scopes.declareLocal(d.sym, entry{kind: nkValue})
		if p.in.accept(tAssign) {
			t.Default = p.exprs.condExpr()
		}
	}
	return t
}

func (p *declParser) templateParamName(t *TemplateParam, kind nameKind) {
	t.Pack = p.in.accept(tEllipsis)
	if p.in.kind() == tIdent {
		t.Name, t.At = p.in.tok().text, p.in.pos()
		p.scopes.declareLocal(p.in.tok().sym, entry{kind: kind})
		p.in.advance()
	}
}
