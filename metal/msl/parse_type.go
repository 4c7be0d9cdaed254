package msl

// where says what a sequence of specifiers belongs to: it decides what is allowed there.
type where uint8

const (
	inNamespace where = iota
	inClass
	inBlock
	inParam
	inTypeID
	inConversion // the type in operator T
)

// specResult is what specifiers say.
type specResult struct {
	specs    Specs
	typ      *TypeExpr
	scope    *scope // of the type, if it is a class
	typedef  bool
	ctor     bool // a constructor's name follows instead of a type
	guide    bool // a deduction guide's name follows
	conv     bool // a conversion function follows
	defines  Decl // the class or enumeration that the specifiers define or declare
	anything bool // some specifier was there
}

// special tells that the name of a function without a result type follows.
func (sr *specResult) special() bool { return sr.ctor || sr.conv || sr.guide }

// basicSet counts the keywords of a basic type.
type basicSet struct {
	word   tok // void, bool, char, int, float, ... ; 0 if there is none
	long   int
	short  bool
	sign   tok
	at     Pos
	broken bool
}

func (b *basicSet) add(k tok) {
	switch k {
	case kLong:
		b.long++
	case kShort:
		b.broken = b.broken || b.short
		b.short = true
	case kSigned, kUnsigned:
		b.broken = b.broken || b.sign != 0
		b.sign = k
	default:
		b.broken = b.broken || b.word != 0
		b.word = k
	}
}

// problem says why the keywords make no type together.
func (b *basicSet) problem() string {
	if b.long > 0 && b.word == kDouble {
		return "Metal has no long double: use float"
	}
	return "these words make no type together"
}

// name returns the canonical name of the type, "" if the keywords do not fit together.
func (b *basicSet) name() string {
	isInt := b.word == 0 || b.word == kInt
	u := ""
	if b.sign == kUnsigned {
		u = "u"
	}
	switch {
	case b.broken || b.long > 2 || b.short && b.long > 0:
		return ""
	case b.short && isInt:
		return u + "short"
	case b.long > 0 && isInt:
		return u + "long"
	case b.short || b.long > 0:
		return ""
	case isInt:
		return u + "int"
	case b.word == kChar:
		return u + "char"
	case b.sign != 0:
		return ""
	}
	return keywords[b.word-tKeyword]
}

var spaceKeywords = map[tok]Space{
	kDevice: SpaceDevice, kConstant: SpaceConstant, kThread: SpaceThread, kThreadgroup: SpaceThreadgroup,
	kThreadgroupImageblock: SpaceThreadgroupImageblock, kRayData: SpaceRayData, kObjectData: SpaceObjectData,
}

// qualifier reads a cv-qualifier or an address space into q.
func (p *parser) qualifier(q *Quals) bool {
	switch k := p.kind(); k {
	case kConst:
		q.Const = true
	case kVolatile:
		q.Volatile = true
	case kRestrict, kRestrictGNU:
		q.Restrict = true
	case kDevice, kConstant, kThread, kThreadgroup, kThreadgroupImageblock, kRayData, kObjectData:
		s := spaceKeywords[k]
		switch {
		case q.Space == SpaceNone || q.Space == SpaceThread: // thread is what is meant without one: another wins
			q.Space = s
		case q.Space != s && s != SpaceThread:
			p.errorf(BadSpecifiers, "two address spaces: %s and %s", q.Space, s)
		}
	case tIdent:
		if p.tok().text != "coherent" || p.peek(1) != tLParen && !p.declWordFollows() {
			return false
		}
		q.Coherent = true
		if p.peek(1) == tLParen {
			p.advance()
			p.skipBalanced()
			return true
		}
	default:
		return false
	}
	p.advance()
	return true
}

// declWordFollows tells whether the token after the current one continues a declaration's specifiers.
func (p *parser) declWordFollows() bool {
	switch k := p.peek(1); k {
	case kDevice, kConst, kVolatile, kThreadgroup:
		return true
	}
	return false
}

// declWordHere tells whether the current token starts a declaration and cannot continue one after a class.
func (p *parser) declWordHere() bool {
	switch k := p.kind(); k {
	case kKernel, kTemplate, kStruct, kClass, kUnion, kEnum, kNamespace, kUsing, kTypedef, kInline, kStaticAssert:
		return true
	default:
		return isBasicType(k)
	}
}

// storage reads a specifier that is no part of the type.
func (p *parser) storage(sr *specResult, w where) bool {
	s := &sr.specs
	switch k := p.kind(); k {
	case kStatic:
		s.Static = true
	case kInline, kInlineGNU:
		s.Inline = true
	case kConstexpr:
		s.Constexpr = true
	case kExtern:
		if p.peek(1) == tString {
			p.errorf(BadSpecifiers, "extern \"C\" stands before a declaration outside functions and classes")
			return false
		}
		s.Extern = true
	case kFriend:
		s.Friend = true
	case kExplicit:
		s.Explicit = true
	case kMutable:
		s.Mutable = true
	case kKernel:
		s.Kernel = true
	case kVertex, kFragment:
		s.Function = p.tok().text
	case kTypedef:
		sr.typedef = true
	case kRegister:
	case kThreadLocal, kVirtual:
		p.errorf(NotInMetal, "'%s' is not part of the Metal Shading Language", p.tok().text)
		return false
	case kAlignas, kAttribute, tLBrack:
		n := p.i
		s.Attrs = p.attributes(s.Attrs)
		sr.anything = sr.anything || p.i > n
		return p.i > n
	default:
		return false
	}
	if w == inTypeID || w == inConversion || w == inParam && p.kind() != kConstexpr && p.kind() != kRegister {
		p.errorf(BadSpecifiers, "'%s' is not allowed here", p.tok().text)
	}
	p.advance()
	return true
}

