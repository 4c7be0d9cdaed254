package msl_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal/msl"
)

// A class template that names itself with other arguments before :: means the other instance, as C++14 has it
// ([temp.local]): the constants are factorials, the types end at the specialisation.
func TestTemplateNamesItself(t *testing.T) {
	t.Parallel()
	runRows(t, `
template <int N> struct Fact { static constexpr constant int v = N * Fact<N - 1>::v; };
template <> struct Fact<0> { static constexpr constant int v = 1; };
template <int N> struct Down {
  using type = typename Down<N - 1>::type;
  static int f() { return 1 + Down<N - 1>::f(); }
};
template <> struct Down<0> { using type = float; static int f() { return 40; } };
template <int N> struct Own {
  static constexpr constant int a = N;
  static constexpr constant int b = Own::a + Own<N>::a;
};
`, "", []row{
		{"Fact<5>::v", 120},
		{"Fact<0>::v", 1},
		{"Down<3>::type(1.5f)", 1.5},
		{"Down<3>::f()", 43},
		{"Own<4>::b", 8},
	})
}

// Types and constants that never end, or need themselves, are errors: no hang, and no silent value.
func TestEndlessDefinitions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ pre, use, want string }{
		{"template <int N> struct F { using type = typename F<N + 1>::type; };", "F<0>::type(1)", "more than 400 deep"},
		{"template <int N> struct F { static constexpr constant int v = F<N + 1>::v; };", "F<0>::v", "more than 400 deep"},
		{"template <int N> struct F { using type = typename F<N>::type; };", "F<0>::type(1)", "'type' is defined by itself"},
		{"template <int N> struct F { static constexpr constant int v = F<N>::v; };", "F<0>::v", "'v' is defined by itself"},
		{"constant int a = a;", "a", "'a' is defined by itself"},
		{"template <int N = Q(1).x> struct Q { int x; Q(int y) : x(y) {} };", "Q<>(1).x", "more than 400 deep"},
		{"template <class T> struct Q { T x; }; template <class T> Q(T) -> decltype(Q(T()));", "Q(1).x",
			"more than 400 deep"},
	} {
		text := c.pre + "\nkernel void k(device float *out [[buffer(0)]]) { out[0] = float(" + c.use + "); }\n"
		_, err := msl.Compile(msl.Source{Name: "test", Text: text}, msl.Options{})
		require.ErrorContains(t, err, c.want, c.pre)
		require.NotContains(t, err.Error(), "internal error", c.pre)
	}
}

// A result type after -> may name the parameters anywhere in it.
func TestTrailingResultTypes(t *testing.T) {
	t.Parallel()
	runRows(t, `
template <typename T> struct Box {
  T v;
  template <typename F> auto map(F f) const -> Box<decltype(f(v))> { return {f(v)}; }
};
auto doubled(int n) -> Box<decltype(n * 0.5f)> { return {n * 2.5f}; }
template <typename T> auto wide(T x) -> vec<decltype(x), sizeof(x)> { return vec<T, sizeof(x)>(x); }
template <typename... T> auto last(int n, T... x) -> Box<decltype((n, ..., x))> { return {(n, ..., x)}; }
`, "", []row{
		{"Box<int>{3}.map([](int q) { return q * 0.5f; }).v", 1.5},
		{"doubled(3).v", 7.5},
		{"sizeof(wide(half(1)))", 4},
		{"last(1, 2, 2.5f).v", 2.5},
		{"[](int x, auto y) -> Box<decltype(x * y)> { return {x * y}; }(3, 0.5f).v", 1.5},
		{"[](int x, auto y) mutable -> decltype(x * y) { x++; return x * y; }(3, 0.5f)", 2},
	})
}
