package msl

// Specs are the specifiers of a declaration, its type aside.
type Specs struct {
	Static, Inline, Constexpr, Extern, Friend, Explicit, Mutable bool
	Kernel                                                       bool // kernel, [[kernel]]
	// Function is "vertex", "fragment", ... for the other qualifiers, which the checks refuse.
	Function string
	Attrs    []Attr
}

// Attr is one [[attribute]]; `[[a, b(1)]]` is two.
type Attr struct {
	At   Pos
	Name string // with its scope, if any: "clang::x"
	Args []Expr // nil without parentheses; arguments that are no expressions are refused
}

// Declarations.
type (
	// VarDecl declares a variable, a field or a static member. An explicit instantiation
	// `template [[host_name("x")]] [[kernel]] decltype(f<float>) f<float>;` holds one as well.
	VarDecl struct {
		declNode
		Specs Specs
		Type  *TypeExpr
		Name  *Name // qualified in out-of-class definitions, with HasArgs for specialisations of variable templates
		// Init is the initialiser: with InitCopy any Expr (an InitList for = {...}), with InitBrace an InitList.
		Init  Expr
		Args  []Expr // InitDirect: T x(a, b)
		Style InitStyle
		Bits  Expr // bit-field width, nil for most
		Field bool // a non-static member
	}

	// BindingDecl is a structured binding: Names stand for the elements or fields of Var, which no name reaches.
	BindingDecl struct {
		declNode
		Names []*Name
		Var   *VarDecl
	}

	// ParamDecl is a parameter of a function or lambda.
	ParamDecl struct {
		declNode
		Type    *TypeExpr // Pack is set for T... args
		Name    string    // may be ""
		Default Expr
		Attrs   []Attr
	}

	// FuncDecl declares or defines a function, method, constructor or operator.
	FuncDecl struct {
		declNode
		Specs   Specs
		Name    *Name
		Kind    FuncKind
		Ret     *TypeExpr // nil for constructors and conversion functions (whose type is Name.Conv)
		Params  []*ParamDecl
		Quals   Quals // methods: const, volatile, address space
		Inits   []MemberInit
		Body    *BlockStmt // nil for a declaration
		Default bool       // = default
		Delete  bool       // = delete
	}

	// ClassDecl declares or defines a struct, class or union.
	ClassDecl struct {
		declNode
		Key      string // "struct", "class", "union"
		Name     *Name  // nil if anonymous; HasArgs for specialisations
		Attrs    []Attr
		Bases    []BaseClass
		Members  []Decl // VarDecl, FuncDecl, TemplateDecl, AliasDecl, ClassDecl, EnumDecl, UsingDecl, AccessDecl, ...
		Complete bool   // has a body
		// Anonymous is set for a member `union {...};` whose fields belong to the enclosing class.
		Anonymous bool
	}

	// AccessDecl is public:, protected: or private:.
	AccessDecl struct {
		declNode
		Access string
	}

	// EnumDecl declares or defines an enumeration.
	EnumDecl struct {
		declNode
		Name       *Name // nil if anonymous
		Scoped     bool  // enum class
		Underlying *TypeExpr
		Values     []Enumerator
		Complete   bool
	}

	// AliasDecl is typedef or using: Name stands for Type.
	AliasDecl struct {
		declNode
		Name string
		Type *TypeExpr
	}

	// NamespaceDecl is one opening of a namespace; Name "" is the unnamed one. `namespace a::b {}` is two, nested.
	NamespaceDecl struct {
		declNode
		Name   string
		Inline bool
		Decls  []Decl
	}

	// NamespaceAliasDecl is namespace Name = Target.
	NamespaceAliasDecl struct {
		declNode
		Name   string
		Target *Name
	}

	// UsingDirectiveDecl is using namespace Name.
	UsingDirectiveDecl struct {
		declNode
		Name *Name
	}

	// UsingDecl is using Name, for names of namespaces and of base classes.
	UsingDecl struct {
		declNode
		Name *Name
	}

	// TemplateDecl is template <...> Decl. A full specialisation, template <>, has Spec set and no parameters.
	// Decl is a FuncDecl, ClassDecl, VarDecl, AliasDecl or, for members of class templates, a TemplateDecl.
	TemplateDecl struct {
		declNode
		Params []*TemplateParam
		Spec   bool
		Decl   Decl
	}

	// InstantiateDecl is an explicit instantiation: template ... f<float>(...); Attributes are in Decl's Specs.
	InstantiateDecl struct {
		declNode
		Extern bool
		Decl   Decl // FuncDecl, ClassDecl, or VarDecl for `decltype(f<float>) f<float>`
	}

	// StaticAssertDecl is static_assert(Cond, Msg).
	StaticAssertDecl struct {
		declNode
		Cond Expr
		Msg  string
	}
)

// InitStyle says how a variable is initialised.
type InitStyle uint8

