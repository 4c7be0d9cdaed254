package msl

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/internal/serial"
	"github.com/mlxlua/mlxlua/metal/kir"
)

// The files testdata/check_*.metal hold the errors that compiling them gives, all of them at once.
func TestExpectedErrors(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/check_*.metal")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, name := range files {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		_, err = Compile(Source{Name: "source", Text: string(text)}, Options{})
		var errs ErrorList
		require.True(t, errors.As(err, &errs), "%v", err)
		checkExpected(t, name, string(text), errs)
	}
}

// Errors and instructions bear the names and lines that #line gives.
func TestPositions(t *testing.T) {
	t.Parallel()
	text := "kernel void k(device float *x) {\n#line 7 \"source\"\n  x[0] = 1;\n}\n"
	mod, err := Compile(Source{Name: "whole", Text: text}, Options{})
	require.NoError(t, err)
	found := false
	mod.Kernels[0].Body.Walk(func(in *kir.Instr) {
		if in.Op == kir.Store {
			found = true
			require.Equal(t, "source", mod.Files[in.Pos.File])
			require.EqualValues(t, 7, in.Pos.Line)
		}
	})
	require.True(t, found)
	_, err = Compile(Source{Name: "whole", Text: strings.Replace(text, "= 1", "= y", 1)}, Options{})
	require.ErrorContains(t, err, "source:7:10: error MSL0301: 'y' is not declared\n  x[0] = y;\n         ^")
}

// A small text that asks for endless work is refused in bounded time.
func TestBombs(t *testing.T) {
	serial.Because(t, "it bounds the time of a text")
	calls := "float f0(float x) { return x * x + 1; }\n"
	for i := 1; i < 30; i++ {
		calls += fmt.Sprintf("float f%d(float x) { return f%d(x) + f%d(x + 1); }\n", i, i-1, i-1)
	}
	for _, text := range []string{
		calls + "kernel void k(device float *x) { x[0] = f29(x[0]); }",
		"constexpr int f() { int i = 0; while (true) { i++; } return i; } kernel void k(device int *x) { int a[f()]; }",
		"template <int N> struct S { S<N + 1> s; }; kernel void k(device int *x) { S<0> s; }",
		"template <int N> int f() { return f<N + 1>() + f<N + 2>(); } kernel void k(device int *x) { x[0] = f<0>(); }",
		"constant int big[1000000000] = {1}; kernel void k(device int *x) { x[0] = big[1]; }",
		"kernel void k(device int *x) { int a[300000000] = {1}; x[0] = a[x[0]]; }",
		"struct A { int x[100000]; }; struct B { A a[100000]; }; kernel void k(device int *x) { B b[10000]; x[0] = 1; }",
	} {
		start := time.Now()
		_, err := Compile(Source{Name: "bomb", Text: text}, Options{})
		require.Error(t, err, text[:min(80, len(text))])
		require.Less(t, time.Since(start), 20*time.Second)
	}
}

// Any number of goroutines may compile at once: the prelude is shared and frozen.
func TestConcurrentCompile(t *testing.T) {
	t.Parallel()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			text := fmt.Sprintf("kernel void k%d(device float *x) { x[0] = metal::exp(half(x[0])) + %d; }", i, i)
			mod, err := Compile(Source{Name: "source", Text: text}, Options{})
			if err != nil || mod.Kernels[0].Name != fmt.Sprintf("k%d", i) {
				t.Errorf("kernel %d: %v", i, err)
			}
		})
	}
	wg.Wait()
}

// FuzzCompile looks for panics and for kir that does not verify.
func FuzzCompile(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.metal")
	for _, name := range files {
		if b, err := os.ReadFile(name); err == nil {
			f.Add(string(b))
		}
	}
	for _, c := range declForms {
		f.Add(c[0])
	}
	for _, c := range stmtForms {
		f.Add("kernel void f(device float *x, device int *a) {" + c[0] + "}")
	}
	for _, s := range []string{
		"struct A { A a; };", "struct A : A {};",
		"template <typename T> struct A : A<T*> {}; kernel void k() { A<int> a; }",
		"using T = T; T x;", "enum E { A = B, B = A };",
		"constant int a = b; constant int b = a; kernel void k(device int *x) { *x = a; }",
		"kernel void k(device int *x) { auto f = [&](auto g) { return g(g); }; f(f); }",
		"template <typename... T> void f(T... t) { f(t..., 1); } kernel void k() { f(); }",
		"kernel void k(device float4 *x) { x->xyzw.wzyx[1] = x[0][x[0].x > 1]; }",
		"union U { float4 f; int i[8]; }; kernel void k(device U *x) { U u = x[0]; u.i[1] = 2; x[1] = u; }",
		"kernel void k(device int *x) { switch (*x) { case 1: int y = 2; default: x[1] = y; } }",
		"struct S { int a : 3; uint : 5; bool b : 1; } __attribute__((packed)); kernel void k(device S *x) " +
			"{ S s = {.b = true}; auto &[p, q] = s; p++; (x->a ? s : *x) = s; x[1] = s; }",
		"void f(int n, device int *x) { *x += n; if (n) { int m = n; f(m - 1, x + m); } } " +
			"kernel void k(device int *x) { f(*x, x); int a[] = {[2] = 1, 3}; (*x ? a[0] : a[1])++; x[1] = a[3]; }",
		"constant int c [[function_constant(0)]]; constant bool d = is_function_constant_defined(c);" +
			"kernel void k(device int *x) { if (d) { *x = c; } *x = d ? c : 3; }",
		"#define F(a, ...) a __VA_OPT__(, __VA_ARGS__ ## b) __VA_OPT__()\nkernel void k(device int *x) { F(*x = 1, x); }",
		"struct S { int operator()(int) const { return 1; } operator S() const; }; " +
			"kernel void k(device int *x) { *x = S()(1); }",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		mod, err := Compile(Source{Name: "fuzz", Text: text}, Options{})
		if err == nil {
			if err := mod.Verify(); err != nil {
				t.Fatal(err)
			}
			return
		}
		var errs ErrorList
		if !errors.As(err, &errs) {
			t.Fatal(err)
		}
		for _, e := range errs {
			if e.Code == Internal {
				t.Fatal(e)
			}
		}
	})
}
