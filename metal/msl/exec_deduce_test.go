package msl_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal/msl"
)

// Class template arguments come from constructors, guides and copies, as C++17 has it ([over.match.class.deduct]).
func TestClassArgumentsAreDeduced(t *testing.T) {
	t.Parallel()
	runRows(t, `
template <typename A, typename B> struct Pair { A a; B b; };
template <typename A, typename B> Pair(A, B) -> Pair<A, B>;
template <typename T> struct Box { T v; Box(T x) : v(x) {} T get() const { return v; } };
template <typename T, int N> struct Arr { T d[N]; };
template <typename T, typename... U> Arr(T, U...) -> Arr<T, 1 + sizeof...(U)>;
template <typename T> struct Acc { T s = T(0); Acc() = default; Acc(T a, T b) { s = a + b; } };
`, `
Pair p{1, 2.5f}; Box b(3.5h); Box c = 4; Arr r{1, 2, 3}; auto q = Pair{1.5f, 2u}; auto bb = Box(7u); const Acc
  k(1.5f, 2.0f); Box d = b;`, []row{
		{"p.a", 1}, {"p.b", 2.5}, {"sizeof(b)", 2}, {"b.get()", 3.5}, {"c.get()", 4}, {"sizeof(r)", 12},
		{"r.d[2]", 3}, {"q.a", 1.5}, {"bb.v", 7}, {"k.s", 3.5}, {"Box(Box(2)).v", 2}, {"d.v", 3.5},
		{"Box{2.5f}.v", 2.5},
	})
}

// A pack is deduced from what its pattern names, once an element even if the pattern names it twice.
func TestPacksAreDeduced(t *testing.T) {
	t.Parallel()
	runRows(t, `
template <typename A, typename B> struct P2 { A a; B b; };
template <typename... T> int f1(P2<T, T>... c) { return sizeof...(T); }
template <typename... T, typename U> int f2(U u, P2<T, U>... c) { return (sizeof(T) + ... + 0); }
template <typename... T> int f3(vec<T, 2>... c) { return (sizeof(T) + ... + 0); }
template <typename... T> int f4(thread T *... c) { return (int(*c) + ... + 0); }
template <typename... L, typename... R> int f5(P2<L, R>... c) { return (c.a + ...) * 100 + (c.b + ...); }
`, `
int x = 3; float y = 4;`, []row{
		{"f1(P2<int, int>{}, P2<float, float>{})", 2}, {"f2(1, P2<half, int>{}, P2<char, int>{})", 3},
		{"f3(float2(1), half2(1), char2(1))", 7}, {"f4(&x, &y)", 7},
		{"f5(P2<int, float>{1, 2}, P2<half, uint>{3, 4})", 406},
	})
}

