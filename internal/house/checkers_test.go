package house

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// fake makes a tree of "-- name --" sections.
func fake(t *testing.T, archive string) (fstest.MapFS, []textFile, []goFile) {
	t.Helper()
	tree := fstest.MapFS{}
	for _, section := range strings.Split(archive, "\n-- ")[1:] {
		name, text, ok := strings.Cut(section, " --\n")
		require.True(t, ok, section)
		tree[name] = &fstest.MapFile{Data: []byte(text)}
	}
	texts, gos, err := readTree(tree)
	require.NoError(t, err)
	return tree, texts, gos
}

// one makes a tree of a single file that imports the given paths.
func one(t *testing.T, name string, imports ...string) []goFile {
	t.Helper()
	var b strings.Builder
	for _, i := range imports {
		fmt.Fprintf(&b, "import _ %q\n", strings.ReplaceAll(i, "mlxlua:", modulePath+"/"))
	}
	_, _, gos := fake(t, "\n-- "+name+" --\n//go:build neverset\n\npackage p\n\n"+b.String())
	return gos
}

// TestWallsStand breaks every wall of the law on purpose, and walks through every door.
func TestWallsStand(t *testing.T) {
	l, err := parseLaw(lawText)
	require.NoError(t, err)
	cases := []struct {
		file, imports string
		ok            bool
	}{
		{"luabind/a.go", "mlxlua:luabind/lua51", true},
		{"luabind/lua51/a.go", "github.com/yuin/gopher-lua/ast", true},
		{"luabind/lua51/a.go", "mlxlua:tensor", false},
		{"luabind/lua51/a.go", "mlxlua:luabind", false},
		{"metal/kir/a.go", "fmt", true},
		{"metal/kir/a.go", "mlxlua:metal", false},
		{"metal/msl/a.go", "mlxlua:metal/kir", true},
		{"metal/msl/lib/a.go", "mlxlua:metal/kir", true},
		{"metal/msl/a.go", "mlxlua:metal", false},
		{"metal/prelude/a.go", "mlxlua:metal", false},
		{"metal/a.go", "mlxlua:metal/msl", false},
		{"metal/a.go", "mlxlua:metal/kir", false},
		{"metal/a.go", "mlxlua:metal/soft", false},
		{"metal/a_test.go", "mlxlua:metal/drivertest", true},
		{"metal/interp/a.go", "mlxlua:metal/kir", true},
		{"metal/interp/a.go", "mlxlua:metal/msl", false},
		{"metal/interp/a_test.go", "mlxlua:metal/msl", true},
		{"metal/soft/a.go", "mlxlua:metal/interp", true},
		{"metal/soft/a.go", "mlxlua:metal/jit", true},
		{"metal/soft/a.go", "mlxlua:tensor", false},
		{"metal/apple/a_darwin.go", "mlxlua:metal/kir", false},
		{"metal/apple/a_darwin.go", "mlxlua:metal/prelude", true},
		{"metal/apple/objc/a_darwin.go", "github.com/ebitengine/purego", true},
		{"metal/apple/a_darwin.go", "github.com/ebitengine/purego", false},
		{"metal/cuda/a.go", "mlxlua:metal/kir", true},
		{"metal/soft/a.go", "github.com/ebitengine/purego", false},
		{"metal/drivers/a.go", "mlxlua:metal/soft", true},
		{"metal/drivers/a.go", "mlxlua:metal/msl", false},
		{"tensor/a.go", "mlxlua:tensor/kernelgen", true},
		{"tensor/a.go", "mlxlua:tensor/ops", false},
		{"tensor/a.go", "mlxlua:metal/kir", false},
		{"tensor/a.go", "mlxlua:metal/soft", false},
		{"tensor/a_test.go", "mlxlua:metal/soft", true},
		{"tensor/ops/a.go", "mlxlua:tensor/format", true},
		{"tensor/ops/a.go", "mlxlua:tensor/grad", false},
		{"tensor/ops/a.go", "mlxlua:metal/msl", false},
		{"tensor/ops/a.go", "mlxlua:tensor/optest", false},
		{"tensor/ops/a_test.go", "mlxlua:tensor/optest", true},
		{"tensor/ops/a.go", "gonum.org/v1/gonum/mat", false},
		{"tensor/ops/linalg/a.go", "gonum.org/v1/gonum/mat", true},
		{"tensor/ops/fft/a.go", "gonum.org/v1/gonum/mat", false},
		{"tensor/grad/a.go", "mlxlua:tensor/ops", true},
		{"compile/a.go", "mlxlua:tensor", true},
		{"compile/a.go", "mlxlua:tensor/ops", false},
		{"compile/a.go", "mlxlua:tensor/grad", false},
		{"luabind/a.go", "mlxlua:compile", true},
		{"luabind/a.go", "github.com/yuin/gopher-lua/parse", true},
		{"luabind/a.go", "mlxlua:metal/drivers", false},
		{"a.go", "mlxlua:metal/drivers", true},
		{"a.go", "mlxlua:luabind", true},
		{"a.go", "github.com/yuin/gopher-lua", false},
		{"cmd/mlxlua/a.go", "github.com/mlxlua/mlxlua", true},
		{"cmd/mlxlua/a.go", "github.com/yuin/gopher-lua", true},
		{"cmd/mlxlua/a.go", "golang.org/x/term", true},
		{"luabind/a.go", "golang.org/x/term", false},
		{"examples/embed/a.go", "github.com/mlxlua/mlxlua", true},
		{"luabind/a.go", "github.com/mlxlua/mlxlua", false},
		{"metal/interp/a.go", "unsafe", true},
		{"metal/a.go", "unsafe", false},
		{"metal/mapping.go", "unsafe", true},
		{"metal/mapping_linux.go", "unsafe", true},
		{"tensor/a.go", "unsafe", false},
		{"luabind/a.go", "unsafe", false},
		{"metal/soft/a.go", "C", false},
		{"metal/soft/a.go", "golang.org/x/sys/unix", true},
		{"metal/a.go", "golang.org/x/sys/unix", false},
		{"tensor/a.go", "github.com/stretchr/testify/require", false},
		{"tensor/a_test.go", "github.com/stretchr/testify/require", true},
		{"tensor/a_test.go", "github.com/mlxlua/mlxlua/tensor", true},
		{"tensor/a_test.go", "example.com/other/thing", false},
	}
	for _, c := range cases {
		faults := checkImports(l, modulePath, one(t, c.file, c.imports))
		if c.ok {
			require.Empty(t, faults, "%s may import %s", c.file, c.imports)
		} else {
			require.Len(t, faults, 1, "%s may not import %s", c.file, c.imports)
			require.Contains(t, faults[0], c.file+": may not import")
		}
	}
	require.Equal(t, []string{"metal/vulkan: the package is in no group of the law"},
		checkImports(l, modulePath, one(t, "metal/vulkan/a.go", "fmt")))
}

