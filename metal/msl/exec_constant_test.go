package msl_test

import (
	"testing"
)

// A constant is a template argument by pointer and by reference: each one makes an instance of its own.
func TestConstantsAsTemplateArguments(t *testing.T) {
	t.Parallel()
	runRows(t, `
constant float tab[4] = {1, 2, 3, 4};
constant float tab2[4] = {10, 20, 30, 40};
constant int one = 7;
struct P { int a, b; };
constant P pp0 = {3, 4};
template <constant float *T> float at(int i) { return T[i]; }
template <constant float *T> struct Tab { static float get(int i) { return T[i] + *T; } };
template <constant float (&T)[4]> float rat(int i) { return T[i]; }
template <constant int &T> int rr() { return T; }
template <constant int *T> int pp() { return *T; }
template <constant P &T> int ps() { return T.a + T.b; }
template <constant P *T> int pq() { return T->a * T->b; }
template <auto V> int av() { return V; }
template <constant float *T> float fwd(int i) { return at<T>(i) + Tab<T>::get(i); }
template <constant float *T> float ded(Tab<T> x, int i) { return T[i]; }
template <constant int *T> int fwdp() { return pp<T>() + 1; }
template <int N, constant float *... Ts> float sum(int i) { return (Ts[i] + ...); }
`, `
int k = in[2];`, []row{
		{"at<tab>(1)", 2}, {"at<tab2>(1)", 20}, {"at<tab2>(k)", 30}, {"Tab<tab2>::get(2)", 40},
		{"Tab<tab>::get(2)", 4}, {"rat<tab2>(3)", 40}, {"rr<one>()", 7}, {"pp<&one>()", 7}, {"av<5>()", 5},
		{"ps<pp0>()", 7}, {"pq<&pp0>()", 12}, {"fwd<tab>(k)", 7}, {"ded(Tab<tab2>(), 1)", 20},
		{"fwdp<&one>()", 8}, {"sum<1, tab, tab2>(k)", 33},
	})
}

// Unions and bit-fields are constants: their bytes are those of the little-endian layout that Metal has, and constexpr
// functions compute with them.
func TestConstantsOfUnions(t *testing.T) {
	t.Parallel()
	runRows(t, `
union U { float f; uint u; uchar b[4]; };
struct B { uint a : 3; uint b : 5; int c : 4; };
struct UB { U u; B b; int k; };
struct D { uint x : 4 = 3; uint y : 4 = 9; };
struct C { uint lo : 16; uint hi : 16; constexpr C(uint v) : lo(v & 0xffff), hi(v >> 16) {} uint sum() const
  constant { return lo + hi; } };
struct V { packed_float3 p; union { float w; uint bits; }; };
constant U us[2] = {{1.0f}, {2.0f}};
constant B bs[3] = {{1, 2, -3}, {7, 31, 7}};
constant UB ub = {{3.0f}, {1, 9, -1}, 5};
constant U du = {.u = 0x40000000};
constant D dd = {};
constant D d2 = {1};
constant C cc = C(0x30004);
constant V vv = {{1, 2, 3}, {1.0f}};
constexpr uint bitsOf(float x) { U u = {x}; return u.u; }
constexpr uint pack(uint a, uint b) { B p = {}; p.a = a; p.b = b; U u; u.u = 0; u.b[0] = p.a | p.b << 3; return
  u.u; }
constant uint one = bitsOf(1.0f);
constexpr U getU(uint i) { U u; u.u = i; return u; }
struct S { static constexpr constant B t = {2, 3, 1}; };
`, `
int k = in[1]; constexpr B lb = {5, 6, -2}; const B nb = {4, 3, 2}; float arr[pack(1, 2)]; arr[16] = 3;
  constexpr U cu = getU(0x3f800000); U q = us[k];
B copy = bs[k];`, []row{
		{"us[0].u", 1065353216}, {"us[1].f", 2}, {"bs[0].a", 1}, {"bs[0].b", 2}, {"bs[0].c", -3},
		{"bs[1].b", 31}, {"bs[k].c", 7}, {"bs[2].c", 0}, {"bs[k+1].a", 0}, {"ub.u.f", 3}, {"ub.b.b", 9},
		{"ub.b.c", -1}, {"ub.k", 5}, {"du.f", 2}, {"us[k].b[3]", 64}, {"dd.x", 3}, {"dd.y", 9}, {"d2.x", 1},
		{"d2.y", 9}, {"cc.lo", 4}, {"cc.hi", 3}, {"cc.sum()", 7}, {"vv.p.z", 3}, {"vv.bits", 1065353216},
		{"one", 1065353216}, {"lb.c", -2}, {"nb.b", 3}, {"sizeof(arr)", 68}, {"pack(k, 2)", 17}, {"cu.f", 1},
		{"getU(1065353216).f", 1}, {"q.f", 2}, {"copy.b", 31}, {"S::t.b", 3}, {"(&bs[k])->a", 7},
		{"(&ub)->k", 5},
	})
}

// A packed vector is packed as a value too: it has its size, and takes part in arithmetic as an ordinary one.
func TestPackedValues(t *testing.T) {
	t.Parallel()
	runRows(t, `
struct V { packed_float3 p; float w; };
template <typename T> int ps(T x) { return sizeof(T); }
`, `
packed_float3 a = packed_float3(1, 2, 3); auto b = packed_float3(1.0f); V v{packed_float3(4, 5, 6), 7}; auto c =
  packed_half4(1,2,3,4);`, []row{
		{"a.y", 2}, {"sizeof(b)", 12}, {"v.p.z", 6}, {"sizeof(packed_float3(1,2,3))", 12}, {"sizeof(V)", 16},
		{"ps(packed_float3(1,2,3))", 16}, {"sizeof(packed_float3{1,2,3})", 12},
		{"(packed_float3(1,2,3) * 2.0f).z", 6}, {"sizeof(packed_float3(1,2,3) * 2.0f)", 16},
		{"sizeof((packed_float3)float3(1))", 12}, {"sizeof(static_cast<packed_float3>(float3(1)))", 12},
		{"packed_float3(1,2,3).xy.y", 2}, {"packed_float3(1,2,3)[2]", 3},
		{"dot(packed_float3(1,2,3), float3(1))", 6},
	})
}

// Digraphs and words stand for operators ([lex.digraph]).
func TestDigraphs(t *testing.T) {
	t.Parallel()
	runRows(t, `
%:define X 3
`, `
int a<:2:> = <%1, 2%>; int z = not 0 and X == 3 ? compl 0 : 1;`, []row{
		{"a<:1:>", 2}, {"X", 3}, {"z", -1},
	})
}