// Deduced classes of lambdas, of constants and of other instances keep their values and their sizes.
func TestDeductionInUse(t *testing.T) {
	t.Parallel()
	runRows(t, `
struct Params { int n; float scale; packed_uint2 dim; bool flag; half h[3]; };
struct Node { short l, r; half v; }; constant Node tree[3] = {{1, 2, 0.5h}, {-1, -1, 1.0h}, {-1, -1, 2.0h}};
template <typename T> struct Pair2 { T a, b; Pair2(T x, T y) : a{x}, b{y} {} template <typename U>
  Pair2(Pair2<U> o) : a(o.a), b(o.b) {} };
template <typename T> Pair2(T) -> Pair2<T>;
template <typename T, size_t N> struct Arr { T v[N]; constexpr size_t size() const { return N; } };
template <typename T, typename... U> Arr(T, U...) -> Arr<T, 1 + sizeof...(U)>;
template <typename F> struct Defer { F f; explicit Defer(F g) : f(g) {} int go(int x) const { return f(x); } };
union U { float f; uint u; struct { uchar a, b, c, d; }; };
constant U tab[2] = {{.u = 0x04030201}, {1.0f}};
template <constant Node *T, int N> float walk(int x) { int i = 0; while (T[i].l >= 0 && i < N) i = x & 1 ?
  T[i].l : T[i].r; return T[i].v; }
`, `
threadgroup float s1[4], s2[4]; threadgroup float *bufs[2] = {s1, s2}; bufs[0][1] = 3; bufs[in[1]][2] = 4;
  device int *dp[2] = {in, in + 4}; Params pr{3, 2.0f, {4, 5}, true, {1, 2, 3}}; thread Params *pp = &pr;
  pp->h[1] += 1;
Pair2 p2(1, 2); Pair2<float> pf = p2; Arr ar{1.0f, 2.0f, 3.0f}; Defer df([](int x) { return x + 40; }); const
  Pair2 cp{1.5h, 2.5h}; Pair2 cpy{cp};
int k = in[1]; U lu = tab[k]; lu.u |= 1; float acc[2][2] = {}; for (auto &r : acc) for (auto &e : r) e += k;
  thread float (&row)[2] = acc[1]; row[0] = 7; bool any_ = false; any_ |= k == 1; any_ &= true;`, []row{
		{"s1[1]", 3}, {"s2[2]", 4}, {"dp[k][1]", 5}, {"pr.h[1]", 3}, {"pr.dim.y", 5}, {"pf.b", 2},
		{"sizeof(p2)", 8}, {"ar.size()", 3}, {"ar.v[2]", 3}, {"df.go(2)", 42}, {"cpy.b", 2.5},
		{"sizeof(cpy)", 4}, {"tab[0].c", 3}, {"tab[k].u", 1065353216}, {"lu.a", 1}, {"walk<tree, 3>(in[3])", 1},
		{"walk<tree, 3>(in[2])", 2}, {"acc[1][0]", 7}, {"any_", 1},
	})
}

// a ?: b, an extension of GNU that clang has, evaluates a once.
func TestConditionalWithoutMiddle(t *testing.T) {
	t.Parallel()
	runRows(t, "", `
int n = in[0], m = in[5], k = 0; float f = 2.5f;`, []row{
		{"n ?: 7", 7}, {"m ?: 7", 5}, {"f ?: 1", 2.5}, {"n ?: n ?: 9", 9}, {"(k++ ?: 4) + k", 5}, {"(++k ?: 4) + k", 4},
		{"3 ?: 4", 3}, {"0 ?: 2.5f", 2.5}, {"sizeof(m ?: 1.5h)", 2},
	})
}

// What C++17 does not deduce is refused, with what to write.
func TestRefusesToDeduce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ pre, body, want string }{
		{"template <typename A, typename B> struct P { A a; B b; };", "P p{1, 2.0f};",
			"(int, float): write P<...>: it has neither a constructor nor a deduction guide"},
		{"template <typename A> struct P { A a; P(A x, A y) : a(x) {} };", "P p(1, 2.0f);", "argument 2 of type float"},
		{"template <typename A> struct P { A a; P(A x) : a(x) {} };", "P p(nix);", "'nix' is not declared"},
		{"template <typename A> struct P { A a; }; template <typename A> P(A) -> int;", "P p(1);",
			"the deduction guide yields int"},
		{"constant float tab[2] = {1, 2}; template <constant int *T> int f() { return *T; }", "f<tab>();", "do not fit"},
		{"template <constant int *T> int f() { return *T; }", "f<3>();", "do not fit"},
		{"template <constant int *T> int f() { return *T; }", "int x; f<&x>();", "MSL0316"},
		{"union U { float f; }; constexpr float q(int n) { U u[2]; u[n].f = 1; return u[0].f; } constant float z = q(5);",
			"float y = z;", "what stands outside an object"},
	} {
		text := c.pre + "\nkernel void k(device float *out [[buffer(0)]]) { " + c.body + " }\n"
		_, err := msl.Compile(msl.Source{Name: "test", Text: text}, msl.Options{})
		require.ErrorContains(t, err, c.want, c.pre)
		require.NotContains(t, err.Error(), "internal error", c.pre)
	}
}