// specifiers reads declaration specifiers: storage, qualifiers and one type. typ is nil if there is no type.
func (p *parser) specifiers(w where) (sr specResult) {
	var q Quals
	var basic basicSet
	start := p.i
	for !p.bad {
		k := p.kind()
		switch {
		case isBasicType(k):
			if sr.typ != nil {
				p.errorf(BadSpecifiers, "two types: '%s' comes after another one", p.tok().text)
				return sr
			}
			if basic.at == 0 {
				basic.at = p.pos()
			}
			basic.add(k)
			p.advance()
			continue
		case p.qualifier(&q):
			continue
		case k != tLBrack && p.storage(&sr, w) || k == tLBrack && w != inTypeID && w != inConversion &&
			p.peek(1) == tLBrack && p.storage(&sr, w):
			continue
		}
		if sr.typ != nil || basic.at != 0 || !p.typeSpecifier(&sr, w) {
			break
		}
		if sr.defines != nil && p.tok().flags&fBOL != 0 && w != inParam && w != inTypeID && p.declWordHere() {
			p.expect(tSemi, "after a class or an enumeration")
		}
	}
	sr.anything = sr.anything || p.i > start
	if p.bad {
		return sr
	}
	if basic.at != 0 {
		sr.typ = p.newType(basic.at, TypeBasic)
		if sr.typ.Basic = basic.name(); sr.typ.Basic == "" {
			p.errorAt(basic.at, BadSpecifiers, "%s", basic.problem())
		}
	}
	if sr.typ != nil && q != (Quals{}) {
		if sr.defines != nil && sr.typ.Kind == TypeNamed || sr.typ.Quals != (Quals{}) {
			t := *sr.typ
			sr.typ = &t
		}
		sr.typ.Quals = q
	}
	for _, a := range sr.specs.Attrs {
		switch a.Name {
		case "kernel":
			sr.specs.Kernel = true
		case "vertex", "fragment", "mesh", "object", "visible", "intersection", "stitchable":
			sr.specs.Function = a.Name
		}
	}
	return sr
}

// typeSpecifier reads a type that is no basic one; false if there is none.
func (p *parser) typeSpecifier(sr *specResult, w where) bool {
	at := p.pos()
	switch k := p.kind(); k {
	case kAuto:
		p.advance()
		sr.typ = p.newType(at, TypeAuto)
	case kDecltype:
		return p.decltypeSpecifier(sr)
	case kTypename:
		p.advance()
		p.typename = true
		n, _ := p.name(false)
		n.n.Typename = true
		sr.typ = p.newType(at, TypeNamed)
		sr.typ.Name = &n.n
	case kStruct, kClass, kUnion:
		p.classSpecifier(sr, w)
	case kEnum:
		p.enumSpecifier(sr, w)
	case kOperator:
		sr.conv = w == inClass
		return false
	case tIdent, tColonColon:
		if (w == inClass || w == inNamespace) && p.constructorFollows(w) {
			sr.ctor = true
			return false
		}
		if k == tIdent && w == inNamespace && p.peek(1) == tLParen && p.guideFollows() {
			sr.guide = true
			return false
		}
		if k == tIdent && p.peek(1) != tColonColon && p.peek(1) != tLt {
			e := p.lookup(p.tok().sym)
			if !e.kind.isType() {
				return false
			}
			n := p.newName()
			n.n = Name{Base: Base{at}, NamePart: NamePart{PartAt: at, Ident: p.tok().text}}
			p.advance()
			sr.typ, sr.scope = p.newType(at, TypeNamed), e.scope
			sr.typ.Name = &n.n
			return true
		}
		n := p.typeName(sr)
		if n == nil {
			return false
		}
		sr.typ = p.newType(at, TypeNamed)
		sr.typ.Name = &n.n
	default:
		return false
	}
	return true
}

// typeName reads a qualified name or one with template arguments if it is that of a type, and returns nil otherwise.
func (p *parser) typeName(sr *specResult) *nameNode {
	var n *nameNode
	known := false // the name is a type's, whatever is wrong with its arguments
	ok := p.try(func() bool {
		var info nameInfo
		n, info = p.name(false)
		known, sr.scope = info.kind.isType(), info.scope
		return known
	})
	if ok {
		return n
	}
	if !known {
		return nil
	}
	n, _ = p.name(false) // again, to report the error
	return n
}

