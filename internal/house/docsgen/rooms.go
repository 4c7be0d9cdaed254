package main

import (
	"fmt"
	"go/ast"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

// rooms are the comments of the exported Go functions below a folder, by package and name: "linalg.Cholesky".
type rooms struct {
	comments map[string]string
	lua      map[string]string // the function of mx that a Go function stands for
	packages map[string]bool   // by name
	builds   map[string]bool   // the Go functions that build a graph: their last parameter is a context
	none     map[string]string // those that no script calls, and why
}

// notRooms are the folders among the rooms that hold no ops.
var notRooms = map[string]bool{"kit": true, "sig": true, "rooms": true}

// readRooms reads the Go files below root.
func readRooms(root string) (*rooms, error) {
	module := os.DirFS(".")
	r := &rooms{comments: map[string]string{}, lua: map[string]string{}, packages: map[string]bool{},
		builds: map[string]bool{}, none: map[string]string{}}
	err := fs.WalkDir(module, root, func(file string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && notRooms[d.Name()] {
			return fs.SkipDir
		}
		if err != nil || d.IsDir() || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return err
		}
		text, err := fs.ReadFile(module, file)
		if err != nil {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		r.packages[f.Name.Name] = true
		for _, decl := range f.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.IsExported() {
				name := f.Name.Name + "." + fn.Name.Name
				r.comments[name] = fn.Doc.Text()
				r.builds[name] = buildsGraph(fn)
				if why := noneReason(fn.Doc); why != "" {
					r.none[name] = why
				}
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, f := range sig.All() {
		if f.Alias != "" {
			continue
		}
		name, err := r.goName(f)
		if err != nil {
			return nil, err
		}
		if r.lua[name] == "" {
			r.lua[name] = f.Name
		}
	}
	return r, nil
}

// buildsGraph reports whether a function's last parameter is ctx ...*tensor.Ctx.
func buildsGraph(fn *ast.FuncDecl) bool {
	params := fn.Type.Params.List
	if len(params) == 0 {
		return false
	}
	last, ok := params[len(params)-1].Type.(*ast.Ellipsis)
	if !ok {
		return false
	}
	star, ok := last.Elt.(*ast.StarExpr)
	if !ok {
		return false
	}
	sel, ok := star.X.(*ast.SelectorExpr)
	return ok && sel.Sel.Name == "Ctx"
}

// noneReason is what stands behind //sig:none in a comment, or "".
func noneReason(doc *ast.CommentGroup) string {
	if doc == nil {
		return ""
	}
	for _, c := range doc.List {
		if why, ok := strings.CutPrefix(c.Text, "//sig:none "); ok {
			return why
		}
	}
	return ""
}

// goName is the Go function whose comment is a function's help: the one that it names, or the one in its room of the
// same name but for upper case and underscores.
func (r *rooms) goName(f *sig.Func) (string, error) {
	if f.Doc != "" {
		name := f.Room + "." + f.Doc
		if _, ok := r.comments[name]; !ok {
			return "", fmt.Errorf("%s: there is no Go function %s", f.Name, name)
		}
		return name, nil
	}
	last := strings.ReplaceAll(f.Name[strings.LastIndexByte(f.Name, '.')+1:], "_", "")
	for name := range r.comments {
		room, fn, _ := strings.Cut(name, ".")
		if room == f.Room && strings.ToLower(fn) == last {
			return name, nil
		}
	}
	return "", fmt.Errorf("%s: room %s has no function of that name; say which one's comment is the help by sig.Doc",
		f.Name, f.Room)
}

// text is the help of a function: the comment in lines of at most 80 columns, where the Go function's name at its
// beginning is the function's, and links to Go functions are names of mx.
func (r *rooms) text(f *sig.Func) (string, error) {
	if f.Alias != "" {
		return fmt.Sprintf("%s is another name of mx.%s.", f.Name, f.Alias), nil
	}
	name, err := r.goName(f)
	if err != nil {
		return "", err
	}
	pkg, fn, _ := strings.Cut(name, ".")
	text, ok := strings.CutPrefix(r.comments[name], fn+" ")
	if !ok {
		return "", fmt.Errorf("%s: the comment of %s does not begin with its name", f.Name, name)
	}
	p := comment.Parser{
		LookupPackage: func(name string) (string, bool) { return name, r.packages[name] },
		LookupSym:     func(_, name string) bool { return r.comments[pkg+"."+name] != "" },
	}
	d := p.Parse(f.Name + " " + text)
	for _, b := range d.Content {
		if err := r.links(b, pkg); err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
	}
	out := strings.TrimSpace(string((&comment.Printer{TextWidth: 80}).Text(d)))
	if slices.ContainsFunc(f.Params, noneIsFalse) {
		out = strings.NewReplacer("nil:", "false:", "an axis of nil", "an axis of false").Replace(out)
	}
	return out, nil
}

// noneIsFalse reports whether a parameter takes MLX's None, which is nil in Go's comments, and nil is its default in
// Lua: a script says false.
func noneIsFalse(p sig.Param) bool {
	return p.Value != nil && (slices.Contains(p.Kinds, sig.KindAxis) || slices.Contains(p.Kinds, sig.KindAxes))
}

// links turns the links of a paragraph or list into names of mx.
func (r *rooms) links(b comment.Block, pkg string) error {
	switch b := b.(type) {
	case *comment.Paragraph:
		for i, t := range b.Text {
			link, ok := t.(*comment.DocLink)
			if !ok {
				continue
			}
			name := link.ImportPath + "." + link.Name
			if link.ImportPath == "" {
				name = pkg + "." + link.Name
			}
			if r.lua[name] == "" {
				return fmt.Errorf("the comment links to %s, which no script can call", name)
			}
			b.Text[i] = comment.Plain("mx." + r.lua[name])
		}
	case *comment.List:
		for _, item := range b.Items {
			for _, inner := range item.Content {
				if err := r.links(inner, pkg); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
