package msl

import (
	"errors"
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
func codeDocs(t *testing.T, file string) (
	names []string, values map[string]Code, examples map[string][]string, portable map[string]bool,
) {
	values, examples, portable = map[string]Code{}, map[string][]string{}, map[string]bool{}
	f, err := goparser.ParseFile(gotoken.NewFileSet(), file, nil, goparser.ParseComments)
	require.NoError(t, err)
	for _, d := range f.Decls {
		g, ok := d.(*goast.GenDecl)
		if !ok || g.Tok != gotoken.CONST {
			continue
		}
		first := 0
		for iota, s := range g.Specs {
			v := s.(*goast.ValueSpec)
			name := v.Names[0].Name
			n := first + iota
			if len(v.Values) > 0 { // a number, or a number + iota
				x := v.Values[0]
				if sum, ok := x.(*goast.BinaryExpr); ok {
					x = sum.X
				}
				k, err := strconv.Atoi(x.(*goast.BasicLit).Value)
				require.NoError(t, err, name)
				n = k
				if x != v.Values[0] {
					first, n = k, k+iota
				}
			}
			names = append(names, name)
			values[name] = Code(n)
			doc := v.Doc.Text()
			require.True(t, strings.HasPrefix(doc, name+" "), "%s: the comment starts with the name", name)
			portable[name] = strings.Contains(doc, "Options.Portable")
			parts := strings.Split(doc, "Example:\n")
			for _, p := range parts[1:] {
				examples[name] = append(examples[name], strings.ReplaceAll(p, "\t", " "))
			}
			if len(parts) == 1 {
				require.Contains(t, doc, "No example", "%s", name)
			}
		}
	}
	return names, values, examples, portable
}

// testCodes checks that every example of a file provokes its code and no other.
// Those whose comment speaks of the option are compiled with Options.Portable.
func testCodes(t *testing.T, file string, check func(text string, opt Options) ErrorList) {
	names, values, examples, portable := codeDocs(t, file)
	seen := map[Code]string{}
	for _, name := range names {
		require.Empty(t, seen[values[name]], "%s has a number of its own", name)
		seen[values[name]] = name
		for _, text := range examples[name] {
			errs := check(text, Options{Portable: portable[name]})
			if len(errs) == 0 {
				t.Errorf("%s: no error: %s", name, text)
			}
			if name == "TooManyErrors" {
				require.Len(t, errs, MaxErrors+1)
				errs = errs[MaxErrors:]
			}
			for _, e := range errs {
				if e.Code != values[name] || e.Pos.Line == 0 {
					t.Errorf("%s (%s): %s\n%s", name, values[name], text, e)
				}
			}
		}
	}
}

func TestSyntaxCodes(t *testing.T) {
	t.Parallel()
	testCodes(t, "codes.go", func(text string, _ Options) ErrorList {
		_, errs := Parse(ppText(text))
		return errs
	})
}

func TestCheckCodes(t *testing.T) {
	t.Parallel()
	testCodes(t, "codes_check.go", func(text string, opt Options) ErrorList {
		mod, err := Compile(Source{Name: "source", Text: text}, opt)
		if err == nil && len(mod.Kernels) == 1 {
			err = mod.Kernels[0].Refused
		}
		var errs ErrorList
		if !errors.As(err, &errs) {
			t.Errorf("no error list but %v: %s", err, text)
		}
		return errs
	})
}

// The README names the files a reader starts with.
func TestReadme(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	for _, file := range []string{"scan.go", "pp.go", "parse.go", "ast.go", "errors.go", "codes.go"} {
		require.Contains(t, string(text), file)
	}
}
