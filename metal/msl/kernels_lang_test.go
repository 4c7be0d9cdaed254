package msl_test

import (
	"math"
	"math/bits"
	"testing"

	"github.com/mlxlua/mlxlua/metal/msl"
)

func fallthroughs(i int) int32 {
	r := 0
	switch i % 6 {
	case 0, 1:
		r++
		fallthrough
	case 2:
		r += 10
	case 5:
		r = 7
	default:
		r += 100
		r += 1000
	}
	return int32(r)
}

// What the language has, in kernels of their own.
func TestLanguageKernels(t *testing.T) {
	t.Parallel()
	runKernels(t, languageKernels)
}

var numbers = list(64, func(i int) int32 { return int32(i) })

var languageKernels = []kernelCase{
	{name: "switch with a default in the middle", want: list(32, fallthroughs), text: `
kernel void k(device int *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  int r = 0;
  switch (i % 6) {
    case 0: case 1: r += 1;
    case 2: { r += 10; } break;
    default: r += 100; r += 1000; break;
    case 5: r = 7;
  }
  out[i] = r;
}`},
	{name: "do with continue", want: list(32, func(i int) int32 {
		s, n := 0, i
		for {
			n--
			if n%3 != 0 {
				s += n
				if s > 60 {
					break
				}
			}
			if n <= 0 {
				break
			}
		}
		return int32(s)
	}), text: `
kernel void k(device int *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  int s = 0, n = i;
  do {
    --n;
    if (n % 3 == 0) continue;
    s += n;
    if (s > 60) break;
  } while (n > 0);
  out[i] = s;
}`},
	{name: "enums as template arguments", want: []int32{7, 12, 3, 4, 9, 2}, grid: [3]int{1, 1, 1}, text: `
enum class Op : uchar { Add, Mul, Min = 7 };
enum { kSmall = 2, kLarge = kSmall << 1 };
template <Op op> struct Apply;
template <> struct Apply<Op::Add> { static int of(int a, int b) { return a + b; } };
template <> struct Apply<Op::Mul> { static int of(int a, int b) { return a * b; } };
template <> struct Apply<Op::Min> { static int of(int a, int b) { return a < b ? a : b; } };
template <Op op, int N = kLarge> int many(int a) { int r = a; for (int i = 1; i < N; i++) r = Apply<op>::of(r, a);
  return r; }
kernel void k(device int *out [[buffer(0)]]) {
  out[0] = Apply<Op::Add>::of(3, 4); out[1] = Apply<Op::Mul>::of(3, 4); out[2] = Apply<Op::Min>::of(3, 4);
  out[3] = many<Op::Add>(1); out[4] = many<Op::Mul, kSmall>(3); out[5] = int(Op::Min) - 5;
}`},
	{name: "variadic templates and folds", want: []float32{9, 15, 120, 1, 0, 3, 6, 10, 4}, grid: [3]int{1, 1, 1},
		text: `
template <typename T> T largest(T a) { return a; }
template <typename T, typename... R> T largest(T a, R... rest) { T b = largest(rest...); return a > b ? a : b; }
template <typename... T> auto sum(T... v) { return (v + ...); }
template <typename... T> auto product(T... v) { return (... * v); }
template <typename... T> bool every(T... v) { return (v && ...); }
template <int... N> struct Seq { static constexpr int size = sizeof...(N);
  static int total() { return (0 + ... + N); } };
template <typename... T> void store(device float *out, T... v) { int i = 0; ((out[i++] = float(v)), ...); }
kernel void k(device float *out [[buffer(0)]]) {
  store(out, largest(2, 9, 4), sum(1, 2, 3, 4, 5), product(2, 3, 4, 5), every(true, 1 < 2), every(true, 2 < 1),
        Seq<1, 2, 3>::size, Seq<1, 2, 3>::total(), sum(1.5f, 2.5, 6), sum(half(4)));
}`},
	{name: "lambdas", want: list(32, func(i int) int32 { return int32(i*i + 3*i + 7 + 2*i + 4) }), text: `
template <typename F> int twice(F f, int x) { return f(x) + f(x); }
kernel void k(device int *out [[buffer(0)]], uint tid [[thread_position_in_grid]]) {
  int i = tid, total = 0;
  auto square = [](int x) { return x * x; };
  auto add = [&total](int x) { total += x; };
  const auto scaled = [=](auto x) -> int { return x * i; };
  add(square(i)); add(scaled(3)); add([] { return 7; }());
  total += twice([&](int x) { return x + i; }, 2);
  out[i] = total;
}`},
	{name: "operators of a class", want: []float32{4, 6, 11, 3, 5, -1, 1, 0, 12, 9, 2, 7}, grid: [3]int{1, 1, 1},
		text: `
struct V {
  float a, b;
  V operator+(V o) const { return {a + o.a, b + o.b}; }
  V operator-() const { return {-a, -b}; }
  thread V &operator*=(float s) thread { a *= s; b *= s; return *this; }
  thread V &operator++() { ++a; return *this; }
  V operator++(int) { V old = *this; ++*this; return old; }
  float operator[](int i) const { return i == 0 ? a : b; }
  float operator()(float x, float y) const { return a * x + b * y; }
  bool operator<(V o) const { return a < o.a; }
  explicit operator bool() const { return a != 0; }
  friend V operator*(float s, V v) { return {s * v.a, s * v.b}; }
};
inline bool operator==(V x, V y) { return x.a == y.a && x.b == y.b; }
inline bool operator!=(V x, V y) { return !(x == y); }
kernel void k(device float *out [[buffer(0)]]) {
  V x = {1, 2}, y = V{3, 4}; V z = x + y;
  out[0] = z[0]; out[1] = z.b; out[2] = x(3, 4); z = 1.5f * x; out[3] = z.b; V w = x++; out[4] = w.a + x.a + w.b;
  out[5] = (-w).a; out[6] = w < y && w != y ? 1 : 0; out[7] = V{0, 1} ? 1 : 0; (y *= 2) *= 2; out[8] = y.a;
  out[9] = (++(++w)).a * 3; out[10] = (x == V{2, 2}) + bool(x); out[11] = (y *= 0.25f, y.a + y.b);
}`},
	{name: "a storage type that converts", want: []float32{1, 1.5, -2, 0.015625, 448, 0, 2.75},
		grid: [3]int{7, 1, 1},
		in:   []any{[]uint8{0x38, 0x3c, 0xc0, 0x08, 0x7e, 0x00, 0x42}}, text: `
struct e4m3 {
  uint8_t bits;
  operator float() const device { return decode(bits); }
  operator float() const { return decode(bits); }
  static float decode(uint8_t b) {
    ushort v = ushort(b & 127) << 7;
    half h = as_type<half>(v) * 256.0h;
    return b & 128 ? -float(h) : float(h);
  }
};
static_assert(sizeof(e4m3) == 1, "one byte");
kernel void k(device float *out [[buffer(0)]], device const e4m3 *w [[buffer(1)]],
  uint i [[thread_position_in_grid]]) {
  e4m3 copy = w[i];
  out[i] = (w[i] + copy) * 0.5f;
  if (i == 6) out[i] = copy + 0.25f;
}`},
	{name: "classes over every address space", in: []any{list(64, func(i int) float32 { return float32(i) })},
		want: list(32, func(i int) float32 { return float32(i+1) + float32(31-i)*2 + 3 }), text: `
template <typename P> struct Slice { P p; int n; auto at(int i) const -> decltype(*p) { return p[i]; }
  template <typename T> void put(int i, T v) const { p[i] = v; } };
template <typename P> Slice<P> slice(P p, int n) { return {p, n}; }
constant float table[4] = {1, 2, 3, 4};
kernel void k(device float *out [[buffer(0)]], device const float *in [[buffer(1)]],
  uint i [[thread_position_in_grid]]) {
  threadgroup float tile[32]; float own[2] = {in[i], 1};
  auto s = slice(&tile[0], 32); s.put(i, in[i] * 2);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  auto mine = slice(&own[0], 2); auto d = slice(in, 64); auto c = Slice<constant const float *>{table, 4};
  out[i] = d.at(i) - mine.at(0) + slice(own + 0, 2).at(0) + mine.at(1) + s.at(31 - i) + c.at(2);
}`},
	{name: "structs in threadgroup memory",
		want: list(32, func(i int) float32 { return float32((31-i)*10 + (31-i)%4) }),
		text: `
struct Item { float key; int4 tag; struct { uchar a; half b; } in[2]; };
kernel void k(device float *out [[buffer(0)]], uint i [[thread_index_in_threadgroup]]) {
  threadgroup Item items[32];
  threadgroup Item &mine = items[i];
  mine.key = i * 10; mine.tag = int4(0); mine.tag[i & 3] = i % 4; mine.in[1].b = half(i);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const threadgroup Item *other = &items[31 - i];
  out[i] = other->key + other->tag[(31 - i) & 3] + (float(other->in[1].b) - (31 - i));
}`},
	{name: "constant tables", want: list(32, func(i int) float32 {
		return float32([]int{1, 2, 3, 4, 5, 6}[i%6]) + []float32{0.5, 1.5}[i%2] + float32(i%3*10)
	}), text: `
constant int grid[2][3] = {{1, 2, 3}, {4, 5, 6}};
struct Row { float w; int n; };
constant constexpr Row rows[] = {{0.5f, 0}, {1.5f, 1}};
constexpr constant uint tens[3] = {0, 10, 20};
namespace cfg { constant float unused = 3; template <typename T> constexpr constant T zero = T(0); }
kernel void k(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  const constant int *row = grid[(i % 6) / 3];
  out[i] = row[i % 3] + rows[i & 1].w + tens[i % 3] + cfg::zero<float>;
}`},
	{name: "metal::array and references to arrays", want: []int32{6, 4, 100, 24, 5, 9, 2, 60, 3}, grid: [3]int{1, 1, 1},
		text: `
template <typename T, int N> int total(thread const T (&a)[N]) { int s = 0; for (int i = 0; i < N;
  i++) s += a[i]; return s; }
int first(array<int, 3> a) { a[0] += 100; return a[0]; }
void fill(thread array<int, 3> &a, int v) { for (uint i = 0; i < a.size(); i++) a[i] = v; }
int rows(thread int (*p)[2]) { return p[1][0] + p[1][1]; }
kernel void k(device int *out [[buffer(0)]]) {
  array<int, 3> a = {1, 2, 3}; int b[4] = {1, 1, 1, 1}; int m[2][2] = {{1, 2}, {4, 5}};
  out[0] = a[0] + a[1] + a[2]; out[1] = total(b); array<int, 3> c = a; c[0] = 0; out[2] = first(c);
  fill(c, 8); out[3] = c[0] + c[1] + c[2]; thread int (&r)[2] = m[1]; out[4] = r[1]; out[5] = rows(m);
    out[6] = m[0][1];
  array<array<int, 2>, 3> nested = {{{10, 20}, {30, 0}, {0, 0}}};
  out[7] = nested[0][0] + nested[0][1] + nested[1][0]; out[8] = int(sizeof(a) / sizeof(int));
}`},
	{name: "pointers in variables", in: []any{numbers, list(64, func(i int) int32 { return int32(1000 + i) })},
		want: list(32, func(i int) int32 {
			if i%2 == 0 {
				return int32(i) + 2003
			}
			return int32(1000+i) + 3
		}), text: `
kernel void k(device int *out [[buffer(0)]], device const int *a [[buffer(1)]], device const int *b [[buffer(2)]],
              uint i [[thread_position_in_grid]]) {
  device const int *ends[2] = {a, b};
  auto p = ends[i & 1] + i;
  int r = *p;
  device const int *q = i & 1 ? a : b; q += 2;
  const device int *const *pp = &q - 0; (void)pp;
  r += i & 1 ? int(q - a) + *(q - 1) : *q++ + 1 + (q[-1] != 1002);
  if (!(i & 1)) r += 1000;
  out[i] = r;
}`},
	{name: "as_type between all sizes", want: []uint32{0x3f800000, 0x40003c00, 0x04030201, 0x3c00, 0xbf800000,
		0x00020001,
		0x3f8, 0x7fffffff, 0x12345678, 0x9abcdef0}, grid: [3]int{1, 1, 1}, text: `
kernel void k(device uint *out [[buffer(0)]]) {
  out[0] = as_type<uint>(1.0f); out[1] = as_type<uint>(half2(1, 2)); out[2] = as_type<uint>(uchar4(1, 2, 3, 4));
  out[3] = as_type<ushort>(1.0h); out[4] = as_type<uint2>(float2(1, -1)).y; out[5] = as_type<uint>(short2(1, 2));
  out[6] = as_type<ushort>(bfloat(1.0f)) >> 4; out[7] = as_type<uint>(as_type<int>(0xffffffffu) & INT_MAX);
  ulong wide = as_type<ulong>(uint2(0x12345678u, 0x9abcdef0u)); uint2 back = as_type<uint2>(wide);
  out[8] = back.x; out[9] = as_type<uint4>(as_type<ulong2>(uint4(0, 0, 1, 0x9abcdef0u))).w;
}`},
	{name: "macros", want: []int32{42, 7, 30, 3, 24, 5, 11, 8}, grid: [3]int{1, 1, 1}, text: `
#define CAT(a, b) a##b
#define XCAT(a, b) CAT(a, b)
#define NAME value
#define STR(x) #x
#define MAX3(a, b, c) max(a, max(b, c))
#define APPLY(f, ...) f(__VA_ARGS__)
#define EACH(m) m(1) m(2) m(3)
#define SUM(n) s += n * 4;
#define BLOCK(x) do { x += 2; if (x > 10) break; x += 100; } while (0)
#if defined(NAME) && !defined(OTHER) && (3 > 2 ? 1 : 0) && __METAL_VERSION__ >= 200
#define OK 5
#elif 1
#error "not reached"
#endif
_Pragma("clang diagnostic push")
kernel void k(device int *out [[buffer(0)]]) {
  int XCAT(NAME, 1) = 42, s = 0, x = 9;
  out[0] = value1; out[1] = MAX3(3, 7, 5); out[2] = APPLY(MAX3, 10, 20, 30); out[3] = int(sizeof(STR(ab))); EACH(SUM)
  out[4] = s; out[5] = OK; BLOCK(x); out[6] = x;
#undef NAME
#define NAME 8
  out[7] = NAME;
}`},
	{name: "unions", want: []uint32{0x40490fdb, 0x0fdb, 0x5b}, grid: [3]int{1, 1, 1}, text: `
union Bits { float f; uint u; ushort2 h; uchar b[4]; };
kernel void k(device uint *out [[buffer(0)]]) {
  Bits x; x.f = M_PI_F; out[0] = x.u; out[1] = x.h.x; out[2] = (uint(x.b[0]) & 0x0f) | 0x50;
}`},
	{name: "bit-fields", grid: [3]int{1, 1, 1},
		in:   []any{[]uint32{0x2d | 9<<8 | 1<<31, 0xfedcba98, 0x01234567, 0}},
		want: []int32{5, 5, -7, 1, 12, 8, 6, -1, 1, 3, 9, 0x123, 1, -2, 24, 1, 7, 77, 0x5003, 2}, text: `
struct Packed { uint a : 3; uint b : 5; int c : 4; uint : 19; bool d : 1; uint2 rest; };
struct Mixed { uchar kind; uint low : 4; uint high : 12; uint : 0; ushort tail : 9; ulong wide : 40; };
enum class Mode : uint { Off, On, Auto };
struct Flags { Mode mode : 2; int level : 3 = -2; uint count : 16 = 3; Flags(Mode m) : mode(m) {} };
union Word { uint all; struct { uint low : 12; uint high : 20; } part; };
static_assert(sizeof(Packed) == 16, "a unit and a vector");
static_assert(sizeof(Mixed) == 16 && sizeof(Flags) == 4, "units");
template <typename T> int which(T) { return sizeof(T) == 4 && T(-1) > T(0) ? 1 : 0; }
kernel void k(device int *out [[buffer(0)]], device const Packed *p [[buffer(1)]]) {
  Packed x = *p;
  out[0] = x.a; out[1] = x.b; out[2] = x.c; out[3] = x.d;
  x.b += 7; out[4] = x.b; x.c = 8 + 16; out[5] = x.c & 15; out[6] = x.a += 1; out[7] = (x.a - 7u < 0) - (x.a - 7 < 0);
  Mixed m = {200, 19, 0x123}; out[8] = m.kind == 200; out[9] = m.low; m.low = 9; out[10] = m.low; out[11] = m.high;
  m.wide = 0x12345678ffful; m.tail = 511; out[12] = m.wide == 0x45678ffful + (0x23ul << 32);
  Flags f(Mode::Auto); out[13] = f.level; f.count *= 8; out[14] = f.count; out[15] = f.mode == Mode::Auto;
  x.a = 0; out[16] = --x.a; thread Mixed *q = &m; q->kind = 77; out[17] = m.kind;
  Word w; w.all = 0; w.part.low = 3; w.part.high = 5; out[18] = w.all; out[19] = which(x.a) + which(f.count);
}`},
	{name: "inheritance and CRTP", want: []int32{11, 22, 5, 9, 1, 2, 7}, grid: [3]int{1, 1, 1}, text: `
template <typename D> struct Base { int run(int x) const {
  return static_cast<const thread D *>(this)->step(x) + 1; } };
struct A : Base<A> { int step(int x) const { return x * 10; } };
struct B : Base<B> { int k; B(int k) : k(k) {} int step(int x) const { return x * k; } };
struct Animal { int legs = 4; int count() const { return legs; } Animal() {} Animal(int n) : legs(n) {} };
struct Bird : Animal { Bird() : Animal(2) {} int count() const { return Animal::count() + 3; } };
struct Both : Bird { using Animal::legs; int wings{2}; int sum() const { return legs + wings + count(); } };
template <typename T> struct is_ptr { static constexpr constant bool value = false; };
template <typename T> struct is_ptr<thread T *> { static constexpr constant bool value = true; };
template <bool> struct Tag {}; int pick(Tag<true>) { return 1; } int pick(Tag<false>) { return 2; }
template <typename T> int dispatch(T) { return pick(Tag<is_ptr<T>::value>{}); }
kernel void k(device int *out [[buffer(0)]]) {
  int x = 0; out[0] = A().run(1); out[1] = B(7).run(3); out[2] = Bird().count(); out[3] = Both().sum();
  out[4] = dispatch(&x); out[5] = dispatch(x); Bird b; b.legs = 4; out[6] = b.count();
}`},
	{name: "dependent names", want: []int32{4, 6, 12, 2, 8, 16, 1}, grid: [3]int{1, 1, 1}, text: `
template <typename T> struct Vec { using elem = T; using wide = vec<T, 4>; struct iterator { int at; };
  template <int N> static int bytes() { return N * sizeof(T);
    } template <typename U> struct rebind { using other = Vec<U>; }; };
template <typename V> int go() { typename V::elem x = 3; typename V::iterator it{1};
  return int(x) + it.at + int(sizeof(typename V::wide)) * 0; }
template <typename V> int inner() { return V::template bytes<3>(); }
template <typename V, typename U> using re = typename V::template rebind<U>::other;
template <template <typename, int> class C, typename T> int size_of() { return C<T, 2>::size; }
template <typename T, int N> struct Buf { static constant constexpr int size = N; T v[N]; };
template <typename T> struct Outer { template <typename U> struct In { static int f() {
  return sizeof(T) * sizeof(U); } }; };
template <typename T> using scalar_t = metal::conditional_t<metal::is_same_v<T, half>, float, T>;
kernel void k(device int *out [[buffer(0)]]) {
  out[0] = go<Vec<int>>(); out[1] = inner<Vec<half>>(); out[2] = inner<re<Vec<half>, float>>();
    out[3] = size_of<Buf, int>();
  out[4] = Outer<float>::In<half>::f(); out[5] = int(sizeof(Vec<float>::wide));
    out[6] = metal::is_same_v<scalar_t<half>, float>;
}`},
	{name: "namespaces", want: []int32{3, 4, 5, 6, 7, 8}, grid: [3]int{1, 1, 1}, text: `
namespace a { int f() { return 3; } namespace b { int g() { return f() + 1;
  } } inline namespace v2 { int h() { return 5; } } }
namespace { int hidden() { return 6; } }
namespace short_name = a::b;
namespace a { struct T { int x; }; int use(T t) { return t.x; } }
using a::b::g;
namespace m = metal;
kernel void k(device int *out [[buffer(0)]]) {
  using namespace a; out[0] = f(); out[1] = g(); out[2] = a::h(); out[3] = ::hidden(); out[4] = use(a::T{7});
  out[5] = m::max(short_name::g(), 8);
}`},
	{name: "narrow integers", want: []int32{-56, 200, -128, 44, 1, -1, 0, 65535, -32768, 255, 3}, grid: [3]int{1, 1, 1},
		text: `
kernel void k(device int *out [[buffer(0)]]) {
  char c = 100; c += c; uchar u = c; out[0] = c; out[1] = u; char low = 127; low++; out[2] = low; u += 100;
    out[3] = u;
  out[4] = uchar(255) + 1 > 255; out[5] = short(0xffff); out[6] = uchar(uchar(200) << 8); out[7] = ushort(-1);
  short s = 32767; ++s; out[8] = s; uchar n = 0; n--; out[9] = n; out[10] = uchar(0xf3) & ~0xf0;
}`},
	{name: "wide integers", grid: [3]int{8, 1, 1},
		in: []any{[]uint64{0, 1, 0xffffffffffffffff, 1 << 40, 12345678901234567, 7, 1 << 63, 99}},
		want: list(8, func(i int) uint64 {
			x := []uint64{0, 1, 0xffffffffffffffff, 1 << 40, 12345678901234567, 7, 1 << 63, 99}[i]
			hi, _ := bits.Mul64(x, 0x9e3779b97f4a7c15)
			return (hi ^ bits.RotateLeft64(x,
				13)) + uint64(bits.LeadingZeros64(x)) + x/1000000007 + uint64(int64(x)>>60)
		}), text: `
kernel void k(device ulong *out [[buffer(0)]], device const ulong *in [[buffer(1)]],
  uint i [[thread_position_in_grid]]) {
  ulong x = in[i];
  out[i] = (mulhi(x, 0x9e3779b97f4a7c15ul) ^ rotate(x, 13ul)) + clz(x) + x / 1000000007ul + ulong(long(x) >> 60);
}`},
	{name: "literals", want: []float32{255, 10, 65, 10, 0.5, 1e6, 8, 2.5, 1, 3, 16777216, 92},
		grid: [3]int{1, 1, 1}, text: `
kernel void k(device float *out [[buffer(0)]]) {
  out[0] = 0xFF; out[1] = 0b1010; out[2] = 'A'; out[3] = 012; out[4] = 0x1p-1f; out[5] = 1'000'000.0f; out[6] = 0x1p3;
  out[7] = 2.5h; out[8] = 1.0bf; out[9] = 3u; out[10] = 1.6777216e7F; out[11] = '\\';
}`},
	{name: "if with initialiser, constexpr chains", want: []int32{1, 2, 3, 40, 5}, grid: [3]int{1, 1, 1}, text: `
template <typename T, int N> int kind() {
  if constexpr (is_floating_point_v<T> || is_same_v<T, bfloat>) return 1;
  else if constexpr (is_unsigned_v<T> && N > 2) { static_assert(N > 2, "checked"); return 2; }
  else return 3;
}
kernel void k(device int *out [[buffer(0)]]) {
  out[0] = kind<half, 1>(); out[1] = kind<uint, 4>(); out[2] = kind<int, 4>();
  if (int v = 4; v > 3) out[3] = v * 10; else out[3] = v;
  switch (int w = 5) { case 5: out[4] = w; }
}`},
	{name: "range-based for and attributes", want: []int32{10, 6, 8}, grid: [3]int{1, 1, 1}, text: `
[[nodiscard]] static inline int add(int a, [[maybe_unused]] int b = 0) { return a + b; }
kernel void k(device int *out [[buffer(0)]]) {
  int a[4] = {1, 2, 3, 4}, s = 0; for (int v : a) s += v; out[0] = s; s = 0;
  for (thread int &v : a) v *= 2; for (auto v : {1, 2, 3}) s = add(s, v); out[1] = s;
    [[maybe_unused]] int z = 3; out[2] = a[3];
}`},
	{name: "function constants", constants: []msl.FunctionConstant{{Index: 0, Values: []any{true}},
		{Index: 1, Values: []any{"3"}}, {Name: "scale", Values: []any{2.5}}},
		want: []float32{8.5}, grid: [3]int{1, 1, 1}, text: `
constant bool fast [[function_constant(0)]]; constant int rounds [[function_constant(1)]];
  constant float scale [[function_constant(2)]];
constant bool twice = fast && rounds > 2;
kernel void k(device float *out [[buffer(0)]]) {
  float r = 1; for (int i = 0; i < rounds; i++) r += scale; if (!twice) r = 0; out[0] = fast ? r : -1;
}`},
	{name: "a parameter block and dynamic memory", shared: []int{128}, grid: [3]int{24, 1, 1},
		group: [3]int{8, 1, 1},
		in: []any{[]uint32{24, 0, math.Float32bits(0.5), math.Float32bits(10), math.Float32bits(20),
			math.Float32bits(30)}},
		want: list(24, func(i int) float32 { return float32(i/8*8+7-i%8)*0.5 + []float32{10, 20, 30}[i%3] }),
		text: `
struct Params { uint n; bool flip; float scale; packed_float3 bias; };
kernel void k(device float *out [[buffer(0)]], constant Params &p [[buffer(1)]],
  threadgroup float *tile [[threadgroup(0)]],
              uint i [[thread_position_in_grid]], ushort lid [[thread_index_in_threadgroup]],
              uint3 size [[threads_per_threadgroup]]) {
  if (i >= p.n) return;
  tile[lid] = float(i) * p.scale;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = tile[size.x - 1 - lid] + p.bias[i % 3] + p.flip;
}`},
	{name: "instances with names", kernel: "scale_int_3",
		in: []any{numbers}, want: list(32, func(i int) int32 { return int32(3 * i) }),
		text: `
template <typename T, int N> [[kernel]] void scale(device T *out [[buffer(0)]], device const T *in [[buffer(1)]],
    uint2 at [[thread_position_in_grid]]) { out[at.x] = in[at.x] * N; }
#define instance(name, T, N) template [[host_name(#name "_" #N)]] [[kernel]] decltype(scale<T, N>) scale<T, N>;
instance(scale_float, float, 2) instance(scale_int, int, 3)`},
	{name: "comma, chains, swizzle assignment", want: []float32{3, 3, 8, 6, 1, 9, 14, 4}, grid: [3]int{1, 1, 1},
		text: `
kernel void k(device float *out [[buffer(0)]]) {
  int a, b, c; a = b = c = 3; a += b *= 2, c--; float4 v(1, 2, 3, 4); v.xz = v.zx; v.yw *= 2;
    v.rgb += float3(0, 0, 0);
  out[0] = v.x; out[1] = float(b) - 3; out[2] = v.w; out[3] = b; out[4] = v.z; out[5] = a; out[6] = v.wzyx.x + b;
  out[7] = float2(v.yx).x;
}`},
}