// The styles of initialisation.
const (
	InitNone   InitStyle = iota
	InitCopy             // = x
	InitDirect           // (x, y)
	InitBrace            // {x, y}
)

// FuncKind says what a FuncDecl declares.
type FuncKind uint8

// The kinds of functions. A member operator() is a FuncOperator.
const (
	FuncPlain FuncKind = iota
	FuncConstructor
	FuncOperator
	FuncConversion
	FuncGuide // a deduction guide: Ret is the class that it yields
)

// MemberInit is one entry of a constructor's initialiser list.
type MemberInit struct {
	At     Pos
	Name   *Name // a field, a base class or, for delegation, the class itself
	Args   []Expr
	Braced bool
}

// BaseClass is an entry of a class's base list.
type BaseClass struct {
	Access string // "" if not written
	Type   *TypeExpr
}

// Enumerator is one name of an enumeration.
type Enumerator struct {
	At   Pos
	Name string
	X    Expr // nil: one more than the last
}

// TemplateParam is a parameter of a template.
type TemplateParam struct {
	Base
	Name string // may be ""
	Pack bool
	// Exactly one of the three holds. TypeParam: typename T. ValueType: the type of a value parameter.
	// Templ: the parameters of a template template parameter.
	TypeParam bool
	ValueType *TypeExpr
	Templ     []*TemplateParam
	// The default argument, if any: a type or a value.
	DefaultType *TypeExpr
	Default     Expr
}

// Statements.
type (
	// BlockStmt is { List }.
	BlockStmt struct {
		stmtNode
		List []Stmt
	}

	// ExprStmt is X;
	ExprStmt struct {
		stmtNode
		X Expr
	}

	// DeclStmt declares: several VarDecls for `int a, *b;`.
	DeclStmt struct {
		stmtNode
		Decls []Decl
	}

	// EmptyStmt is ;
	EmptyStmt struct{ stmtNode }

	// IfStmt is if (Init; Cond) Then else Else. Either Cond or Var is set: if (int x = f()) tests the variable.
	IfStmt struct {
		stmtNode
		Constexpr bool
		Init      Stmt // nil for most
		Var       *VarDecl
		Cond      Expr
		Then      Stmt
		Else      Stmt // may be nil
	}

	// ForStmt is for (Init; Cond; Post) Body. Any of the three may be nil.
	ForStmt struct {
		stmtNode
		Unroll uint8 // what a pragma before it asks: one of the wishes of pp_pragma.go
		Init   Stmt  // DeclStmt, ExprStmt or nil
		Var    *VarDecl
		Cond   Expr
		Post   Expr
		Body   Stmt
	}

	// RangeForStmt is for (Var : Range) Body. Var has no initialiser. With Names it is that of a structured binding.
	RangeForStmt struct {
		stmtNode
		Unroll uint8 // as in ForStmt
		Var    *VarDecl
		Names  []*Name
		Range  Expr // may be an InitList
		Body   Stmt
	}

	// WhileStmt is while (Cond) Body.
	WhileStmt struct {
		stmtNode
		Unroll uint8 // what a pragma before it asks: one of the wishes of pp_pragma.go
		Var    *VarDecl
		Cond   Expr
		Body   Stmt
	}

	// DoStmt is do Body while (Cond);
	DoStmt struct {
		stmtNode
		Unroll uint8 // what a pragma before it asks: one of the wishes of pp_pragma.go
		Body   Stmt
		Cond   Expr
	}

	// SwitchStmt is switch (Cond) Body. Body is a block in whose List the CaseStmts stand flat, as labels.
	SwitchStmt struct {
		stmtNode
		Init Stmt
		Var  *VarDecl
		Cond Expr
		Body *BlockStmt
	}

	// CaseStmt is the label case X: or, with X nil, default: in the list of a BlockStmt.
	CaseStmt struct {
		stmtNode
		X  Expr
		Hi Expr // case X ... Hi (a GNU range), nil for most
	}

	// BreakStmt is break;
	BreakStmt struct{ stmtNode }

	// ContinueStmt is continue;
	ContinueStmt struct{ stmtNode }

	// ReturnStmt is return X; X may be nil or an InitList.
	ReturnStmt struct {
		stmtNode
		X Expr
	}

	// PragmaStmt is a pragma that changes meaning. It acts to the end of its block, at file scope to the end of the file.
	//
	//	#pragma clang fp contract(off|on|fast)       Name "contract", Value "off", "on" or "fast"
	//	#pragma clang fp reassociate(on|off)         Name "reassociate"
	//	#pragma METAL fp math_mode(safe|relaxed|fast) Name "math_mode"
	//	#pragma METAL fp contract(...)               as clang's
	//	#pragma STDC FP_CONTRACT ON|OFF              Name "contract", Value "on" or "off"
	PragmaStmt struct {
		stmtNode
		Name, Value string
	}
)

func (*PragmaStmt) decl() {}
