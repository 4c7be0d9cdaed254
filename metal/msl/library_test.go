package msl

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// manyKernels is a text with n instances of a kernel; instance number bad uses what does not exist.
func manyKernels(n, bad int) Source {
	var b strings.Builder
	b.WriteString("template <int N> struct Only { static constexpr int value = N; };\n")
	fmt.Fprintf(&b, "template <> struct Only<%d> {};\n", bad)
	b.WriteString("template <typename T, int N> [[kernel]] void f(device T *x, uint i [[thread_position_in_grid]]) {\n" +
		"  T s = 0;\n  for (int j = 0; j < N + 3; j++) s += x[j] * T(j);\n  x[i] = s + T(Only<N>::value);\n}\n" +
		"#define instantiate(name, ...) template [[host_name(name)]] [[kernel]] decltype(f<__VA_ARGS__>) f<__VA_ARGS__>;\n")
	for i := range n {
		fmt.Fprintf(&b, "instantiate(\"f%d\", %s, %d)\n", i, []string{"float", "int", "half"}[i%3], i)
	}
	return Source{Name: "many", Text: b.String()}
}

// A kernel that is made when it is asked for is the kernel that Compile makes with all the others.
func TestLibraryMakesTheSameKernels(t *testing.T) {
	t.Parallel()
	src := manyKernels(40, -1)
	whole, err := Compile(src, Options{})
	require.NoError(t, err)
	l, err := load(src, Options{}, false, 1)
	require.NoError(t, err)
	require.Len(t, l.Names(), 40)
	require.Equal(t, 40, l.left)
	for _, i := range []int{39, 3, 17, 3, 0} {
		k, err := l.Kernel(i)
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf("f%d", i), k.Name)
		require.Equal(t, whole.Kernels[i].String(), k.String())
		again, err := l.Kernel(i)
		require.NoError(t, err)
		require.Same(t, k, again)
	}
	require.Equal(t, whole.Files, l.Files())
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() { _, _ = l.Kernel(i) })
	}
	wg.Wait()
	require.Zero(t, l.left)
	require.Nil(t, l.c, "the tree is let go of")
}

// What is wrong with an instance that Load has not made is the error of its kernel, and of no other.
func TestLibraryErrorsOfOneKernel(t *testing.T) {
	t.Parallel()
	const bad = 31
	src := manyKernels(40, bad)
	_, err := Compile(src, Options{})
	require.ErrorContains(t, err, "'value'")
	l, err := load(src, Options{}, false, 1)
	require.NoError(t, err)
	_, first := l.Kernel(bad)
	var list ErrorList
	require.True(t, errors.As(first, &list))
	require.Len(t, list, 1)
	require.Equal(t, uint32(6), list[0].Pos.Line)
	_, second := l.Kernel(bad)
	require.Equal(t, first, second)
	_, err = l.Kernel(bad + 1)
	require.NoError(t, err)
}

// A kernel that is given up leaves nothing behind that the next one could meet.
func TestLibraryGoesOnAfterGivingUp(t *testing.T) {
	t.Parallel()
	src := Source{Name: "two", Text: `
template <int N> struct Deep { static constexpr int v = Deep<N + 1>::v; };
template <int N> [[kernel]] void f(device int *x) { if constexpr (N == 1) x[0] = Deep<0>::v; else x[0] = N; }
template [[host_name("a")]] [[kernel]] void f<0>(device int *x);
template [[host_name("b")]] [[kernel]] void f<1>(device int *x);
template [[host_name("c")]] [[kernel]] void f<2>(device int *x);
`}
	l, err := load(src, Options{}, false, 1)
	require.NoError(t, err)
	_, err = l.Kernel(1)
	require.ErrorContains(t, err, "deep")
	k, err := l.Kernel(2)
	require.NoError(t, err)
	require.Equal(t, "c", k.Name)
}

// Most texts are made whole, so that all that is wrong is heard of at once; thousands of instances are not.
func TestLoadIsBounded(t *testing.T) {
	t.Parallel()
	l, err := Load(manyKernels(40, -1), Options{})
	require.NoError(t, err)
	require.Zero(t, l.left)
	l, err = Load(manyKernels(4000, -1), Options{})
	require.NoError(t, err)
	require.Greater(t, l.left, 2000)
	require.Less(t, l.c.unitWork, 2*maxEager)
	k, err := l.Kernel(3999)
	require.NoError(t, err)
	require.Equal(t, "f3999", k.Name)
}

// What several kernels use is wrong in each of them, also where the compiler has worked it out once for all.
func TestLibraryErrorsOfSharedParts(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"function": "template <int N> int bad() { static_assert(N != 7, \"\"); return N; }\n#define USE bad<N>()",
		"class": "template <int N> struct S { static_assert(N != 7, \"\"); int v; };\n" +
			"template <int N> int get(S<N> s) { return s.v; }\n#define USE get<N>(S<N>{3})",
		"member":   "template <int N> struct Q { static constant constexpr int v = 1 / (N - 7); };\n#define USE Q<N>::v",
		"variable": "template <int N> constant constexpr int v = 1 / (N - 7);\n#define USE v<N>",
		"alias": "template <int N> struct A { using type = decltype(no_such(N - 7)); };\n" +
			"#define USE typename A<N>::type(1)",
	} {
		t.Run(name, func(t *testing.T) {
			l, err := load(Source{Name: "shared", Text: text + `
template <int N, int M> [[kernel]] void f(device int *x) { if constexpr (N == 7) x[0] = USE + M; else x[0] = N; }
template [[host_name("a")]] [[kernel]] void f<7, 1>(device int *x);
template [[host_name("b")]] [[kernel]] void f<7, 2>(device int *x);
template [[host_name("c")]] [[kernel]] void f<2, 2>(device int *x);
template [[host_name("d")]] [[kernel]] void f<7, 3>(device int *x);
`}, Options{}, false, 1)
			require.NoError(t, err)
			_, first := l.Kernel(0)
			require.Error(t, first)
			for _, i := range []int{1, 3} {
				_, err := l.Kernel(i)
				require.EqualError(t, err, first.Error())
			}
			_, err = l.Kernel(2)
			require.NoError(t, err)
			require.Zero(t, l.left)
		})
	}
}