// TestRulesDoNotAddUp shows that permissions go along one rule and not across rules.
func TestRulesDoNotAddUp(t *testing.T) {
	l, err := parseLaw("a = a\nb = b\nc = c\nd = d\na < b < c\nc < d")
	require.NoError(t, err)
	require.True(t, l.mayImport("c", "x.go", "a", false))
	require.True(t, l.mayImport("d", "x.go", "c", false))
	require.False(t, l.mayImport("d", "x.go", "b", false))
	require.False(t, l.mayImport("a", "x.go", "b", false))
	require.False(t, l.mayImport("elsewhere", "x.go", "a", false))
}

func TestBadLaws(t *testing.T) {
	for text, want := range map[string]string{
		"a = a\na < b":                         "law line 2: unknown group b",
		"a = a\na = b":                         "law line 2: group a is defined twice",
		"a = a\nwhat is this":                  "law line 2: neither a group nor a rule",
		"a = a\nb = b\na < b\nb < a":           "law: cycle a > b > a",
		"a = a\nb = b\na < b\na !< b":          "law: b may import a by one rule and never by another",
		"a = a\nb = b\nc = c\na < b < c < a\n": "law: cycle",
	} {
		_, err := parseLaw(text)
		require.ErrorContains(t, err, want, text)
	}
}

