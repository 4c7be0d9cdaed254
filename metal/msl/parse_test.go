package msl

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal/kir"
)

// declForms are texts and their trees, following the grammar of C++14 (N4140) and section 4 of Metal's specification.
var declForms = [][2]string{
	{"struct A { int a : 3; uint : 0; bool b : 1 = true; } __attribute__((packed));",
		"(struct A [[packed]] {(field a : int bits 3) (field _ : uint bits 0) (field b : bool = true bits 1)})"},
	// Declarators: [dcl.meaning].
	{"int a, *b, **c, d[2][3], (*e)[4], &f = a;", "(var a : int) (var b : ptr(int)) (var c : ptr(ptr(int))) " +
		"(var d : array[2](array[3](int))) (var e : ptr(array[4](int))) (var f : ref(int) = a)"},
	{"const device float *const p = nullptr;", "(var p : const ptr(device const float) = nullptr)"},
	{"device float *threadgroup q;", "(var q : threadgroup ptr(device float))"},
	{"unsigned long long int a; signed char b; short unsigned c; unsigned d; long e;",
		"(var a : ulong) (var b : char) (var c : ushort) (var d : uint) (var e : long)"},
	{"void f(int, float x = 1, thread float (&y)[4], device int *z [[buffer(0)]], ...);",
		"(func f (int, float x = 1, ref(array[4](thread float)) y, ptr(device int) z [[buffer(0)]]) void)"},
	{"auto f(int a) -> decltype(a + 1);", "(func f (int a) decltype((+ a 1)))"},
	{"float (*fp)(int, float*);", "(var fp : ptr(func(int, ptr(float))->float))"},
	{"typedef float real; real x(3); real y{4};", "(alias real float) (var x : real (3)) (var y : real {4})"},
	{"using F4 = float4; using namespace metal; constant F4 k = {1, 2, {3}, };",
		"(alias F4 float4) (using namespace metal) (var k : constant F4 = {1 2 {3}})"},
	{"alignas(16) int a; [[maybe_unused]] int b [[x(1, 2)]];",
		"(var a : int [[alignas(16)]]) (var b : int [[maybe_unused]] [[x(1 2)]])"},
	{"static_assert(sizeof(float4) == 16, \"size\");", `(static_assert (== (sizeof type float4) 16) "size")`},
	{"coherent(device) device int *p;", "(var p : ptr(device coherent int))"},
	// Kernels.
	{"[[kernel]] void k(uint3 t [[thread_position_in_grid]]) {}",
		"(func kernel k (uint3 t [[thread_position_in_grid]]) void [[kernel]] {})"},
	{"kernel void k [[max_total_threads_per_threadgroup(64)]] (int a);",
		"(func kernel k (int a) void [[max_total_threads_per_threadgroup(64)]])"},
	{"METAL_FUNC float f() { return 1; }", "(func inline f () float [[__always_inline__]] {(return 1)})"},
	// Classes.
	{"struct S { float x = 1, y; int n : 3; static constant constexpr int k = 2; };",
		"(struct S {(field x : float = 1) (field y : float) (field n : int bits 3) " +
			"(var static constexpr k : constant int = 2)})"},
	{"struct S { S() = default; S(int a) : x(a), y{a, 2} {} S(const thread S&) = delete; int x; };",
		"(struct S {(ctor S () = default) (ctor S (int a) x(a) y(a 2) {}) (ctor S (ref(thread const S)) = " +
			"delete) (field x : int)})"},
	{"struct S { explicit operator bool() const thread; float operator()(float x) constant { return x; } " +
		"int &operator[](int);" +
		" S operator++(int); };",
		"(struct S {(conversion explicit operator bool () this:thread const) " +
			"(operator operator() (float x) float this:constant {(return x)}) (operator operator[] (int) ref(int)) " +
			"(operator operator++ (int) S)})"},
	{"struct S { float f() { return N(1); } using N = float; };",
		"(struct S {(func f () float {(return (new N 1))}) (alias N float)})"}, // bodies see the whole class
	{"class A { public: int a; private: struct B { int c; } b; union { int i; float f; }; };",
		"(class A {public: (field a : int) private: (struct B {(field c : int)}) (field b : B) " +
			"(union _ {(field i : int) (field f : float)})})"},
	{"struct A {}; struct B : public A, private metal::vec<int, 2> { using A::x; };",
		"(struct A {}) (struct B :public A :private metal::vec<type int, 2> {(using A::x)})"},
	{"struct { int a; } x; typedef struct T1 { int b; } T2; enum { P, Q } e;",
		"(var x : (struct _ {(field a : int)})) (struct T1 {(field b : int)}) (alias T2 T1) " +
			"(enum _ P Q) (var e : (enum _ P Q))"},
	{"enum class E : uchar { A = 1, B, }; enum F { C = int(E::A) }; constant E e = E::B;",
		"(enum class E : uchar A=1 B) (enum F C=(new int E::A)) (var e : constant E = E::B)"},
	{"struct A { void f(); static int n; struct N { N(); }; }; void A::f() { n = 1; } int A::n = 2; A::N::N() {}",
		"(struct A {(func f () void) (var static n : int) (struct N {(ctor N ())})}) (func A::f () void {(= n 1);}) " +
			"(var A::n : int = 2) (ctor A::N::N () {})"},
	{"bool operator<(int2 a, int2 b); int2 operator,(int2, int); int2 operator>>(int2, int); int2 " +
		"operator>>=(int2, int);",
		"(operator operator< (int2 a, int2 b) bool) (operator operator, (int2, int) int2) " +
			"(operator operator>> (int2, int) int2) (operator operator>>= (int2, int) int2)"},
	// Namespaces.
	{"namespace a { int x; namespace b { struct T {}; } } a::b::T t; namespace c = a::b; c::T u; using a::b::T; T v;",
		"(namespace a (var x : int) (namespace b (struct T {}))) (var t : a::b::T) (namespace c = a::b) (var " +
			"u : c::T) " +
			"(using a::b::T) (var v : T)"},
	{"namespace a::b { inline namespace v1 { struct T {}; } } a::b::T t; namespace { struct U {}; } ::U u;",
		"(namespace a (namespace b (namespace v1 (struct T {})))) (var t : a::b::T) (namespace  (struct U " +
			"{})) (var u : ::U)"},
	// Templates.
	{"template <typename T = float, int N = (1 > 2), class... Ts> struct S; template <> struct S<int>; S<float, 3> s;",
		"(template <typename T = float, int N = (> 1 2), typename... Ts> (struct S)) (template <> (struct " +
			"S<type int>)) " +
			"(var s : S<type float, 3>)"},
	{"template <typename T> struct P; template <typename T> struct P<T*> { typedef T type; }; P<P<int*>>::type x;",
		"(template <typename T> (struct P)) (template <typename T> (struct P<type ptr(T)> {(alias type T)})) " +
			"(var x : P<type P<type ptr(int)>>::type)"},
	{"template <template <typename, int> class V, typename T> V<T, 4> f(V<T, 4> v);",
		"(template <template <typename, int> V, typename T> (func f (V<type T, 4> v) V<type T, 4>))"},
	{"template <typename T> constexpr T pi = T(3); template <typename T> using V = vec<T, 4>; V<float> v = pi<float>;",
		"(template <typename T> (var constexpr pi : T = (new T 3))) (template <typename T> (alias V vec<type " +
			"T, 4>)) " +
			"(var v : V<type float> = pi<type float>)"},
	{"template <typename... Ts> int f(Ts... args) { return sizeof...(Ts) + g(args...) + (args + ...) + " +
		"(... * args) + (0 | ... | args); }",
		"(template <typename... Ts> (func f (Ts... args) int {(return (+ (+ (+ (+ (sizeof... Ts) (call g " +
			"args...)) (fold + args _)) " +
			"(fold * _ args)) (fold | 0 args)))}))"},
	{"template <typename T> void f(T x) {} template [[host_name(\"a\")]] [[kernel]] decltype(f<float>) " +
		"f<float>; template void f<int>(int);",
		"(template <typename T> (func f (T x) void {})) (instantiate (var kernel f<type float> : " +
			"decltype(f<type float>) " +
			"[[host_name(\"a\")]] [[kernel]])) (instantiate (func f<type int> (int) void))"},
	{"template <typename T> struct A { T f(); template <typename U> A(U u) : x(u) {} T x; }; template " +
		"<typename T> T A<T>::f() { return x; }",
		"(template <typename T> (struct A {(func f () T) (template <typename U> (ctor A (U u) x(u) {})) " +
			"(field x : T)})) " +
			"(template <typename T> (func A<type T>::f () T {(return x)}))"},
	{"template <typename T, typename = typename T::k> typename T::type f(typename T::template R<int>::t x);",
		"(template <typename T, typename = typename T::k> (func f (typename T::template R<type int>::t x) " +
			"typename T::type))"},
	{"#pragma clang fp contract(off)\nint x;", "(pragma contract off) (var x : int)"},
}

