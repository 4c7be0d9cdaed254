package house

import (
	"fmt"
	"go/ast"
	"go/token"
	"strings"
)

// checkDocs finds exported names without a doc comment in files other than tests, and doc comments of functions,
// methods and types that do not begin with the name (an article may go before it). Names in a block of constants or
// variables may share the comment of the block or have one at the end of the line. Methods of unexported types, and
// the names of programs (package main), are not exported.
func checkDocs(gos []goFile) []string {
	var faults []string
	documented := map[string]bool{}
	for _, f := range gos {
		if f.isTest || strings.HasSuffix(f.base, "_gen.go") {
			continue
		}
		documented[f.dir] = documented[f.dir] || f.syntax.Doc != nil
		if f.syntax.Name.Name == "main" {
			continue
		}
		complain := func(pos token.Pos, kind, name, what string) {
			faults = append(faults, fmt.Sprintf("%s: %s %s %s", f.fset.Position(pos), kind, name, what))
		}
		for _, decl := range f.syntax.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && exportedReceiver(d) {
					checkDoc(complain, d.Pos(), "function", d.Name.Name, d.Doc)
				}
			case *ast.GenDecl:
				checkSpecs(complain, d)
			}
		}
	}
	for _, f := range gos {
		if has, seen := documented[f.dir]; seen && !has {
			documented[f.dir] = true
			faults = append(faults, fmt.Sprintf("%s: package %s has no package comment", f.dir, f.syntax.Name.Name))
		}
	}
	return faults
}

type complaint func(pos token.Pos, kind, name, what string)

func checkSpecs(complain complaint, d *ast.GenDecl) {
	for _, spec := range d.Specs {
		switch s := spec.(type) {
		case *ast.TypeSpec:
			doc := s.Doc
			if doc == nil && !d.Lparen.IsValid() {
				doc = d.Doc
			}
			if s.Name.IsExported() {
				checkDoc(complain, s.Pos(), "type", s.Name.Name, doc)
			}
		case *ast.ValueSpec:
			for _, name := range s.Names {
				if name.IsExported() && s.Doc == nil && s.Comment == nil && d.Doc == nil {
					complain(name.Pos(), d.Tok.String(), name.Name, "has no doc comment")
				}
			}
		}
	}
}

func checkDoc(complain complaint, pos token.Pos, kind, name string, doc *ast.CommentGroup) {
	text := strings.TrimSpace(doc.Text())
	if text == "" {
		complain(pos, kind, name, "has no doc comment")
		return
	}
	words := strings.Fields(text)
	if article := words[0]; len(words) > 1 && (article == "A" || article == "An" || article == "The") {
		words = words[1:]
	}
	if strings.TrimRight(words[0], ".,:;") != name && words[0] != "Deprecated:" {
		complain(pos, kind, name, "has a doc comment that does not begin with its name")
	}
}

// exportedReceiver reports whether a function is no method, or an exported type's.
func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return true
	}
	t := receiverType(d)
	return t != nil && t.IsExported()
}

// receiverType is the name of the type that a method belongs to, without pointer and type parameters.
func receiverType(d *ast.FuncDecl) *ast.Ident {
	t := d.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.ParenExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x
		default:
			return nil
		}
	}
}
