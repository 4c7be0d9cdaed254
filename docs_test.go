package mlxlua_test

import (
	"context"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua"
)

// TestDocumentedTypes: what go doc shows of the types that are defined elsewhere are all their fields, and methods that
// they have.
func TestDocumentedTypes(t *testing.T) {
	t.Parallel()
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, "mlxlua.go", nil, parser.ParseComments)
	require.NoError(t, err)
	pkg, err := doc.NewFromFiles(files, []*ast.File{parsed}, "mlxlua")
	require.NoError(t, err)
	text := map[string]string{}
	for _, d := range pkg.Types {
		text[d.Name] = strings.Join(strings.Fields(d.Doc), " ")
	}
	// engine are methods of arrays that are about the engine's own business.
	engine := []string{"Escape", "Hold", "HostView", "Own", "Read", "Readable", "Share", "Sole", "Spec", "Value"}
	for name, typ := range map[string]reflect.Type{"Array": reflect.TypeFor[mlxlua.Array](),
		"ScriptError": reflect.TypeFor[mlxlua.ScriptError](), "GoError": reflect.TypeFor[mlxlua.GoError]()} {
		p := reflect.PointerTo(typ)
		for i := range p.NumMethod() {
			m := p.Method(i)
			if name == "Array" && slices.Contains(engine, m.Name) {
				continue
			}
			signature := "(x *Array) "
			if name != "Array" {
				signature = "(e *" + name + ") "
			}
			require.Contains(t, text[name], "func "+signature+m.Name+"(", name)
			for j := range m.Type.NumOut() {
				require.Contains(t, text[name], strings.ReplaceAll(m.Type.Out(j).String(), "uint8", "byte"), "%s.%s", name, m.Name)
			}
		}
		for i := range typ.NumField() {
			if f := typ.Field(i); f.IsExported() {
				kind := strings.NewReplacer("luabind.", "", "interface {}", "any").Replace(f.Type.String())
				require.Regexp(t, `\b`+f.Name+`(, \w+)? `+strings.ReplaceAll(kind, "*", `\*`), text[name], name)
			}
		}
	}
	var f mlxlua.Func = func(context.Context, []any) ([]any, error) { return nil, nil }
	require.Equal(t, "func(context.Context, []interface {}) ([]interface {}, error)", reflect.TypeOf(f).String())
}