// stmtForms are the same for statements.
var stmtForms = [][2]string{
	{"int s = {.a = 1, .b{2}, [3] = {4}};", "(var s : int = {.a=1 .b={2} [3]={4}})"},
	{"auto [a, b] = c; const auto &[d] = b;",
		"(bind a b (var (binding) : auto = c)) (bind d (var (binding) : ref(const auto) = b))"},
	{"for (auto [a, b] : c) a;", "(for (bind a b (var (binding) : auto)) : c a;)"},
	{"x = not a and b or c xor d;", "(= x (|| (&& (! a) b) (^ c d)));"},
	// Precedence and associativity: [expr].
	{"x = a + b * c - d / e % g;", "(= x (- (+ a (* b c)) (% (/ d e) g)));"},
	{"x = y = z += 1;", "(= x (= y (+= z 1)));"},
	{"x = a << 1 + 2 < b == c & d ^ e | g && h || i;", "(= x (|| (&& (| (^ (& (== (< (<< a (+ 1 2)) b) c) " +
		"d) e) g) h) i));"},
	{"x = a ? b : c ? d : e;", "(= x (? a b (? c d e)));"},
	{"x = a ? b, c : d = e;", "(= x (? a (, b c) (= d e)));"},
	{"a >>= b >> c; a = b >= c > d;", "(>>= a (>> b c)); (= a (> (>= b c) d));"},
	{"-a++ - --b; !*&c; ~-+d;", "(- (- (post++ a)) (-- b)); (! (* (& c))); (~ (- (+ d)));"},
	{"a.b->c[1](2, {3}).d;", "(. (call ([] (-> (. a b) c) 1) 2 {3}) d);"},
	{"a, b = 1, c;", "(, (, a (= b 1)) c);"},
	// Casts or parentheses, types or values: [expr.cast], [stmt.ambig].
	{"x = (float)a + (a)+b; x = (float)-a; x = (a)-b;",
		"(= x (+ (+ (cast float a) a) b)); (= x (cast float (- a))); (= x (- a b));"},
	{"x = (device float4 *)p + 1; x = *(const device half *)(p + 1);",
		"(= x (+ (cast ptr(device float4) p) 1)); (= x (* (cast ptr(device const half) (+ p 1))));"},
	{"x = (uint2)(1, 2); x = (uint2){1, 2}; x = uint2{1, 2}.y; x = (float(a) + 1);",
		"(= x (cast uint2 (, 1 2))); (= x (cast uint2 {1 2})); (= x (. (new uint2 {1 2}) y)); (= x (+ (new " +
			"float a) 1));"},
	{"x = static_cast<float>(a); x = as_type<vec<float, 2>>(b);", "(= x (static_cast float a)); (= x " +
		"(as_type vec<type float, 2> b));"},
	{"float T = 1; T * x; x = (T) - 1; x = T < 3 > 2;",
		"(var T : float = 1) (* T x); (= x (- T 1)); (= x (> (< T 3) 2));"},
	{"float4 *q; float4 (*r)[2]; float4 s(1, 2); float4 t(float(a), 1); float4(a).x; float(u) = 1;",
		"(var q : ptr(float4)) (var r : ptr(array[2](float4))) (var s : float4 (1 2)) (var t : float4 ((new " +
			"float a) 1)) " +
			"(. (new float4 a) x); (var u : float = 1)"},
	{"int length = 1, max = 2; x = length < max; { float4 uint2; uint2 = 1; } uint2 v;",
		"(var length : int = 1) (var max : int = 2) (= x (< length max)); {(var uint2 : float4) (= uint2 1);} " +
			"(var v : uint2)"},
	{"vec<float, 4> v = vec<float, 4>(1); vec<vec<int,2>, (3 > 2)> w; x = vec<int, 2>(1).x;",
		"(var v : vec<type float, 4> = (new vec<type float, 4> 1)) (var w : vec<type vec<type int, 2>, (> 3 2)>) " +
			"(= x (. (new vec<type int, 2> 1) x));"},
	{"x = sizeof(int) * sizeof x + sizeof(x) + alignof(float4);",
		"(= x (+ (+ (* (sizeof type int) (sizeof x)) (sizeof x)) (alignof type float4)));"},
	{"x = metal::fast::exp(1.0f) + ::metal::max(a, b);", "(= x (+ (call metal::fast::exp 1f) (call " +
		"::metal::max a b)));"},
	{"decltype(x) y = 1; auto z = decltype(x)(2); const auto &w = x;",
		"(var y : decltype(x) = 1) (var z : auto = (new decltype(x) 2)) (var w : ref(const auto) = x)"},
	{"x = 'a' + '\\n' + '\\x41'; f(\"a\" \"b\\\"\");", "(= x (+ (+ '97 '10) '65)); (call f \"ab\\\"\");"},
	// Statements.
	{"if (a) b; else if (c) { d; } else ;", "(if a b; (if c {d;} ;))"},
	{"if (a) if (b) c; else d;", "(if a (if b c; d;))"},
	{"if constexpr (a) b; if (int i = 1) c; if (int i = 2; i > 1) d;",
		"(if constexpr a b;) (if (var i : int = 1) c;) (if (var i : int = 2) (> i 1) d;)"},
	{"for (;;) break; for (int i = 0, j = 1; i < 3; i++, j--) continue; for (a = 1; a; ) ;",
		"(for _ _ _ break;) (for (var i : int = 0) (var j : int = 1) (< i 3) (, (post++ i) (post-- j)) " +
			"continue;) (for (= a 1); a _ ;)"},
	{"for (auto r : list) a += r;", "(for (var r : auto) : list (+= a r);)"},
	{"while (a) { b; } do c; while (d);", "(while a {b;}) (do c; d)"},
	{"switch (a) { case 1: case 2 + 3: b; break; default: c; }", "(switch a {case 1: case (+ 2 3): b; " +
		"break; default: c;})"},
	{"switch (a) case 1: b;", "(switch a {case 1: b;})"},
	{"return; return {1, 2};", "(return _) (return {1 2})"},
	{"#pragma clang fp contract(off)\n#pragma unroll\nx = a * b + c;", "(pragma contract off) (= x (+ (* a b) c));"},
	{"threadgroup float t[4][8]; threadgroup_barrier(mem_flags::mem_threadgroup);",
		"(var t : array[4](array[8](threadgroup float))) (call threadgroup_barrier mem_flags::mem_threadgroup);"},
	{"auto f = [&](int a) { return a; }; auto g = [=, &b, c = 1](auto x) mutable -> float { return x; }; [] {}();",
		"(var f : auto = (lambda [&] (int a) none {(return a)})) (var g : auto = (lambda [= &b c=1] (auto x) " +
			"float {(return x)})) " +
			"(call (lambda [] () none {}));"},
	{"struct P { int a; int f() { return a; } } p = {1}; p.f();",
		"(struct P {(field a : int) (func f () int {(return a)})}) (var p : P = {1}) (call (. p f));"},
	{"using namespace metal; typedef int I; using J = int; I i; J j;",
		"(using namespace metal) (alias I int) (alias J int) (var i : I) (var j : J)"},
	{"p->template get<3>(1); p.get < 3 > (1);", "(call (-> p template get<3>) 1); (> (< (. p get) 3) 1);"},
	{"[[unroll]] for (;;) {}", "(for _ _ _ {})"},
	{"struct G { template <typename T> T get(int); int lt; } g; g.get<int>(1); x = g.lt < 3 > (1); x = g.get < 3;",
		"(struct G {(template <typename T> (func get (int) T)) (field lt : int)}) (var g : G) " +
			"(call (. g get<type int>) 1); (= x (> (< (. g lt) 3) 1)); (= x (< (. g get) 3));"},
	{"x = __is_same(float, T<1>::y) + __is_empty(int); int größe = 1; größe++;",
		"BAD"},
	{"x = __is_same(float, uint4) + __is_empty(int); int größe = 1; größe++;",
		"(= x (+ (__is_same float uint4) (__is_empty int))); (var größe : int = 1) (post++ größe);"},
	{"x = decltype(a)::value; decltype(auto) w = x; if (int i{1}) ; while (auto p = q) ;",
		"(= x decltype(a)::value); (var w : decltype(auto) = x) (if (var i : int {1}) ;) (while (var p : auto = q) ;)"},
	{"auto f = [this, *this, &a = b, c{1}, d(2)]() {}; (void)f; (void)(x);",
		"(var f : auto = (lambda [ this this &a=b c={1} d=2] () none {})) (cast void f); (cast void x);"},
	{"coherent device int *p; extern int e; case3: ;", "BAD"},
	{"operator+(a, b); x = a.operator+(b);", "(call operator+ a b); (= x (call (. a operator+) b));"},
}

