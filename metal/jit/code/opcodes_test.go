package code

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOpcodesAreEmitted: the compiler of kernels, or the code that works on its instructions, names each opcode. One
// that nobody emits has a row and golden data for nothing.
func TestOpcodesAreEmitted(t *testing.T) {
	works := map[string]bool{"rewrite.go": true, "hoist.go": true, "func.go": true, "tidy.go": true}
	named := map[string]bool{}
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		dir := filepath.Base(filepath.Dir(path))
		own := dir == "code"
		lists := own || dir == "amd64" || dir == "arm64"
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || lists && !works[d.Name()] {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				if pkg, ok := n.X.(*ast.Ident); ok && pkg.Name == "code" {
					named[n.Sel.Name] = true
				}
			case *ast.Ident:
				named[n.Name] = named[n.Name] || own
			}
			return true
		})
		return nil
	})
	require.NoError(t, err)
	file, err := parser.ParseFile(token.NewFileSet(), "opcodes.go", nil, 0)
	require.NoError(t, err)
	opcodes := 0
	for _, d := range file.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST || !g.Lparen.IsValid() {
			continue
		}
		for _, s := range g.Specs {
			name := s.(*ast.ValueSpec).Names[0].Name
			require.True(t, named[name] || name == "NoOpcode", "nothing emits %s", name)
			opcodes++
		}
	}
	require.EqualValues(t, NumOpcodes, opcodes)
}
