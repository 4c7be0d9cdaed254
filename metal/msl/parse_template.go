package msl

// template parses a template, a specialisation or an explicit instantiation.
func (p *parser) template(w where, out *[]Decl) {
	at := p.base()
	p.advance()
	if p.kind() != tLt {
		p.instantiation(at, false, w, out)
		return
	}
	m := p.mark()
	defer p.pop(m)
	t := &TemplateDecl{declNode: declNode{at}}
	p.level++
	t.Params = p.templateParams()
	if p.bad {
		return
	}
	t.Spec = len(t.Params) == 0
	tc := tmplPrimary
	if t.Spec {
		tc = tmplSpecial
	}
	var decls []Decl
	switch {
	case p.kind() == kTemplate:
		p.template(w, &decls)
	case p.kind() == kUsing:
		p.using(w, true, &decls)
	case p.kind() == tIdent && (p.tok().text == "requires" || p.tok().text == "concept"):
		p.errorf(NotInMetal, "concepts are not part of the Metal Shading Language")
		return
	default:
		p.simpleDeclaration(w, tc, &decls)
	}
	if p.bad {
		return
	}
	if len(decls) != 1 {
		p.errorAt(at.At, BadTemplate, "a template declares one thing, not %d", len(decls))
		return
	}
	t.Decl = decls[0]
	*out = append(*out, t)
}

// instantiation parses an explicit instantiation, from behind the keyword template.
func (p *parser) instantiation(at Base, extern bool, w where, out *[]Decl) {
	if w != inNamespace {
		p.errorf(BadTemplate, "expected '<' after template, found %s", p.tok().name())
		return
	}
	var decls []Decl
	p.simpleDeclaration(w, tmplInstantiate, &decls)
	if p.bad {
		return
	}
	if len(decls) != 1 {
		p.errorAt(at.At, BadTemplate, "an explicit instantiation names one thing, not %d", len(decls))
		return
	}
	*out = append(*out, &InstantiateDecl{declNode: declNode{at}, Extern: extern, Decl: decls[0]})
}

// templateParams reads template parameters from < to >, declaring them.
func (p *parser) templateParams() []*TemplateParam {
	if !p.enter() {
		return nil
	}
	defer p.leave()
	p.advance()
	noGT := p.noGT
	p.noGT = true
	var list []*TemplateParam
	for p.kind() != tGt && !p.bad {
		list = append(list, p.templateParam())
		if !p.accept(tComma) {
			break
		}
	}
	p.noGT = noGT
	p.expect(tGt, "after the template parameters")
	return list
}

// templateParam reads one template parameter.
func (p *parser) templateParam() *TemplateParam {
	t := &TemplateParam{Base: p.base()}
	switch k := p.kind(); {
	case k == kTemplate:
		p.advance()
		if p.kind() != tLt {
			p.expect(tLt, "after template")
			return t
		}
		m := p.push()
		t.Templ = p.templateParams()
		p.pop(m)
		if t.Templ == nil && !p.bad {
			t.Templ = []*TemplateParam{}
		}
		if !p.accept(kClass) {
			p.expect(kTypename, "after the parameters of a template parameter")
		}
		p.templateParamName(t, nkTypeTemplate)
		if p.accept(tAssign) {
			t.DefaultType = p.typeID()
		}
	case k == kTypename && !(p.peek(1) == tIdent && p.peek(2) == tColonColon || p.peek(1) == tColonColon), k == kClass:
		p.advance()
		t.TypeParam = true
		p.templateParamName(t, nkType)
		if p.accept(tAssign) {
			t.DefaultType = p.typeID()
		}
	default:
		sr := p.specifiers(inParam)
		if sr.typ == nil {
			p.errorAt(t.At, BadTemplate, "expected a template parameter, found %s", p.f.token(t.At).name())
			return t
		}
		d := p.declarator(sr.typ, declMaybe)
		t.ValueType, t.Pack = d.typ, d.pack
		if d.name != nil {
			t.Name, t.At = d.name.Ident, d.at
		}
		p.declareLocal(d.sym, entry{kind: nkValue})
		if p.accept(tAssign) {
			t.Default = p.condExpr()
		}
	}
	return t
}

func (p *parser) templateParamName(t *TemplateParam, kind nameKind) {
	t.Pack = p.accept(tEllipsis)
	if p.kind() == tIdent {
		t.Name, t.At = p.tok().text, p.pos()
		p.declareLocal(p.tok().sym, entry{kind: kind})
		p.advance()
	}
}