func TestDeclarations(t *testing.T) {
	t.Parallel()
	for _, c := range declForms {
		f, errs := Parse(ppText(c[0]))
		require.NoError(t, errs.Err(), c[0])
		require.Equal(t, c[1], sdecls(f.Decls), c[0])
	}
}

func TestStatements(t *testing.T) {
	t.Parallel()
	for _, c := range stmtForms {
		f, errs := Parse(ppText("void f() {\n" + c[0] + "\n}"))
		if c[1] == "BAD" {
			require.NotEmpty(t, errs, c[0])
			continue
		}
		require.NoError(t, errs.Err(), c[0])
		require.Equal(t, c[1], sstmts(f.Decls[0].(*FuncDecl).Body.List), c[0])
	}
}

// Places: after #line, in macros, and in the text itself.
func TestLocations(t *testing.T) {
	t.Parallel()
	text := "#define TWICE(a) (a + a)\nint x = 1;\n#line 10 \"body\"\nint y = \\\n  TWICE(x) + 2;\n"
	f, errs := Parse(ppText(text))
	require.NoError(t, errs.Err())
	require.Equal(t, kir.Pos{File: 1, Line: 2, Col: 5}, f.KirPos(f.Decls[0].Pos()))
	require.Equal(t, []string{"predefined", "source", "body"}, f.Files()[:3])
	require.Equal(t, "source", f.Location(f.Decls[0].Pos()).File)

	y := f.Decls[1].(*VarDecl)
	loc := f.Location(y.Pos())
	require.Equal(t, "body", loc.File)
	require.Equal(t, kir.Pos{File: 2, Line: 10, Col: 5}, loc.Pos)
	require.Equal(t, "source", loc.Source)
	require.EqualValues(t, 4, loc.Line)
	require.Equal(t, "int y = \\\n    ^", loc.Excerpt())

	sum := y.Init.(*BinaryExpr)
	require.EqualValues(t, 11, f.KirPos(sum.Pos()).Line)
	require.EqualValues(t, 12, f.KirPos(sum.Pos()).Col)
	inner := f.Location(sum.X.(*ParenExpr).X.Pos()) // the + that the macro made
	require.EqualValues(t, 3, inner.Pos.Col)
	require.Equal(t, "in the expansion of macro 'TWICE', defined at source:1:9", inner.Note)
	require.Equal(t, Location{}, f.Location(0))
	require.Equal(t, kir.Pos{}, f.KirPos(1<<30))
}