func TestSizeFaults(t *testing.T) {
	lines := func(n int, line string) string { return strings.Repeat(line+"\n", n) }
	fn := func(body string) string { return "\n-- a/a.go --\npackage a\n\nfunc f() {\n" + body + "}\n" }
	for name, c := range map[string]struct {
		archive string
		want    []string
	}{
		"file fits":   {"\n-- a/a.go --\npackage a\n" + lines(799, "//"), nil},
		"file long":   {"\n-- a/a.go --\npackage a\n" + lines(800, "//"), []string{"a/a.go: 801 lines, at most 800"}},
		"metal fits":  {"\n-- a/a.metal --\n" + lines(400, "//"), nil},
		"metal long":  {"\n-- a/a.metal --\n" + lines(401, "//"), []string{"a/a.metal: 401 lines, at most 400"}},
		"script fits": {"\n-- scripts/lm/a.lua --\n" + lines(300, "--"), nil},
		"script long": {"\n-- scripts/lm/a.lua --\n" + lines(301, "--"),
			[]string{"scripts/lm/a.lua: 301 lines, at most 300"}},
		"other script":  {"\n-- scripts/a.lua --\n" + lines(500, "--"), nil},
		"generated":     {"\n-- a/a_gen.go --\npackage a\n" + lines(2000, "//"), nil},
		"line fits":     {"\n-- a.lua --\n" + strings.Repeat("é", 120) + "\n", nil},
		"line long":     {"\n-- a.lua --\n\n" + strings.Repeat("x", 121), []string{"a.lua:2: 121 columns, at most 120"}},
		"function fits": {fn(lines(118, "\tg()")), nil},
		"function long": {fn(lines(119, "\tg()")), []string{"a/a.go:3:1: function f has 121 lines, at most 120"}},
		"table":         {fn("\t_ = []int{\n" + lines(300, "\t\t1,") + "\t}\n"), nil},
		"switch":        {fn("\tswitch x {\n" + lines(200, "\tcase 1:\n\t\tg()") + "\t}\n"), nil},
		"no table": {fn("\t_ = []any{func() {\n" + lines(200, "\t\tg()") + "\t}}\n"),
			[]string{"a/a.go:3:1: function f has 204 lines, at most 120"}},
		"test data":      {"\n-- a/testdata/a.metal --\n" + lines(500, "//"), nil},
		"other text":     {"\n-- a.md --\n" + strings.Repeat("x", 300), nil},
		"hidden folders": {"\n-- .git/a.go --\nnot Go at all, and " + strings.Repeat("x", 300), nil},
	} {
		_, texts, gos := fake(t, c.archive)
		require.Equal(t, c.want, checkSizes(texts, gos), name)
	}
}

func TestMethodFaults(t *testing.T) {
	var b strings.Builder
	methods := func(file, receiver string, n int) {
		fmt.Fprintf(&b, "\n-- %s --\npackage p\n", file)
		for i := range n {
			fmt.Fprintf(&b, "func (x %s) m%d() {}\n", receiver, i)
		}
	}
	methods("a/a.go", "*Large[K, V]", maxMethods)
	methods("a/more.go", "(Large[K, V])", maxMethods+1) // the same names count once
	methods("a/a_test.go", "Small", 2*maxMethods)       // tests do not count
	methods("a/table_gen.go", "Small", 2*maxMethods)    // nor does what no one writes
	methods("b/b.go", "*Large", maxMethods)             // another folder's is another type
	methods("b/full.go", "Full[T]", maxMethods)         // is as large as a type may be
	methods("b/larger.go", "larger", maxMethods+9)
	_, _, gos := fake(t, b.String())
	faults := checkMethods(gos)
	require.Len(t, faults, 2)
	for i, want := range []string{
		"b.larger has 69 methods, at most 60: find the responsibilities",
		"a.Large has 61 methods, at most 60: find the responsibilities",
	} {
		require.Contains(t, faults[i], want)
	}
}

