package msl

import "strings"

// typeParser reads types and specifiers.
type typeParser struct {
	in          *cursor
	classes     *classParser
	declarators *declaratorParser
	exprs       *exprParser
	names       *nameParser
	nodes       *nodes
	scopes      *scopes
}

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
func (p *typeParser) qualifier(q *Quals) bool {
	switch k := p.in.kind(); k {
	case kConst:
		q.Const = true
	case kVolatile:
		q.Volatile = true
	case kRestrict, kRestrictGNU:
		q.Restrict = true
	case kDevice, kConstant, kThread, kThreadgroup, kThreadgroupImageblock, kRayData, kObjectData:
		s := spaceKeywords[k]
		q.Twice = q.Twice || q.Space != SpaceNone && q.Space != s
		switch {
		case q.Space == SpaceNone || q.Space == SpaceThread: // thread is what is meant without one: another wins
			q.Space = s
		case q.Space != s && s != SpaceThread:
			p.in.errorf(BadSpecifiers, "two address spaces: %s and %s", q.Space, s)
		}
	case tIdent:
		if p.in.tok().text != "coherent" || p.in.peek(1) != tLParen && !p.in.declWordFollows() {
			return false
		}
		q.Coherent = true
		if p.in.peek(1) == tLParen {
			p.in.advance()
			p.in.skipBalanced()
			return true
		}
	default:
		return false
	}
	p.in.advance()
	return true
}

