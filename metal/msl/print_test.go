package msl

import (
	"fmt"
	"strings"
)

// The functions below print syntax trees in a compact form with explicit structure.

func sexprs(xs []Expr) string {
	parts := make([]string, len(xs))
	for i, x := range xs {
		parts[i] = sexpr(x)
	}
	return strings.Join(parts, " ")
}

func sname(n *Name) string {
	if n == nil {
		return "_"
	}
	var b strings.Builder
	if n.Typename {
		b.WriteString("typename ")
	}
	if n.Global {
		b.WriteString("::")
	}
	for _, q := range n.Quals {
		b.WriteString(spart(q) + "::")
	}
	return b.String() + spart(n.NamePart)
}

func spart(q NamePart) string {
	s := q.Ident
	switch {
	case q.Decltype != nil:
		s = "decltype(" + sexpr(q.Decltype) + ")"
	case q.Conv != nil:
		s = "operator " + stype(q.Conv)
	case q.Operator != NoOperator:
		s = "operator" + q.Operator.String()
	}
	if q.Template {
		s = "template " + s
	}
	if q.HasArgs {
		var args []string
		for _, a := range q.Args {
			t := ""
			if a.Type != nil {
				t = "type " + stype(a.Type)
			} else {
				t = sexpr(a.X)
			}
			if a.Pack {
				t += "..."
			}
			args = append(args, t)
		}
		s += "<" + strings.Join(args, ", ") + ">"
	}
	return s
}

func stype(t *TypeExpr) string {
	if t == nil {
		return "none"
	}
	q := ""
	if t.Quals.Space != SpaceNone {
		q += t.Quals.Space.String() + " "
	}
	if t.Quals.Coherent {
		q += "coherent "
	}
	if t.Quals.Const {
		q += "const "
	}
	if t.Quals.Volatile {
		q += "volatile "
	}
	if t.Quals.Restrict {
		q += "restrict "
	}
	s := "bad"
	switch t.Kind {
	case TypeBasic:
		s = t.Basic
	case TypeNamed:
		s = sname(t.Name)
	case TypeAuto:
		s = "auto"
	case TypeDecltype:
		s = "decltype(auto)"
		if t.X != nil {
			s = "decltype(" + sexpr(t.X) + ")"
		}
	case TypePointer:
		s = "ptr(" + stype(t.Elem) + ")"
	case TypeReference:
		s = "ref(" + stype(t.Elem) + ")"
		if t.RValue {
			s = "r" + s
		}
	case TypeArray:
		n := ""
		if t.X != nil {
			n = sexpr(t.X)
		}
		s = "array[" + n + "](" + stype(t.Elem) + ")"
	case TypeFunc:
		s = "func(" + sparams(t.Params) + ")->" + stype(t.Elem)
	case TypeClass:
		s = sdecl(t.Class)
	case TypeEnum:
		s = sdecl(t.Enum)
	}
	if t.Pack {
		s += "..."
	}
	return q + s
}

func sparams(ps []*ParamDecl) string {
	var parts []string
	for _, p := range ps {
		s := stype(p.Type)
		if p.Name != "" {
			s += " " + p.Name
		}
		s += sattrs(p.Attrs)
		if p.Default != nil {
			s += " = " + sexpr(p.Default)
		}
		parts = append(parts, s)
	}
	return strings.Join(parts, ", ")
}

func sattrs(attrs []Attr) string {
	var b strings.Builder
	for _, a := range attrs {
		b.WriteString(" [[" + a.Name)
		if a.Args != nil {
			b.WriteString("(" + sexprs(a.Args) + ")")
		}
		b.WriteString("]]")
	}
	return b.String()
}

