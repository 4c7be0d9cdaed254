package msl

// Pos is a place in the preprocessed text: a handle that File.Location and File.KirPos turn into names, lines and
// columns. Handles of a Parent's text and of the text parsed on top of it never collide. The zero Pos is unknown.
type Pos int32

// Node is a node of the syntax tree. Nodes are immutable once Parse has returned, so that a parsed prelude may be
// shared by any number of units and goroutines.
type Node interface {
	Pos() Pos // where the node starts; for binary, assignment and postfix operators, the operator
}

// Base holds a node's place.
type Base struct{ At Pos }

// Pos returns where the node is.
func (b Base) Pos() Pos { return b.At }

// Expr is an expression: a pointer to one of the types below whose name ends in Expr or Lit, or to an InitList.
type Expr interface {
	Node
	expr()
}

// Stmt is a statement: a pointer to one of the types whose name ends in Stmt.
type Stmt interface {
	Node
	stmt()
}

// Decl is a declaration: a pointer to one of the types whose name ends in Decl, or to a PragmaStmt.
type Decl interface {
	Node
	decl()
}

type exprNode struct{ Base }

func (exprNode) expr() {}

type stmtNode struct{ Base }

func (stmtNode) stmt() {}

type declNode struct{ Base }

func (declNode) decl() {}

// Operator is an operator, of an expression or in the name of an operator function.
type Operator uint8

// The operators. NoOperator marks a plain assignment and the absence of an operator.
const (
	NoOperator Operator = iota
	OperatorAdd
	OperatorSub
	OperatorMul
	OperatorDiv
	OperatorRem
	OperatorAnd
	OperatorOr
	OperatorXor
	OperatorShl
	OperatorShr
	OperatorLAnd
	OperatorLOr
	OperatorEq
	OperatorNe
	OperatorLt
	OperatorLe
	OperatorGt
	OperatorGe
	OperatorComma
	OperatorNot    // ~
	OperatorLNot   // !
	OperatorPlus   // unary +
	OperatorNeg    // unary -
	OperatorDeref  // unary *
	OperatorAddrOf // unary &
	OperatorInc    // ++, before or after its operand
	OperatorDec    // --
	OperatorAssign // =: only in names of operator functions
	OperatorAddAssign
	OperatorSubAssign
	OperatorMulAssign
	OperatorDivAssign
	OperatorRemAssign
	OperatorAndAssign
	OperatorOrAssign
	OperatorXorAssign
	OperatorShlAssign
	OperatorShrAssign
	OperatorCall  // operator()
	OperatorIndex // operator[]
	OperatorArrow // operator->
)

var operatorText = [...]string{
	NoOperator: "", OperatorAdd: "+", OperatorSub: "-", OperatorMul: "*", OperatorDiv: "/", OperatorRem: "%",
	OperatorAnd: "&", OperatorOr: "|", OperatorXor: "^", OperatorShl: "<<", OperatorShr: ">>", OperatorLAnd: "&&",
	OperatorLOr: "||", OperatorEq: "==", OperatorNe: "!=", OperatorLt: "<", OperatorLe: "<=", OperatorGt: ">",
	OperatorGe: ">=", OperatorComma: ",", OperatorNot: "~", OperatorLNot: "!", OperatorPlus: "+", OperatorNeg: "-",
	OperatorDeref: "*", OperatorAddrOf: "&", OperatorInc: "++", OperatorDec: "--", OperatorAssign: "=",
	OperatorAddAssign: "+=", OperatorSubAssign: "-=", OperatorMulAssign: "*=", OperatorDivAssign: "/=",
	OperatorRemAssign: "%=", OperatorAndAssign: "&=", OperatorOrAssign: "|=", OperatorXorAssign: "^=",
	OperatorShlAssign: "<<=", OperatorShrAssign: ">>=", OperatorCall: "()", OperatorIndex: "[]", OperatorArrow: "->",
}

// String returns the operator as it is spelt: OperatorNeg and OperatorSub are both "-".
func (o Operator) String() string { return operatorText[o] }

// A Name is a possibly qualified name: metal::fast::exp, vec<T, 4>, ::f, T::template g<int>, operator+.
type Name struct {
	Base
	Global   bool       // starts with ::
	Typename bool       // preceded by typename
	Quals    []NamePart // what stands before the last ::, outermost first; nil for most names
	NamePart            // the last part
}

