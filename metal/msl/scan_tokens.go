package msl

// tok is the kind of a token.
type tok uint8

const (
	tEOF tok = iota
	tIdent
	tNumber
	tChar
	tString
	tPragma // text: "name=value", see PragmaStmt
	tOther  // a character that is no C++; only inside macros and skipped text

	// Punctuators. The preprocessor's output splits >> and >>= into single characters (flag fJoin), because template
	// argument lists may end with them; the parser joins them again in expressions.
	tLParen
	tRParen
	tLBrack
	tRBrack
	tLBrace
	tRBrace
	tComma
	tSemi
	tColon
	tColonColon
	tQuestion
	tDot
	tDotStar
	tEllipsis
	tArrow
	tArrowStar
	tHash
	tHashHash
	tAssign
	tAdd
	tSub
	tMul
	tDiv
	tRem
	tAnd
	tOr
	tXor
	tTilde
	tNot
	tLAnd
	tLOr
	tEq
	tNe
	tLt
	tGt
	tLe
	tGe
	tShl
	tShr
	tInc
	tDec
	tAddAssign
	tSubAssign
	tMulAssign
	tDivAssign
	tRemAssign
	tAndAssign
	tOrAssign
	tXorAssign
	tShlAssign
	tShrAssign

	tKeyword // keywords follow, in the order of the list keywords
)

// The keywords, as kinds of token.
const (
	kAlignas tok = tKeyword + iota
	kAlignof
	kAsType
	kAsm
	kAsmGNU
	kAttribute
	kAuto
	kBfloat
	kBool
	kBreak
	kCase
	kCatch
	kChar
	kClass
	kConst
	kConstCast
	kConstant
	kConstexpr
	kContinue
	kDecltype
	kDefault
	kDelete
	kDevice
	kDo
	kDouble
	kDynamicCast
	kElse
	kEnum
	kExplicit
	kExtern
	kFalse
	kFloat
	kFor
	kFragment
	kFriend
	kGoto
	kHalf
	kIf
	kInline
	kInlineGNU
	kInt
	kKernel
	kLong
	kMutable
	kNamespace
	kNew
	kNoexcept
	kNullptr
	kObjectData
	kOperator
	kPrivate
	kProtected
	kPublic
	kRayData
	kRegister
	kReinterpretCast
	kRestrict
	kRestrictGNU
	kReturn
	kShort
	kSigned
	kSizeof
	kStatic
	kStaticAssert
	kStaticCast
	kStruct
	kSwitch
	kTemplate
	kThis
	kThread
	kThreadLocal
	kThreadgroup
	kThreadgroupImageblock
	kThrow
	kTrue
	kTry
	kTypedef
	kTypeid
	kTypename
	kUnion
	kUnsigned
	kUsing
	kVertex
	kVirtual
	kVoid
	kVolatile
	kWhile
)

// keywords are in the order of the constants above. The symbol of keywords[i] is i+1.
var keywords = [...]string{
	"alignas", "alignof", "as_type", "asm", "__asm__", "__attribute__", "auto", "bfloat", "bool", "break", "case",
	"catch", "char", "class", "const", "const_cast", "constant", "constexpr", "continue", "decltype", "default",
	"delete", "device", "do", "double", "dynamic_cast", "else", "enum", "explicit", "extern", "false", "float", "for",
	"fragment", "friend", "goto", "half", "if", "inline", "__inline__", "int", "kernel", "long", "mutable",
	"namespace", "new", "noexcept", "nullptr", "object_data", "operator", "private", "protected", "public",
	"ray_data", "register", "reinterpret_cast", "__restrict", "__restrict__", "return", "short", "signed", "sizeof",
	"static", "static_assert", "static_cast", "struct", "switch", "template", "this", "thread", "thread_local",
	"threadgroup", "threadgroup_imageblock", "throw", "true", "try", "typedef", "typeid", "typename", "union",
	"unsigned", "using", "vertex", "virtual", "void", "volatile", "while",
}

// alternatives are the words that stand for operators, in the order of their symbols, which follow those of the
// keywords.
var alternatives = [...]struct {
	word string
	kind tok
}{
	{"and", tLAnd}, {"or", tLOr}, {"not", tNot}, {"xor", tXor}, {"bitand", tAnd}, {"bitor", tOr}, {"compl", tTilde},
	{"not_eq", tNe}, {"and_eq", tAndAssign}, {"or_eq", tOrAssign}, {"xor_eq", tXorAssign},
}

// alternative returns the operator that the symbol of a word stands for, tIdent if it is an ordinary name.
func alternative(sym int32) tok {
	if i := int(sym) - len(keywords) - 1; i >= 0 && i < len(alternatives) {
		return alternatives[i].kind
	}
	return tIdent
}