// decltypeSpecifier reads decltype(x), decltype(auto), or a type that decltype qualifies.
func (p *parser) decltypeSpecifier(sr *specResult) bool {
	at := p.pos()
	if p.peek(1) == tLParen && p.peek(2) == kAuto {
		p.i += 3
		p.expect(tRParen, "after decltype(auto")
		sr.typ = p.newType(at, TypeDecltype)
		return true
	}
	n, info := p.name(false)
	if info.qualified {
		sr.typ = p.newType(at, TypeNamed)
		sr.typ.Name = &n.n
		return true
	}
	sr.typ = p.newType(at, TypeDecltype)
	sr.typ.X = n.n.Decltype
	return true
}

// constructorFollows tells whether the name at hand is that of a constructor: C( in the class C, C::C( outside.
func (p *parser) constructorFollows(w where) bool {
	yes := false
	if w == inClass {
		if p.class.sym == 0 || p.tok().sym != p.class.sym || p.kind() != tIdent {
			return false
		}
		if p.peek(1) == tLt { // C<T>() in the template C
			p.try(func() bool {
				p.name(false)
				yes = !p.bad && p.kind() == tLParen
				return false
			})
		}
		return yes || p.peek(1) == tLParen
	}
	if p.peek(1) == tColonColon && (p.peek(2) != tIdent || p.peek(3) != tLParen && p.peek(3) != tColonColon) {
		return false
	}
	if p.peek(1) == tColonColon || p.peek(1) == tLt {
		p.try(func() bool {
			n, _ := p.name(false)
			if k := len(n.n.Quals); k > 0 && n.n.Ident != "" {
				yes = !p.bad && n.n.Ident == n.n.Quals[k-1].Ident && p.kind() == tLParen
			}
			return false
		})
	}
	return yes
}

// guideFollows tells whether a deduction guide stands at hand: X(parameters) -> X<arguments>.
func (p *parser) guideFollows() bool {
	if p.lookup(p.tok().sym).kind != nkTypeTemplate {
		return false
	}
	yes := false
	p.try(func() bool {
		p.advance()
		yes = p.skipBalanced() && p.kind() == tArrow
		return false
	})
	return yes
}

// typeID reads a type without a name, as in casts and template arguments.
func (p *parser) typeID() *TypeExpr {
	at := p.pos()
	sr := p.specifiers(inTypeID)
	if sr.typ == nil {
		p.expectedType("a type")
		return p.newType(at, TypeBad)
	}
	d := p.declarator(sr.typ, declAbstract)
	return d.typ
}

// attributes reads [[...]], __attribute__((...)) and alignas(...), any number of them.
func (p *parser) attributes(list []Attr) []Attr {
	for !p.bad {
		switch {
		case p.kind() == tLBrack && p.peek(1) == tLBrack:
			p.advance()
			p.advance()
			list = p.attributeList(list, tRBrack)
			p.endAttribute(tRBrack)
			p.endAttribute(tRBrack)
		case p.kind() == kAttribute:
			p.advance()
			if p.kind() != tLParen || p.peek(1) != tLParen {
				p.errorf(BadAttribute, "expected '((' after __attribute__")
				return list
			}
			p.advance()
			p.advance()
			list = p.attributeList(list, tRParen)
			p.endAttribute(tRParen)
			p.endAttribute(tRParen)
		case p.kind() == kAlignas:
			a := Attr{At: p.pos(), Name: "alignas"}
			p.advance()
			p.expect(tLParen, "after alignas")
			if p.typeStarts() {
				x := &SizeofExpr{Align: true}
				x.At = p.pos()
				x.Type = p.typeID()
				a.Args = []Expr{x}
			} else {
				a.Args = []Expr{p.condExpr()}
			}
			p.expect(tRParen, "after the operand of alignas")
			list = append(list, a)
		default:
			return list
		}
	}
	return list
}

func (p *parser) endAttribute(k tok) {
	if !p.accept(k) && !p.bad {
		p.errorf(BadAttribute, "expected '%s' at the end of an attribute, found %s", punctText[k], p.tok().name())
	}
}

func (p *parser) attributeList(list []Attr, end tok) []Attr {
	for p.kind() != end && !p.bad {
		if p.accept(tComma) {
			continue
		}
		t := p.tok()
		if t.kind != tIdent && t.kind < tKeyword {
			p.errorf(BadAttribute, "expected the name of an attribute, found %s", t.name())
			return list
		}
		a := Attr{At: p.pos(), Name: t.text}
		p.advance()
		if p.kind() == tColonColon {
			p.advance()
			a.Name += "::" + p.tok().text
			p.advance()
		}
		if p.kind() == tLParen {
			p.advance()
			a.Args = []Expr{}
			for p.kind() != tRParen && !p.bad {
				if p.kind() == tRBrack || p.kind() == tEOF {
					break
				}
				a.Args = append(a.Args, p.assignExpr())
				if !p.accept(tComma) {
					break
				}
			}
			p.endAttribute(tRParen)
		}
		list = append(list, a)
		if p.kind() != tComma && p.kind() != end && !p.bad {
			p.errorf(BadAttribute, "expected ',' after an attribute, found %s", p.tok().name())
		}
	}
	return list
}
