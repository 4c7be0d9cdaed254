package msl

import (
	goast "go/ast"
	goparser "go/parser"
	gotoken "go/token"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// codeDocs returns the constants of type Code that a file declares, with the examples in their comments.
func codeDocs(t *testing.T, file string) (names []string, values map[string]Code, examples map[string][]string) {
	values, examples = map[string]Code{}, map[string][]string{}
	f, err := goparser.ParseFile(gotoken.NewFileSet(), file, nil, goparser.ParseComments)
	require.NoError(t, err)
	for _, d := range f.Decls {
		g, ok := d.(*goast.GenDecl)
		if !ok || g.Tok != gotoken.CONST {
			continue
		}
		for _, s := range g.Specs {
			v := s.(*goast.ValueSpec)
			name := v.Names[0].Name
			n, err := strconv.Atoi(v.Values[0].(*goast.BasicLit).Value)
			require.NoError(t, err, name)
			names = append(names, name)
			values[name] = Code(n)
			doc := v.Doc.Text()
			require.True(t, strings.HasPrefix(doc, name+" "), "%s: the comment starts with the name", name)
			parts := strings.Split(doc, "Example:\n")
			for _, p := range parts[1:] {
				examples[name] = append(examples[name], strings.ReplaceAll(p, "\t", " "))
			}
			if len(parts) == 1 {
				require.Contains(t, doc, "No example", "%s", name)
			}
		}
	}
	return names, values, examples
}

// Every example of codes.go provokes its code and no other.
func TestSyntaxCodes(t *testing.T) {
	names, values, examples := codeDocs(t, "codes.go")
	seen := map[Code]string{}
	for _, name := range names {
		require.Empty(t, seen[values[name]], "%s has a number of its own", name)
		seen[values[name]] = name
		for _, text := range examples[name] {
			_, errs := Parse(ppText(text))
			require.NotEmpty(t, errs, "%s: %s", name, text)
			for _, e := range errs {
				require.Equal(t, values[name], e.Code, "%s: %s\n%s", name, text, e)
				require.NotZero(t, e.Pos.Line, "%s: %s", name, e)
			}
		}
	}
}

// The examples that a source file shows in its README work.
func TestReadmeNamesEveryFile(t *testing.T) {
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	for _, file := range []string{"scan.go", "pp.go", "parse.go", "ast.go", "errors.go", "codes.go"} {
		require.Contains(t, string(text), file)
	}
}