func TestErrorText(t *testing.T) {
	t.Parallel()
	_, errs := Parse(ppText("#line 1 \"source\"\nint a\nfloat b;\n\tint c = (1 + ;\n#define BAD 1 + ;\nint d = BAD\n"))
	require.Equal(t, "source:1:6: error MSL0201: expected ';' after a declaration, found the keyword 'float'\nint a\n"+
		"     ^\n"+
		"source:3:15: error MSL0202: expected an expression after '+', found ';'\n\tint c = (1 + ;\n\t        "+
		"     ^\n"+
		"source:5:9: error MSL0202: expected an expression after '+', found ';'\nint d = BAD\n        ^\n"+
		"note: in the expansion of macro 'BAD', defined at source:4:9", errs.Error())
	require.NoError(t, ErrorList(nil).Err())
}

func TestErrorsAreBounded(t *testing.T) {
	t.Parallel()
	_, errs := Parse(ppText("void f() {\n" + strings.Repeat("int = 3;\n", 500) + "}"))
	require.Len(t, errs, MaxErrors+1)
	require.Equal(t, TooManyErrors, errs[MaxErrors].Code)
	_, errs = Parse(ppText(strings.Repeat("@\n", 500)))
	require.Len(t, errs, MaxErrors+1)
}

// Deep nesting is an error, never a stack overflow; long but flat texts are fine.
func TestDepth(t *testing.T) {
	t.Parallel()
	const n = 10000
	rep := strings.Repeat
	for name, text := range map[string]string{
		"parens":    "int x = " + rep("(", n) + "1" + rep(")", n) + ";",
		"open":      "int x = " + rep("(", n),
		"unary":     "int x = " + rep("- ", n) + "1;",
		"casts":     "int x = " + rep("(int)", n) + "1;",
		"blocks":    "void f() {" + rep("{", n) + rep("}", n) + "}",
		"ifs":       "void f() {" + rep("if (1) ", n) + ";}",
		"loops":     "void f() {" + rep("for (;;) ", n) + ";}",
		"braces":    "int x = " + rep("{", n) + rep("}", n) + ";",
		"calls":     "int x = " + rep("f(", n) + rep(")", n) + ";",
		"types":     "int x = " + rep("int(", n) + "1" + rep(")", n) + ";",
		"indices":   "int x = " + rep("a[", n) + "1" + rep("]", n) + ";",
		"decltypes": rep("decltype((", n) + "1" + rep("))", n) + " x;",
		"casts2":    "int x = " + rep("(decltype(", 200) + "1" + rep(")(x))", 200) + ";",
		"templates": "template <typename T> struct A; " + rep("A<", n) + "int" + rep(">", n) + " x;",
		"values":    "template <int N> struct A; int x = " + rep("A<(", n) + "1" + rep(")>::v", n) + ";",
		"pointers":  "int " + rep("*", n) + "x;",
		"nested":    "int " + rep("(", n) + "x" + rep(")", n) + ";",
		"arrays":    "int x" + rep("[1]", n) + ";",
		"lambdas":   "int x = " + rep("[] { return ", n) + "1;" + rep("};", n),
		"structs":   rep("struct A {", n) + rep("};", n),
		"spaces":    rep("namespace a {", n) + rep("}", n),
		"params":    "void f(" + rep("int a(", n) + rep(")", n) + ");",
		"tparams":   rep("template <template <typename> class T = ", n) + ";",
		"assigns":   "void f() {" + rep("a = ", n) + "1;}",
		"conds":     "int x = " + rep("1 ? ", n) + "1;",
		"operators": "int x = 1" + rep(" + 1", n) + ";",
		"members":   "int x = a" + rep(".a", n) + ";",
		"elses":     "void f() { if (1) ;" + rep(" else if (1) ;", n) + "}",
	} {
		_, errs := Parse(ppText(text))
		require.NotEmpty(t, errs, name)
		codes := fmt.Sprint(errs[0].Code)
		require.Contains(t, []string{"MSL0205", "MSL0203"}, codes, name+": "+
			""+errs[0].Error()[:min(200, len(errs[0].Error()))])
	}
	for name, text := range map[string]string{
		"operators": "int x = 1" + rep(" + 1", 4000) + ";",
		"elses":     "void f() { if (1) ;" + rep(" else if (1) ;", 3000) + "}",
		"conds":     "int x = " + rep("1 ? 2 : ", 3000) + "1;",
		"list":      "int x[] = {" + rep("1, ", 20000) + "};",
		"decls":     rep("int x;", 20000),
		"parens":    "int x = " + rep("(", 100) + "1" + rep(")", 100) + ";",
	} {
		_, errs := Parse(ppText(text))
		require.NoError(t, errs.Err(), name)
	}
}