func TestDocFaults(t *testing.T) {
	const pkg = "\n-- a/a.go --\n// Package a is for tests.\npackage a\n\n"
	for src, want := range map[string]string{
		"func F() {}": "a/a.go:4:1: function F has no doc comment",
		"// Does things.\nfunc F() {}": "a/a.go:5:1: function F " +
			"has a doc comment that does not begin with its name",
		"// F does things.\nfunc F() {}":                 "",
		"// f() is not exported\nfunc f() {}":            "",
		"type T struct{}":                                "a/a.go:4:6: type T has no doc comment",
		"// A T is one.\ntype T struct{}":                "",
		"// The T is one.\ntype T struct{}":              "",
		"type t struct{}\n\nfunc (t) M() {}":             "",
		"// T is.\ntype T int\n\nfunc (t *T) M() {}":     "a/a.go:7:1: function M has no doc comment",
		"// T is.\ntype T[P any] int\nfunc (T[P]) M(){}": "a/a.go:6:1: function M has no doc comment",
		"const C = 1":     "a/a.go:4:7: const C has no doc comment",
		"var V, w = 1, 2": "a/a.go:4:5: var V has no doc comment",
		"// Limits.\nconst (\n\tC = 1\n\tD = 2\n)": "",
		"const (\n\tC = 1 // C is one\n)":          "",
		"// Group.\ntype (\n\tT int\n)":            "a/a.go:6:2: type T has no doc comment",
		"// Deprecated: use G.\nfunc F() {}":       "",
		"//go:noinline\nfunc F() {}":               "a/a.go:5:1: function F has no doc comment",
	} {
		_, _, gos := fake(t, pkg+src+"\n")
		faults := checkDocs(gos)
		if want == "" {
			require.Empty(t, faults, src)
		} else {
			require.Equal(t, []string{want}, faults, src)
		}
	}
	_, _, gos := fake(t,
		"\n-- a/a.go --\npackage a\n\n-- a/b.go --\npackage a\n\n-- a/a_test.go --\npackage a\nfunc F() {}\n")
	require.Equal(t, []string{"a: package a has no package comment"}, checkDocs(gos))
}

func TestWordFaults(t *testing.T) {
	for text, bad := range map[string]bool{
		"// TO" + "DO: later":                     true,
		"x() // FIX" + "ME":                       true,
		"// good enough for " + "now":             true,
		"// it waits for nowhere":                 false,
		"// mktemp XXXXXX":                        false,
		"open(\"/wo" + "rk/main/x\")":             true,
		"// see /ho" + "me/me/x":                  true,
		"cd /tm" + "p/venv":                       true,
		"C:" + "\\Users":                          true,
		"https://proxy.go" + "lang.org/x":         true,
		"https://github.com/mlxlua/mlxlua":        false,
		"a homework/home/x.go":                    false,
		"metal/root/x and tensor/work/y, ~/opt/x": false,
	} {
		_, texts, _ := fake(t, "\n-- a.lua --\n"+text+"\n")
		require.Equal(t, bad, len(checkWords(texts)) > 0, text)
	}
	_, texts, _ := fake(t, "\n-- a.md --\nThe word TO"+"DO is fine in prose, a path is not: /wo"+"rk/x\n")
	require.Equal(t, []string{`a.md:1: "/wo` + `rk/x" belongs to one machine`}, trimmed(checkWords(texts)))
}

// trimmed drops what stands before the path in a fault of checkWords, which shows the character in front of it.
func trimmed(faults []string) []string {
	for i, f := range faults {
		faults[i] = strings.ReplaceAll(f, `" /`, `"/`)
	}
	return faults
}