// NamePart is one part of a Name: an identifier, perhaps with template arguments, or the name of an operator function.
type NamePart struct {
	PartAt   Pos
	Ident    string // "" for operator and conversion functions and for decltype
	Template bool   // the keyword template stands before it
	HasArgs  bool   // template arguments are given: Args may still be empty, as in f<>
	Args     []TemplateArg
	// Operator is that of an operator function: operator+= has OperatorAddAssign. Unary operators have the names of the
	// binary ones: both + are OperatorAdd, both - OperatorSub, both * OperatorMul, both & OperatorAnd.
	Operator Operator
	Conv     *TypeExpr // conversion function: operator float()
	Decltype Expr      // decltype(x):: as the first qualifier
}

// TemplateArg is a template argument: a type (or the name of a template) or an expression.
type TemplateArg struct {
	Type *TypeExpr // one of Type and X is nil
	X    Expr
	Pack bool // followed by ...
}

// Space is an address space as written.
type Space uint8

// The address spaces a declaration can name. SpaceNone: the declaration names none.
const (
	SpaceNone Space = iota
	SpaceDevice
	SpaceConstant
	SpaceThread
	SpaceThreadgroup
	SpaceThreadgroupImageblock
	SpaceRayData
	SpaceObjectData
)

var spaceText = [...]string{
	"", "device", "constant", "thread", "threadgroup", "threadgroup_imageblock", "ray_data", "object_data",
}

// String returns the keyword of the address space, "" for none.
func (s Space) String() string { return spaceText[s] }

// Quals are the qualifiers of one level of a type: in `device const float *const p` the pointee has device and
// const, and the pointer const.
type Quals struct {
	Const, Volatile bool
	Coherent        bool // coherent(device), coherent(system)
	Twice           bool // thread beside another address space
	Restrict        bool // __restrict
	Space           Space
}

// TypeKind says what a TypeExpr is.
type TypeKind uint8

// The kinds of TypeExpr.
const (
	TypeBad       TypeKind = iota
	TypeBasic              // Basic: void, bool, char, uchar, short, ushort, int, uint, long, ulong, half, ...
	TypeNamed              // Name
	TypeAuto               // auto
	TypeDecltype           // X; X is nil for decltype(auto)
	TypePointer            // Elem
	TypeReference          // Elem; RValue for &&
	TypeArray              // Elem, X: the size, nil for []
	TypeFunc               // Elem: the result; Params; Quals: what a method's own qualifiers are
	TypeClass              // Struct: defined where it is used
	TypeEnum               // Enum: defined where it is used
	TypeMemberPtr          // Elem; Name: the class (refused by the checks)
)

// TypeExpr is a type as written. Declarators are already resolved: `device float (*p)[4]` is a pointer to an array of
// four device floats. Spellings of basic types are canonical: `unsigned long long int` is "ulong", `signed char` is
// "char".
type TypeExpr struct {
	Base
	Kind     TypeKind
	Quals    Quals // of this level; qualifiers written on an array apply to its elements and are found there
	RValue   bool
	Pack     bool // Ts... : in parameters, template arguments and base lists
	Trailing bool // a result type after ->, which sees the function's parameters
	Basic    string
	Name     *Name
	Elem     *TypeExpr
	X        Expr
	Params   []*ParamDecl
	Class    *ClassDecl
	Enum     *EnumDecl
}

