package msl

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// chain writes one line for each number from 1 to n.
func chain(n int, line func(i int) string) string {
	var b strings.Builder
	for i := 1; i <= n; i++ {
		b.WriteString(line(i))
		b.WriteByte('\n')
	}
	return b.String()
}

// Small texts can ask for endless work. Each is refused with a code, or compiles: what it costs is counted, so the
// test needs no clock.
func TestBudgets(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("one goroutine that works up to its limits: slow under the race detector, which learns nothing from it")
	}
	const k = "kernel void k(device int *x) { x[0] = %s; }"
	double := func(i int) string { return fmt.Sprintf("#define A%d A%d A%d", i, i-1, i-1) }
	value := func(v string) string { return fmt.Sprintf(k, v) }
	nest := func(open, inner, shut string, n int) string {
		return value(strings.Repeat(open, n) + inner + strings.Repeat(shut, n))
	}
	for _, c := range []struct {
		name, text string
		want       Code // 0: it compiles
	}{
		{"macros double", "#define A0 x x\n" + chain(39, double) + "A39", TooMuchText},
		{"macros that are empty double", "#define E\n#define A0 E E\n" + chain(39, double) + "A39", TooMuchText},
		{"macros double in #if", "#define E\n#define A0 E E\n" + chain(39, double) + "#if A39\n#endif", TooMuchText},
		{"macros nest",
			"#define M(x) x + x\nconstant int a = " + strings.Repeat("M(", 60) + "1" + strings.Repeat(")", 60) + ";",
			TooMuchText},
		{"a chain of macros",
			"#define A0 1\n" + chain(2000, func(i int) string { return fmt.Sprintf("#define A%d A%d", i, i-1) }) +
				"constant int a = A2000;", TooMuchText},
		{"a long text", strings.Repeat("abcdefghi\n", 1<<20), TooMuchText},
		{"a long comment", "/*" + strings.Repeat("abcdefghi\n", 1<<20) + "*/ " + value("1"), 0},
		{"a long name", strings.Repeat("abcdefghi", 1<<20), UnknownType},
		{"a long number", "constant int a = " + strings.Repeat("123456789", 1<<17) + ";", BadNumber},
		{"conditionals nest", strings.Repeat("#if 1\n", 1<<16), TooMuchText},
		{"parentheses nest", nest("(", "1", ")", 100000), TooDeep},
		{"a million parentheses", nest("(", "1", ")", 1000000), TooMuchText},
		{"brackets nest", nest("x[", "1", "]", 100000), TooDeep},
		{"blocks nest", "void f() {" + strings.Repeat("{", 100000) + strings.Repeat("}", 100000) + "}", TooDeep},
		{"template arguments nest",
			"using t = " + strings.Repeat("vec<", 100000) + "int" + strings.Repeat(", 2>", 100000) + ";",
			TooDeep},
		{"signs", nest("- ", "1", "", 100000), TooDeep},
		{"a long sum", value(strings.Repeat("x[1] + ", 50000) + "1"), TooDeep},
		{"a long else if", "void f(int i) { " + strings.Repeat("if (i) i = 1; else ", 20000) + "; }", TooDeep},
		{"instances nest",
			"template <int N> struct F { static constexpr int v = F<N + 1>::v + 1; };\n" + value("F<1>::v"),
			TooLarge},
		{"instances double",
			"template <int N, int M> struct F { static constexpr int v = F<N-1, 2*M>::v + F<N-1, 2*M+1>::v; };\n" +
				"template <int M> struct F<0, M> { static constexpr int v = M; };\n" + value("F<24, 1>::v"), TooLarge},
		{"a type doubles", "template <typename A, typename B> struct P {};\ntemplate <int N> struct F { " +
			"using t = P<typename F<N-1>::t, typename F<N-1>::t>; };\ntemplate <> struct F<0> { using t = int; };\n" +
			"kernel void k(device int *x) { F<60>::t v; x[0] = v; }", TypeMismatch},
		{"fields double", "template <int N> struct F { F<N-1> a, b; };\ntemplate <> struct F<0> { int a; };\n" +
			"kernel void k(device int *x) { F<60> v; x[0] = 1; }", TooLarge},
		{"a pack doubles",
			"template <int N, typename... T> int g(T... t) { if constexpr (N == 0) return sizeof...(t); " +
				"else return g<N-1>(t..., t...); }\n" + value("g<30>(1)"), TooLarge},
		{"calls double", "int f0(int x) { return x * 3; }\n" +
			chain(39, func(i int) string { return fmt.Sprintf("int f%d(int x) { return f%d(x) + f%d(x + 1); }", i, i-1, i-1) }) +
			value("f39(x[1])"), TooLarge},
		{"calls of nothing double", "void f0() {}\n" +
			chain(39, func(i int) string { return fmt.Sprintf("void f%d() { f%d(); f%d(); }", i, i-1, i-1) }) +
			"kernel void k() { f39(); }", TooLarge},
		{"overloads and calls", chain(2000, func(i int) string {
			return fmt.Sprintf("struct S%d { int a; }; int f(S%d s) { return s.a; }", i, i)
		}) + "kernel void k(device int *x) {" + chain(2000, func(i int) string {
			return fmt.Sprintf("S%d a%d; a%d.a = 1; x[%d] = f(a%d);", i, i, i, i, i)
		}) + "}", TooLarge},
		{"a constant loop without end", "constexpr int f() { int i = 0; while (true) i++; return i; }\n" +
			"kernel void k(device int *x) { constexpr int n = f(); x[0] = n; }", NotConstant},
		{"a huge array", "kernel void k(device int *x) { int a[1000000000]; x[0] = a[x[1]]; }", TooLarge},
		{"a loop to unroll",
			"kernel void k(device int *x) {\n#pragma unroll\nfor (int i = 0; i < 1000000000; i++) x[i] = i; }", 0},
		{"many locals", "kernel void k(device int *x) { int v0 = x[0];\n" + chain(10000, func(i int) string {
			return fmt.Sprintf("int v%d = v%d + x[%d];", i, i-1, i)
		}) + "x[0] = v10000; }", 0},
	} {
		_, err := Compile(Source{Name: "source", Text: c.text}, Options{})
		if c.want == 0 {
			require.NoError(t, err, c.name)
			continue
		}
		var errs ErrorList
		require.True(t, errors.As(err, &errs), "%s: %v", c.name, err)
		codes := map[Code]bool{}
		for _, e := range errs {
			codes[e.Code] = true
		}
		require.True(t, codes[c.want], "%s: want %s, got %.500s", c.name, c.want, errs.Error())
	}
}