func TestGeneratedFaults(t *testing.T) {
	const head = "// Code generated by go run ./a/gen -n 2; DO NOT EDIT.\n"
	const good = head + "package a\n"
	gen := "\n-- a/gen/main.go --\npackage main\n"
	for name, c := range map[string]struct {
		archive, prints, want string
		err                   error
	}{
		"up to date": {gen + "\n-- a/x_gen.go --\n" + good, good, "", nil},
		"stale":      {gen + "\n-- a/x_gen.go --\n" + good, head + "package b\n", "a/x_gen.go:2: differs", nil},
		"shorter":    {gen + "\n-- a/x_gen.go --\n" + good, good + "//\n", ": 2 lines, go run ./a/gen -n 2 gives 3", nil},
		"fails":      {gen + "\n-- a/x_gen.go --\n" + good, "", "exit 1", errors.New("exit 1")},
		"no header":  {"\n-- a/x_gen.go --\npackage a\n", "", "first line is not", nil},
		"no name":    {"\n-- a/x.go --\n" + good, "", "its name does not end in _gen", nil},
		"no program": {"\n-- a/x_gen.go --\n" + good, good, "its generator ./a/gen does not exist", nil},
	} {
		tree, texts, _ := fake(t, c.archive)
		faults := checkGenerated(tree, texts, func(args []string) (string, error) {
			require.Equal(t, []string{"./a/gen", "-n", "2"}, args)
			return c.prints, c.err
		})
		if c.want == "" {
			require.Empty(t, faults, name)
		} else {
			require.Len(t, faults, 1, name)
			require.Contains(t, faults[0], c.want, name)
		}
	}
}

// In a work tree of its own .git is a file that names a folder of the machine: it is none of the project's texts.
func TestGitFile(t *testing.T) {
	tree := fstest.MapFS{".git": {Data: []byte("gitdir: /wo" + "rk/x\n")}, "a.md": {Data: []byte("text\n")}}
	texts, _, err := readTree(tree)
	require.NoError(t, err)
	require.Equal(t, []textFile{{"a.md", "text\n"}}, texts)
}