// The expressions.
type (
	// BadExpr stands where an expression could not be parsed; an error has been reported.
	BadExpr struct{ exprNode }

	// IntLit is an integer literal. Its type follows from C++: the first of int, uint (only if not Decimal or if
	// Unsigned), long, ulong that holds it, starting at long for Long.
	IntLit struct {
		exprNode
		Value    uint64
		Decimal  bool
		Unsigned bool // suffix u
		Long     bool // suffix l or ll
	}

	// FloatLit is a floating literal. Without a suffix it is a float, as Metal says.
	FloatLit struct {
		exprNode
		Value  float64 // rounded once from the text
		Text   string  // digits without separators and suffix, for strconv.ParseFloat: to round once to 32 bits
		Suffix string  // "", "f", "h", "bf", "l"; lower case
	}

	// CharLit is a character literal: a char, or an int if it has several characters.
	CharLit struct {
		exprNode
		Value int64
		Multi bool
	}

	// StringLit is one string literal, or several adjacent ones joined; escapes are resolved.
	StringLit struct {
		exprNode
		Value string
	}

	// BoolLit is true or false.
	BoolLit struct {
		exprNode
		Value bool
	}

	// NullptrLit is nullptr.
	NullptrLit struct{ exprNode }

	// ThisExpr is this.
	ThisExpr struct{ exprNode }

	// NameExpr is the use of a name as a value or function.
	NameExpr struct {
		exprNode
		Name *Name
	}

	// ParenExpr is (X). It matters to decltype only.
	ParenExpr struct {
		exprNode
		X Expr
	}

	// UnaryExpr is a prefix operator: one from OperatorNot to OperatorDec.
	UnaryExpr struct {
		exprNode
		Operator Operator
		X        Expr
	}

	// PostfixExpr is X++ or X--.
	PostfixExpr struct {
		exprNode
		Operator Operator
		X        Expr
	}

	// BinaryExpr is X op Y: OperatorAdd to OperatorComma.
	BinaryExpr struct {
		exprNode
		Operator Operator
		X, Y     Expr
	}

	// AssignExpr is X = Y (NoOperator) or X op= Y (OperatorAdd to OperatorShr). Y may be an InitList.
	AssignExpr struct {
		exprNode
		Operator Operator
		X, Y     Expr
	}

	// CondExpr is Cond ? X : Y. Without X it is Cond's value, evaluated once.
	CondExpr struct {
		exprNode
		Cond, X, Y Expr
	}

	// CallExpr is Fun(Args). Calls whose callee names a type are ConstructExprs. Whether a dependent name is called
	// or constructed follows C++: without typename it is called.
	CallExpr struct {
		exprNode
		Fun  Expr
		Args []Expr // may hold PackExprs and InitLists
	}

	// IndexExpr is X[Index].
	IndexExpr struct {
		exprNode
		X, Index Expr
	}

	// MemberExpr is X.Name or X->Name.
	MemberExpr struct {
		exprNode
		X     Expr
		Arrow bool
		Name  *Name
	}

	// CastExpr is a cast that names its type: (T)x, static_cast<T>(x), ..., as_type<T>(x).
	CastExpr struct {
		exprNode
		Kind CastKind
		Type *TypeExpr
		X    Expr // may be an InitList for CastC: a compound literal (T){...}
	}

	// ConstructExpr is T(args) or T{args}: a functional cast, a constructor call or a value-initialisation.
	ConstructExpr struct {
		exprNode
		Type   *TypeExpr
		Args   []Expr
		Braced bool
	}

	// InitList is {a, b, ...}, nested or not, where the grammar has one.
	InitList struct {
		exprNode
		Elems []Expr
	}

	// DesignatedExpr is an element of a braced list with its place: .Field = X or [Index] = X, or GNU's
	// [Index ... Last] = X.
	DesignatedExpr struct {
		exprNode
		Field       string
		Index, Last Expr
		X           Expr
	}

	// SizeofExpr is sizeof or alignof a type or an expression, or sizeof...(Pack).
	SizeofExpr struct {
		exprNode
		Align bool
		Type  *TypeExpr
		X     Expr
		Pack  string
	}

	// TraitExpr asks the compiler about types: __is_empty(T), __is_same(T, U).
	TraitExpr struct {
		exprNode
		Name  string
		Types []*TypeExpr
	}

	// LambdaExpr is a lambda. A parameter of type auto makes it generic.
	LambdaExpr struct {
		exprNode
		ByRef, ByValue bool // [&], [=]
		Captures       []Capture
		Params         []*ParamDecl
		Ret            *TypeExpr // nil: deduced
		Mutable        bool
		Body           *BlockStmt
	}

	// StmtExpr is GNU's ({ ...; X; }): its value is that of its last statement, an expression.
	StmtExpr struct {
		exprNode
		Body *BlockStmt
	}

	// PackExpr is X..., a pack expansion in an argument or initialiser list.
	PackExpr struct {
		exprNode
		X Expr
	}

	// FoldExpr is a fold: (X op ...) has Y nil, (... op Y) has X nil, (X op ... op Y) has both.
	FoldExpr struct {
		exprNode
		Operator Operator
		X, Y     Expr
	}
)

// Capture is one name in a lambda's capture list.
type Capture struct {
	At    Pos
	Name  string // "this" for this
	ByRef bool
	Init  Expr // nil unless [name = Init]
}

// CastKind says which cast a CastExpr is.
type CastKind uint8

// The casts.
const (
	CastC CastKind = iota // (T)x
	CastStatic
	CastReinterpret
	CastConst
	CastAsType // as_type<T>(x): the same bits
)