// storage reads a specifier that is no part of the type.
func (p *typeParser) storage(sr *specResult, w where) bool {
	s := &sr.specs
	switch k := p.in.kind(); k {
	case kStatic:
		s.Static = true
	case kInline, kInlineGNU:
		s.Inline = true
	case kConstexpr:
		s.Constexpr = true
	case kExtern:
		if p.in.peek(1) == tString {
			p.in.errorf(BadSpecifiers, "extern \"C\" stands before a declaration outside functions and classes")
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
		s.Function = p.in.tok().text
	case kTypedef:
		sr.typedef = true
	case kRegister:
	case kThreadLocal, kVirtual:
		p.in.errorf(NotInMetal, "'%s' is not part of the Metal Shading Language", p.in.tok().text)
		return false
	case kAlignas, kAttribute, tLBrack:
		n := p.in.i
		s.Attrs = p.attributes(s.Attrs)
		sr.anything = sr.anything || p.in.i > n
		return p.in.i > n
	default:
		return false
	}
	if w == inTypeID || w == inConversion || w == inParam && p.in.kind() != kConstexpr && p.in.kind() != kRegister {
		p.in.errorf(BadSpecifiers, "'%s' is not allowed here", p.in.tok().text)
	}
	p.in.advance()
	return true
}

// specifiers reads declaration specifiers: storage, qualifiers and one type. typ is nil if there is no type.
func (p *typeParser) specifiers(w where) (sr specResult) {
	var q Quals
	var basic basicSet
	start := p.in.i
	for !p.in.bad {
		k := p.in.kind()
		switch {
		case isBasicType(k):
			if sr.typ != nil {
				p.in.errorf(BadSpecifiers, "two types: '%s' comes after another one", p.in.tok().text)
				return sr
			}
			if basic.at == 0 {
				basic.at = p.in.pos()
			}
			basic.add(k)
			p.in.advance()
			continue
		case p.qualifier(&q):
			continue
		case k != tLBrack && p.storage(&sr, w) || k == tLBrack && w != inTypeID && w != inConversion &&
			p.in.peek(1) == tLBrack && p.storage(&sr, w):
			continue
		}
		if sr.typ != nil || basic.at != 0 || !p.typeSpecifier(&sr, w) {
			break
		}
		if sr.defines != nil && p.in.tok().flags&fBOL != 0 && w != inParam && w != inTypeID && p.in.declWordHere() {
			p.in.expect(tSemi, "after a class or an enumeration")
		}
	}
	sr.anything = sr.anything || p.in.i > start
	if p.in.bad {
		return sr
	}
	if basic.at != 0 {
		sr.typ = p.nodes.newType(basic.at, TypeBasic)
		if sr.typ.Basic = basic.name(); sr.typ.Basic == "" {
			p.in.errorAt(basic.at, BadSpecifiers, "%s", basic.problem())
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
func (p *typeParser) typeSpecifier(sr *specResult, w where) bool {
	at := p.in.pos()
	switch k := p.in.kind(); k {
	case kAuto:
		p.in.advance()
		sr.typ = p.nodes.newType(at, TypeAuto)
	case kDecltype:
		return p.decltypeSpecifier(sr)
	case kTypename:
		p.in.advance()
		p.names.typename = true
		n, _ := p.names.name(false)
		n.n.Typename = true
		sr.typ = p.nodes.newType(at, TypeNamed)
		sr.typ.Name = &n.n
	case kStruct, kClass, kUnion:
		p.classes.classSpecifier(sr, w)
	case kEnum:
		p.classes.enumSpecifier(sr, w)
	case kOperator:
		sr.conv = w == inClass
		return false
	case tIdent, tColonColon:
		if (w == inClass || w == inNamespace) && p.constructorFollows(w) {
			sr.ctor = true
			return false
		}
		if k == tIdent && w == inNamespace && p.in.peek(1) == tLParen && p.guideFollows() {
			sr.guide = true
			return false
		}
		if k == tIdent && p.in.peek(1) != tColonColon && p.in.peek(1) != tLt {
			e := p.scopes.lookup(p.in.tok().sym)
			if !e.kind.isType() {
				return false
			}
			n := p.nodes.newName()
			n.n = Name{Base: Base{at}, NamePart: NamePart{PartAt: at, Ident: p.in.tok().text}}
			p.in.advance()
			sr.typ, sr.scope = p.nodes.newType(at, TypeNamed), e.scope
			sr.typ.Name = &n.n
			return true
		}
		n := p.names.typeName(sr)
		if n == nil {
			return false
		}
		sr.typ = p.nodes.newType(at, TypeNamed)
		sr.typ.Name = &n.n
	default:
		return false
	}
	return true
}

// decltypeSpecifier reads decltype(x), decltype(auto), or a type that decltype qualifies.
func (p *typeParser) decltypeSpecifier(sr *specResult) bool {
	at := p.in.pos()
	if p.in.peek(1) == tLParen && p.in.peek(2) == kAuto {
		p.in.i += 3
		p.in.expect(tRParen, "after decltype(auto")
		sr.typ = p.nodes.newType(at, TypeDecltype)
		return true
	}
	n, info := p.names.name(false)
	if info.qualified {
		sr.typ = p.nodes.newType(at, TypeNamed)
		sr.typ.Name = &n.n
		return true
	}
	sr.typ = p.nodes.newType(at, TypeDecltype)
	sr.typ.X = n.n.Decltype
	return true
}

// constructorFollows tells whether the name at hand is that of a constructor: C( in the class C, C::C( outside.
func (p *typeParser) constructorFollows(w where) bool {
	yes := false
	if w == inClass {
		if p.classes.class == 0 || p.in.tok().sym != p.classes.class || p.in.kind() != tIdent {
			return false
		}
		if p.in.peek(1) == tLt { // C<T>() in the template C
			p.scopes.try(func() bool {
				p.names.name(false)
				yes = !p.in.bad && p.in.kind() == tLParen
				return false
			})
		}
		return yes || p.in.peek(1) == tLParen
	}
	if p.in.peek(1) == tColonColon && (p.in.peek(2) != tIdent || p.in.peek(3) != tLParen && p.in.peek(3) != tColonColon) {
		return false
	}
	if p.in.peek(1) == tColonColon || p.in.peek(1) == tLt {
		p.scopes.try(func() bool {
			n, _ := p.names.name(false)
			if k := len(n.n.Quals); k > 0 && n.n.Ident != "" {
				yes = !p.in.bad && n.n.Ident == n.n.Quals[k-1].Ident && p.in.kind() == tLParen
			}
			return false
		})
	}
	return yes
}

// guideFollows tells whether a deduction guide stands at hand: X(parameters) -> X<arguments>.
func (p *typeParser) guideFollows() bool {
	if p.scopes.lookup(p.in.tok().sym).kind != nkTypeTemplate {
		return false
	}
	yes := false
	p.scopes.try(func() bool {
		p.in.advance()
		yes = p.in.skipBalanced() && p.in.kind() == tArrow
		return false
	})
	return yes
}

// typeID reads a type without a name, as in casts and template arguments.
func (p *typeParser) typeID() *TypeExpr {
	at := p.in.pos()
	sr := p.specifiers(inTypeID)
	if sr.typ == nil {
		p.expectedType("a type")
		return p.nodes.newType(at, TypeBad)
	}
	d := p.declarators.declarator(sr.typ, declAbstract)
	return d.typ
}

// attributes reads [[...]], __attribute__((...)) and alignas(...), any number of them.
func (p *typeParser) attributes(list []Attr) []Attr {
	for !p.in.bad {
		switch {
		case p.in.kind() == tLBrack && p.in.peek(1) == tLBrack:
			p.in.advance()
			p.in.advance()
			list = p.attributeList(list, tRBrack)
			p.endAttribute(tRBrack)
			p.endAttribute(tRBrack)
		case p.in.kind() == kAttribute:
			p.in.advance()
			if p.in.kind() != tLParen || p.in.peek(1) != tLParen {
				p.in.errorf(BadAttribute, "expected '((' after __attribute__")
				return list
			}
			p.in.advance()
			p.in.advance()
			list = p.attributeList(list, tRParen)
			p.endAttribute(tRParen)
			p.endAttribute(tRParen)
		case p.in.kind() == kAlignas:
			a := Attr{At: p.in.pos(), Name: "alignas"}
			p.in.advance()
			p.in.expect(tLParen, "after alignas")
			if p.names.typeStarts() {
				x := &SizeofExpr{Align: true}
				x.At = p.in.pos()
				x.Type = p.typeID()
				a.Args = []Expr{x}
			} else {
				a.Args = []Expr{p.exprs.condExpr()}
			}
			p.in.expect(tRParen, "after the operand of alignas")
			list = append(list, a)
		default:
			return list
		}
	}
	return list
}

func (p *typeParser) endAttribute(k tok) {
	if !p.in.accept(k) && !p.in.bad {
		p.in.errorf(BadAttribute, "expected '%s' at the end of an attribute, found %s", punctText[k], p.in.tok().name())
	}
}

func (p *typeParser) attributeList(list []Attr, end tok) []Attr {
	for p.in.kind() != end && !p.in.bad {
		if p.in.accept(tComma) {
			continue
		}
		t := p.in.tok()
		if t.kind != tIdent && t.kind < tKeyword {
			p.in.errorf(BadAttribute, "expected the name of an attribute, found %s", t.name())
			return list
		}
		a := Attr{At: p.in.pos(), Name: t.text}
		p.in.advance()
		if p.in.kind() == tColonColon {
			p.in.advance()
			a.Name += "::" + p.in.tok().text
			p.in.advance()
		}
		if p.in.kind() == tLParen {
			p.in.advance()
			a.Args = []Expr{}
			for p.in.kind() != tRParen && !p.in.bad {
				if p.in.kind() == tRBrack || p.in.kind() == tEOF {
					break
				}
				a.Args = append(a.Args, p.exprs.assignExpr())
				if !p.in.accept(tComma) {
					break
				}
			}
			p.endAttribute(tRParen)
		}
		list = append(list, a)
		if p.in.kind() != tComma && p.in.kind() != end && !p.in.bad {
			p.in.errorf(BadAttribute, "expected ',' after an attribute, found %s", p.in.tok().name())
		}
	}
	return list
}

// noType reports a declaration without a type.
func (p *typeParser) noType(sr *specResult) {
	switch k := p.in.kind(); {
	case k == tIdent && p.in.tok().sym != 0 && sr.anything && (p.in.peek(1) == tLParen || p.in.peek(1) == tAssign):
		p.in.errorf(UnknownType, "%s has no type", p.in.tok().name())
	case k == tIdent && p.scopes.lookup(p.in.tok().sym).kind == nkNone || k == tIdent && p.in.peek(1) == tColonColon:
		p.unknownType()
	case k == kGoto, k == kTry, k == kThrow, k == kNew, k == kDelete:
		p.in.errorf(NotInMetal, "'%s' is not part of the Metal Shading Language", p.in.tok().text)
	case k == tTilde:
		p.in.errorf(NotInMetal, "destructors are not part of the Metal Shading Language")
	case k == tIdent:
		p.in.errorf(UnknownType, "%s is not a type", p.in.tok().name())
	default:
		p.in.errorf(UnexpectedToken, "expected a declaration, found %s", p.in.tok().name())
	}
}

// unknownType reports the name at hand, which is that of no type.
func (p *typeParser) unknownType() {
	name := p.in.nameText()
	if strings.TrimPrefix(name, "metal::") == "sampler" {
		p.in.errorf(Unsupported, "samplers and textures are not supported: pass a buffer and index it")
		return
	}
	p.in.errorf(UnknownType, "unknown type name '%s'", name)
}

// expectedType reports that there is no type where one must be.
func (p *typeParser) expectedType(what string) {
	if p.in.kind() == tIdent {
		p.in.errorf(UnknownType, "expected %s: '%s' is not known as a type", what, p.in.nameText())
		return
	}
	p.in.errorf(UnknownType, "expected %s, found %s", what, p.in.tok().name())
}