func TestHoldsChecker(t *testing.T) {
	fset := token.NewFileSet()
	from, err := imports(fset, root, "luabind")
	require.NoError(t, err)
	faults := func(text string, allowed map[string]heldValue) []string {
		t.Helper()
		f, err := parser.ParseFile(fset, "x.go", `package x
import (
	lua "github.com/yuin/gopher-lua"
	"`+modulePath+`/tensor"
)
var _ lua.LValue
var _ *tensor.Array
`+text, parser.SkipObjectResolution)
		require.NoError(t, err)
		p := &typedPackage{dir: "x", fset: fset, files: []*ast.File{f}}
		require.NoError(t, p.check(from))
		return checkHolds([]*typedPackage{p}, allowed)
	}
	const field, captured = "type a struct{ v lua.LValue }\n", "f: a function captures "
	for _, c := range []struct{ text, want string }{
		{field, "the field a.v holds"},
		{"type a struct{ v map[string][]*lua.LTable }", "the field a.v holds"},
		{"type a struct{ v []any }", "the field a.v holds"},
		{"type a struct{ *tensor.Array }", "the field a.Array holds"},
		{"type l []*tensor.Array\ntype a struct{ v l }", "the field a.v holds"},
		{"var v []*tensor.Array", "the variable v holds"},
		{"func f(L *lua.LState, v lua.LValue) { L.NewFunction(func(*lua.LState) int { _ = v; return 0 }) }", captured + "v"},
		{"func f(v *tensor.Array) func() { return func() { _ = v } }", captured + "v"},
		{"type s struct{ g func() }\nfunc (x *s) f(v *tensor.Array) { x.g = func() { _ = v } }", "s." + captured + "v"},
		{"type s struct{ g func() }\nfunc f(v *tensor.Array) s { return s{g: func() { _ = v }} }", captured + "v"},
		{"func f(v *tensor.Array) func() { g := func() { _ = v }\nreturn func() { g() } }", captured + "v"},
		{field + "func (x *a) m() {}\nfunc f(x *a) func() { return x.m }", captured + "x, whose field v"},
		{field + "func f(x *a) func() { return func() { _ = x } }", captured + "x, whose field v"},
	} {
		require.Contains(t, strings.Join(faults(c.text, nil), "\n"), c.want, c.text)
	}
	for _, text := range []string{
		"type a struct{ n int; f func(lua.LValue) }",
		"func f(vs []lua.LValue) (n int) { each(vs, func(v lua.LValue) { n += len(vs) }); return n }\n" +
			"func each(vs []lua.LValue, f func(lua.LValue)) {}",
		field + "func (x *a) reached() { _ = x.v }\nfunc f(x *a) func() { return func() { _ = x } }",
		"func f(L *lua.LState) { L.NewFunction(func(L *lua.LState) int { L.Push(lua.LNil); return 0 }) }",
	} {
		require.Empty(t, faults(text, nil), text)
	}
	held := field + "func f(x *a) func() { return func() { _ = x } }"
	require.Len(t, faults(held, map[string]heldValue{"x.a.v": {passing, "used while nobody looks"}}), 1)
	require.Empty(t, faults(held, map[string]heldValue{"x.a.*": {isRoot, "a root"}}))
	require.Equal(t, []string{"x.b.v holds no Lua value any more: take it off the list"},
		faults("type b struct{ v int }", map[string]heldValue{"x.b.v": {isRoot, "a root"}}))
}

func TestParallelFaults(t *testing.T) {
	_, _, gos := fake(t, `
-- slow/a_test.go --
package slow

func TestBeside(t *testing.T) { t.Parallel(); measure() }
func TestInParts(t *testing.T) { t.Run("part", func(t *testing.T) { t.Parallel() }) }
func TestAlone(t *testing.T) { serial.Because(t, "it counts"); runtime.NumGoroutine() }
func TestByHelper(t *testing.T) { change(t) }
func TestEnvironment(t *testing.T) { t.Setenv("A", "b") }
func TestForgotten(t *testing.T) { var c counter; c.change() }
func TestCounts(t *testing.T) { t.Parallel(); count() }
func TestMain(m *testing.M) { m.Run() }
func change(t *testing.T) { serial.Because(t, "it sets"); tensor.SetFusion(true) }
func count() { runtime.NumGoroutine() }
func (counter) change() {}
-- quick/a_test.go --
package quick

func TestForgotten(t *testing.T) {}
`)
	require.Equal(t, []string{
		"slow: TestCounts reaches runtime.NumGoroutine without serial.Because",
		"slow: TestForgotten neither calls t.Parallel nor serial.Because",
	}, checkParallel(gos, []string{"slow"}))
}

func TestWhyFaults(t *testing.T) {
	_, texts, _ := fake(t, `
-- RATIONALE.md --
## The whole
### Why Lua?
- [Why is `+"`a`"+` here?](room/WHY.md#why-is-a-here)
- [Why is it gone?](room/WHY.md#why-is-it-gone)
- [Why is 1 + 1 = 2?](room/WHY.md#why-is-1-1-2)
-- room/WHY.md --
# Why room is as it is
## Why is `+"`a`"+` here?
## Why is 1 + 1 = 2?
## Why is it new?
`)
	require.Equal(t, []string{
		"RATIONALE.md does not list room: Why is 1 + 1 = 2?",
		"RATIONALE.md does not list room: Why is it new?",
		"RATIONALE.md lists what is not there: room: Why is it gone?",
		"RATIONALE.md lists what is not there: room: Why is 1 + 1 = 2? (its anchor is why-is-1--1--2)",
	}, checkWhys(texts))
}