var punctText = map[tok]string{
	tLParen: "(", tRParen: ")", tLBrack: "[", tRBrack: "]", tLBrace: "{", tRBrace: "}", tComma: ",", tSemi: ";",
	tColon: ":", tColonColon: "::", tQuestion: "?", tDot: ".", tDotStar: ".*", tEllipsis: "...", tArrow: "->",
	tArrowStar: "->*", tHash: "#", tHashHash: "##", tAssign: "=", tAdd: "+", tSub: "-", tMul: "*", tDiv: "/",
	tRem: "%", tAnd: "&", tOr: "|", tXor: "^", tTilde: "~", tNot: "!", tLAnd: "&&", tLOr: "||", tEq: "==", tNe: "!=",
	tLt: "<", tGt: ">", tLe: "<=", tGe: ">=", tShl: "<<", tShr: ">>", tInc: "++", tDec: "--", tAddAssign: "+=",
	tSubAssign: "-=", tMulAssign: "*=", tDivAssign: "/=", tRemAssign: "%=", tAndAssign: "&=", tOrAssign: "|=",
	tXorAssign: "^=", tShlAssign: "<<=", tShrAssign: ">>=",
}

// Flags of a token.
const (
	fSpace    uint8 = 1 << iota // white space stands before it
	fBOL                        // the first of its line
	fJoin                       // a > written together with the > or = that follows
	fUnroll                     // the first word of a loop that a pragma asks to unroll
	fKeepLoop                   // ... or not to
)

// token is a token. Its place is an offset into the text of a source.
type token struct {
	kind  tok
	flags uint8
	src   uint16 // index in the sources of the file and its parents
	off   uint32 // into the spliced text
	sym   int32  // identifiers: the symbol, from 1
	mac   int32  // made by this macro (the outermost one); 0 for none
	text  string
}

// name returns the token as messages show it.
func (t *token) name() string {
	switch t.kind {
	case tEOF:
		return "the end of the text"
	case tPragma:
		return "a pragma"
	}
	if t.kind >= tKeyword {
		return "the keyword '" + t.text + "'"
	}
	return "'" + clip(t.text) + "'"
}

// clip shortens a text for a message.
func clip(s string) string {
	if len(s) > 60 {
		return s[:57] + "..."
	}
	return s
}

// symtab gives identifiers numbers: keywords the first ones, then in order of appearance. A table is frozen once
// another one has it as its parent.
type symtab struct {
	parent *symtab
	base   int32    // symbols of the parents
	names  []string // names[i] has the symbol base+i+1
	slots  []int32  // open addressing; 0 is free
}

func hashIdent(s string) uint32 {
	h := uint32(2166136261)
	for i := 0; i < len(s); i++ {
		h = (h ^ uint32(s[i])) * 16777619
	}
	return h
}

func newSymtab(parent *symtab) *symtab {
	t := &symtab{parent: parent, slots: make([]int32, 256)}
	if parent != nil {
		t.base = parent.count()
		return t
	}
	for _, k := range keywords {
		t.intern(k, hashIdent(k))
	}
	for _, a := range alternatives {
		t.intern(a.word, hashIdent(a.word))
	}
	return t
}

func (t *symtab) count() int32 { return t.base + int32(len(t.names)) }

func (t *symtab) find(s string, h uint32) int32 {
	mask := uint32(len(t.slots) - 1)
	for i := h & mask; t.slots[i] != 0; i = (i + 1) & mask {
		if n := t.slots[i]; t.names[n-t.base-1] == s {
			return n
		}
	}
	return 0
}

// intern returns the symbol of s, whose hash is h.
func (t *symtab) intern(s string, h uint32) int32 {
	for q := t; q != nil; q = q.parent {
		if n := q.find(s, h); n != 0 {
			return n
		}
	}
	t.names = append(t.names, s)
	if 2*len(t.names) > len(t.slots) {
		t.slots = make([]int32, 2*len(t.slots))
		for i, name := range t.names[:len(t.names)-1] {
			t.place(t.base+int32(i)+1, hashIdent(name))
		}
	}
	n := t.count()
	t.place(n, h)
	return n
}

func (t *symtab) place(n int32, h uint32) {
	mask := uint32(len(t.slots) - 1)
	i := h & mask
	for t.slots[i] != 0 {
		i = (i + 1) & mask
	}
	t.slots[i] = n
}

// sym returns the symbol of s.
func (t *symtab) sym(s string) int32 { return t.intern(s, hashIdent(s)) }