// A compilation ends when its caller says so, with what the caller says, wherever it is.
func TestStop(t *testing.T) {
	t.Parallel()
	text := "int f0(int x) { return x * 3; }\n" + chain(39, func(i int) string {
		return fmt.Sprintf("int f%d(int x) { return f%d(x) + f%d(x + 1); }", i, i-1, i-1)
	}) + "kernel void k(device int *x) { x[0] = f39(x[1]); }"
	enough := errors.New("enough")
	asked := 0
	mod, err := Compile(Source{Name: "source", Text: text}, Options{Stop: func() error {
		if asked++; asked == 3 {
			return enough
		}
		return nil
	}})
	require.Nil(t, mod)
	require.Equal(t, enough, err)
	require.Equal(t, 3, asked)
}

// A header that includes itself is read once.
func TestIncludeCycle(t *testing.T) {
	t.Parallel()
	texts := map[string]string{"a.h": "#include \"b.h\"\n#define A 1\n", "b.h": "#include \"a.h\"\n#define B 2\n"}
	_, err := Compile(Source{Text: "#include \"a.h\"\nkernel void k(device int *x) { x[0] = A + B; }"}, Options{
		Include: func(name string) (string, bool) { s, ok := texts[name]; return s, ok },
	})
	require.NoError(t, err)
}

// A parser that has given up inside a class stops there.
func TestGivesUpInClass(t *testing.T) {
	t.Parallel()
	_, errs := Parse(Unit{Sources: []Source{{Name: "source", Text: "struct S {\n" +
		chain(2*MaxErrors, func(i int) string { return fmt.Sprintf("unknown%d f() { return 1 + ; }", i) }) + "};"}}})
	require.Len(t, errs, MaxErrors+1)
	require.Equal(t, TooManyErrors, errs[MaxErrors].Code)
}

// The instances of a kernel template share their errors: a few are enough.
func TestErrorsOfInstancesOnce(t *testing.T) {
	t.Parallel()
	text := "template <int N> [[kernel]] void k(device int *x) { x[N] = missing; }\n" + chain(700, func(i int) string {
		return fmt.Sprintf(`template [[host_name("k%d")]] [[kernel]] void k<%d>(device int *x);`, i, i)
	})
	l := &Library{pre: mustPrelude(t), src: Source{Name: "source", Text: text}}
	require.Error(t, l.read(everything))
	c := l.c
	require.Len(t, c.list, 1)
	require.Less(t, c.errorWork, 10*700)
}

func mustPrelude(t *testing.T) *frozen {
	pre, err := prelude()
	require.NoError(t, err)
	return pre
}

// Instances are found by all their arguments, however many there are.
func TestInstances(t *testing.T) {
	t.Parallel()
	var x instances[*funcInst]
	arg := func(n int) boundArg {
		return boundArg{isVal: true, vt: typeInt, val: operand{ty: typeInt.kt, bits: uint64(n)}}
	}
	args := func(i int) []boundArg {
		return []boundArg{arg(0), arg(1), arg(2), arg(i % 7), arg(i / 7), {q: qt(typeInt)}}
	}
	for i := range 100 {
		_, ok := x.find(args(i), funcArgs)
		require.False(t, ok)
		x.add(&funcInst{args: args(i), min: i}, funcArgs)
	}
	for i := range 100 {
		in, ok := x.find(args(i), funcArgs)
		require.True(t, ok)
		require.Equal(t, i, in.min)
	}
}