// A parsed prelude is a frozen parent: units extend its namespaces and macros without changing it, at the same time.
func TestFrozenParent(t *testing.T) {
	t.Parallel()
	parent, errs := Parse(Unit{Sources: []Source{{"prelude", `
#define LIMIT 3
#define GONE 4
namespace metal { template <typename T> T tmpl(T x); struct limits { using type = int; }; }
using namespace metal;
template <typename T> struct Box { T x; };
typedef bfloat bfloat16_t;`}}})
	require.NoError(t, errs.Err())
	names, tokens := len(parent.syms.names), len(parent.toks)

	var wg sync.WaitGroup
	for i := range 8 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			f, errs := Parse(Unit{Parent: parent, Sources: []Source{{"source", fmt.Sprintf(`
#undef GONE
#define LIMIT %d
namespace metal { struct extra%d {}; }
namespace mine { using Box = int; }
metal::extra%d e; extra%d e2; limits::type n; metal::limits::type n2; Box<bfloat16_t> b; mine::Box c;
constant int v = tmpl<int>(LIMIT) + GONE;`, i, i, i, i)}}})
			if len(errs) > 0 {
				t.Error(errs)
				return
			}
			last := sdecl(f.Decls[len(f.Decls)-1])
			if want := fmt.Sprintf("(var v : constant int = (+ (call tmpl<type int> %d) GONE))", i); last != want {
				t.Errorf("got %s, want %s", last, want)
			}
			if loc := f.Location(parent.Decls[0].Pos()); loc.File != "prelude" || loc.Line != 4 {
				t.Errorf("a place of the parent: %+v", loc)
			}
			if loc := f.Location(f.Decls[0].Pos()); loc.File != "source" || f.Files()[loc.Pos.File] != "source" {
				t.Errorf("a place of the unit: %+v", loc)
			}
		}()
	}
	wg.Wait()
	require.Len(t, parent.syms.names, names)
	require.Len(t, parent.toks, tokens)
	_, errs = Parse(Unit{Parent: parent, Sources: []Source{{"source", "extra1 e;"}}})
	require.Len(t, errs, 1)
	require.Equal(t, UnknownType, errs[0].Code)
}