func sexpr(x Expr) string {
	switch x := x.(type) {
	case nil:
		return "_"
	case *BadExpr:
		return "BAD"
	case *IntLit:
		s := fmt.Sprint(x.Value)
		if x.Unsigned {
			s += "u"
		}
		if x.Long {
			s += "l"
		}
		return s
	case *FloatLit:
		return fmt.Sprintf("%g%s", x.Value, "f"[:boolInt(x.Suffix == "")]) + x.Suffix
	case *CharLit:
		return fmt.Sprintf("'%d", x.Value)
	case *StringLit:
		return fmt.Sprintf("%q", x.Value)
	case *BoolLit:
		return fmt.Sprint(x.Value)
	case *NullptrLit:
		return "nullptr"
	case *ThisExpr:
		return "this"
	case *NameExpr:
		return sname(x.Name)
	case *ParenExpr:
		return sexpr(x.X)
	case *UnaryExpr:
		return "(" + x.Operator.String() + " " + sexpr(x.X) + ")"
	case *PostfixExpr:
		return "(post" + x.Operator.String() + " " + sexpr(x.X) + ")"
	case *BinaryExpr:
		return "(" + x.Operator.String() + " " + sexpr(x.X) + " " + sexpr(x.Y) + ")"
	case *AssignExpr:
		return "(" + x.Operator.String() + "= " + sexpr(x.X) + " " + sexpr(x.Y) + ")"
	case *CondExpr:
		return "(? " + sexpr(x.Cond) + " " + sexpr(x.X) + " " + sexpr(x.Y) + ")"
	case *CallExpr:
		return "(call " + strings.TrimSpace(sexpr(x.Fun)+" "+sexprs(x.Args)) + ")"
	case *IndexExpr:
		return "([] " + sexpr(x.X) + " " + sexpr(x.Index) + ")"
	case *MemberExpr:
		if x.Arrow {
			return "(-> " + sexpr(x.X) + " " + sname(x.Name) + ")"
		}
		return "(. " + sexpr(x.X) + " " + sname(x.Name) + ")"
	case *CastExpr:
		return "(" + castWords[x.Kind] + " " + stype(x.Type) + " " + sexpr(x.X) + ")"
	case *ConstructExpr:
		if x.Braced {
			return "(new " + stype(x.Type) + " {" + sexprs(x.Args) + "})"
		}
		return strings.TrimSpace("(new "+stype(x.Type)+" "+sexprs(x.Args)) + ")"
	case *InitList:
		return "{" + sexprs(x.Elems) + "}"
	case *DesignatedExpr:
		if x.Index != nil {
			return "[" + sexpr(x.Index) + "]=" + sexpr(x.X)
		}
		return "." + x.Field + "=" + sexpr(x.X)
	case *SizeofExpr:
		word := "sizeof "
		if x.Align {
			word = "alignof "
		}
		switch {
		case x.Pack != "":
			return "(sizeof... " + x.Pack + ")"
		case x.Type != nil:
			return "(" + word + "type " + stype(x.Type) + ")"
		}
		return "(" + word + sexpr(x.X) + ")"
	case *TraitExpr:
		var types []string
		for _, t := range x.Types {
			types = append(types, stype(t))
		}
		return "(" + x.Name + " " + strings.Join(types, " ") + ")"
	case *LambdaExpr:
		return slambda(x)
	case *StmtExpr:
		return "(" + sstmt(x.Body) + ")"
	case *PackExpr:
		return sexpr(x.X) + "..."
	case *FoldExpr:
		return "(fold " + x.Operator.String() + " " + sexpr(x.X) + " " + sexpr(x.Y) + ")"
	}
	return fmt.Sprintf("%T", x)
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

func slambda(x *LambdaExpr) string {
	caps := ""
	if x.ByRef {
		caps = "&"
	}
	if x.ByValue {
		caps = "="
	}
	for _, c := range x.Captures {
		caps += " "
		if c.ByRef {
			caps += "&"
		}
		caps += c.Name
		if c.Init != nil {
			caps += "=" + sexpr(c.Init)
		}
	}
	return "(lambda [" + caps + "] (" + sparams(x.Params) + ") " + stype(x.Ret) + " " + sstmt(x.Body) + ")"
}

func sstmts(list []Stmt) string {
	parts := make([]string, len(list))
	for i, x := range list {
		parts[i] = sstmt(x)
	}
	return strings.Join(parts, " ")
}

func sstmt(x Stmt) string {
	switch x := x.(type) {
	case nil:
		return "_"
	case *BlockStmt:
		if x == nil {
			return "_"
		}
		return "{" + sstmts(x.List) + "}"
	case *ExprStmt:
		return sexpr(x.X) + ";"
	case *DeclStmt:
		return sdecls(x.Decls)
	case *EmptyStmt:
		return ";"
	case *IfStmt:
		s := "(if "
		if x.Constexpr {
			s = "(if constexpr "
		}
		if x.Init != nil {
			s += sstmt(x.Init) + " "
		}
		s += scond(x.Var, x.Cond) + " " + sstmt(x.Then)
		if x.Else != nil {
			s += " " + sstmt(x.Else)
		}
		return s + ")"
	case *ForStmt:
		return "(for " + sstmt(x.Init) + " " + scond(x.Var, x.Cond) + " " + sexpr(x.Post) + " " + sstmt(x.Body) + ")"
	case *RangeForStmt:
		v := Decl(x.Var)
		if len(x.Names) > 0 {
			v = &BindingDecl{Names: x.Names, Var: x.Var}
		}
		return "(for " + sdecl(v) + " : " + sexpr(x.Range) + " " + sstmt(x.Body) + ")"
	case *WhileStmt:
		return "(while " + scond(x.Var, x.Cond) + " " + sstmt(x.Body) + ")"
	case *DoStmt:
		return "(do " + sstmt(x.Body) + " " + sexpr(x.Cond) + ")"
	case *SwitchStmt:
		return "(switch " + scond(x.Var, x.Cond) + " " + sstmt(x.Body) + ")"
	case *CaseStmt:
		if x.X == nil {
			return "default:"
		}
		return "case " + sexpr(x.X) + ":"
	case *BreakStmt:
		return "break;"
	case *ContinueStmt:
		return "continue;"
	case *ReturnStmt:
		return "(return " + sexpr(x.X) + ")"
	case *PragmaStmt:
		return "(pragma " + x.Name + " " + x.Value + ")"
	}
	return fmt.Sprintf("%T", x)
}

func scond(v *VarDecl, x Expr) string {
	if v != nil {
		return sdecl(v)
	}
	return sexpr(x)
}

func sdecls(list []Decl) string {
	parts := make([]string, len(list))
	for i, d := range list {
		parts[i] = sdecl(d)
	}
	return strings.Join(parts, " ")
}

func sspecs(s Specs) string {
	var b strings.Builder
	for _, x := range []struct {
		on   bool
		name string
	}{
		{s.Static, "static"}, {s.Inline, "inline"}, {s.Constexpr, "constexpr"}, {s.Extern, "extern"},
		{s.Friend, "friend"}, {s.Explicit, "explicit"}, {s.Kernel, "kernel"}, {s.Function != "", s.Function},
	} {
		if x.on {
			b.WriteString(x.name + " ")
		}
	}
	return b.String()
}

func sdecl(d Decl) string {
	switch d := d.(type) {
	case *VarDecl:
		word := "var"
		if d.Field {
			word = "field"
		}
		s := fmt.Sprintf("(%s %s%s : %s%s", word, sspecs(d.Specs), sname(d.Name), stype(d.Type), sattrs(d.Specs.Attrs))
		switch d.Style {
		case InitCopy:
			s += " = " + sexpr(d.Init)
		case InitBrace:
			s += " " + sexpr(d.Init)
		case InitDirect:
			s += " (" + sexprs(d.Args) + ")"
		}
		if d.Bits != nil {
			s += " bits " + sexpr(d.Bits)
		}
		return s + ")"
	case *FuncDecl:
		return sfunc(d)
	case *ClassDecl:
		s := "(" + d.Key + " " + sname(d.Name) + sattrs(d.Attrs)
		for _, b := range d.Bases {
			s += " :" + b.Access + " " + stype(b.Type)
		}
		if d.Complete {
			s += " {" + sdecls(d.Members) + "}"
		}
		return s + ")"
	case *BindingDecl:
		s := "(bind"
		for _, n := range d.Names {
			s += " " + sname(n)
		}
		return s + " " + sdecl(d.Var) + ")"
	case *AccessDecl:
		return d.Access + ":"
	case *EnumDecl:
		s := "(enum " + sname(d.Name)
		if d.Scoped {
			s = "(enum class " + sname(d.Name)
		}
		if d.Underlying != nil {
			s += " : " + stype(d.Underlying)
		}
		for _, v := range d.Values {
			s += " " + v.Name
			if v.X != nil {
				s += "=" + sexpr(v.X)
			}
		}
		return s + ")"
	case *AliasDecl:
		return "(alias " + d.Name + " " + stype(d.Type) + ")"
	case *NamespaceDecl:
		return "(namespace " + d.Name + " " + sdecls(d.Decls) + ")"
	case *NamespaceAliasDecl:
		return "(namespace " + d.Name + " = " + sname(d.Target) + ")"
	case *UsingDirectiveDecl:
		return "(using namespace " + sname(d.Name) + ")"
	case *UsingDecl:
		return "(using " + sname(d.Name) + ")"
	case *TemplateDecl:
		return "(template <" + stparams(d.Params) + "> " + sdecl(d.Decl) + ")"
	case *InstantiateDecl:
		return "(instantiate " + sdecl(d.Decl) + ")"
	case *StaticAssertDecl:
		return fmt.Sprintf("(static_assert %s %q)", sexpr(d.Cond), d.Msg)
	case *PragmaStmt:
		return sstmt(d)
	}
	return fmt.Sprintf("%T", d)
}

func stparams(ps []*TemplateParam) string {
	var parts []string
	for _, t := range ps {
		s := ""
		switch {
		case t.TypeParam:
			s = "typename"
		case t.ValueType != nil:
			s = stype(t.ValueType)
		default:
			s = "template <" + stparams(t.Templ) + ">"
		}
		if t.Pack {
			s += "..."
		}
		if t.Name != "" {
			s += " " + t.Name
		}
		if t.DefaultType != nil {
			s += " = " + stype(t.DefaultType)
		}
		if t.Default != nil {
			s += " = " + sexpr(t.Default)
		}
		parts = append(parts, s)
	}
	return strings.Join(parts, ", ")
}

func sfunc(d *FuncDecl) string {
	word := [...]string{"func", "ctor", "operator", "conversion"}[d.Kind]
	s := "(" + word + " " + sspecs(d.Specs) + sname(d.Name) + " (" + sparams(d.Params) + ")"
	if d.Ret != nil {
		s += " " + stype(d.Ret)
	}
	if d.Quals != (Quals{}) {
		s += " this:" + strings.TrimSpace(strings.TrimSuffix(stype(&TypeExpr{Kind: TypeBasic, Quals: d.Quals}), " "))
	}
	s += sattrs(d.Specs.Attrs)
	for _, i := range d.Inits {
		s += " " + sname(i.Name) + "(" + sexprs(i.Args) + ")"
	}
	switch {
	case d.Default:
		s += " = default"
	case d.Delete:
		s += " = delete"
	case d.Body != nil:
		s += " " + sstmt(d.Body)
	}
	return s + ")"
}

var castWords = [...]string{"cast", "static_cast", "reinterpret_cast", "const_cast", "as_type"}
