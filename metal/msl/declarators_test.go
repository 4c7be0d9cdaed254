package msl

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Address space words and const stand wherever a declarator of C++ with Metal's qualifiers has a place for them: before
// or after the type, behind *, and before the * or & in parentheses, where they are of what it leads to.
func TestPlacesOfAddressSpaces(t *testing.T) {
	t.Parallel()
	const head = "using namespace metal;\n" +
		"void f1(float (thread *r)[2]) {} void f2(thread float (*r)[2]) {} void f3(thread float (&r)[2]) {}\n" +
		"void f4(float thread r[2][2]) {} void f5(float (thread &r)[2]) {} void f6(float (thread *)[2]) {}\n" +
		"void g1(device float *__restrict__ x) {} void g2(float device *x) {} void g3(float device x[]) {}\n" +
		"void t1(float (threadgroup *t)[2]) {} template <typename T> void any(T t) {}\n" +
		"template <typename T, int N> int size(T (thread &r)[N]) { return N; }\n" +
		"struct S { float m[2][2]; float (thread *rp)[2]; };\n"
	compiled := func(body string) error {
		_, err := Compile(Source{Name: "s", Text: head + "kernel void k(device float *x [[buffer(0)]], " +
			"threadgroup float (&m)[2][2] [[threadgroup(0)]]) { float a[2][2] = {{1, 2}, {3, 4}};\n" + body + "\n}"}, Options{})
		return err
	}
	for _, name := range []string{"float (thread *NAME)[2]", "thread float (*NAME)[2]", "float thread (*NAME)[2]",
		"float (*NAME)[2]", "float (*thread NAME)[2]", "thread float (* const NAME)[2]", "float (thread * const NAME)[2]",
		"float (thread *volatile NAME)[2]", "float (thread *__restrict NAME)[2]", "const thread float (*NAME)[2]",
		"float const (thread *NAME)[2]", "float const thread (*NAME)[2]", "thread const float (*const NAME)[2]",
		"float (thread &NAME)[2][2]", "float (&NAME)[2][2]", "const thread float (&NAME)[2][2]", "auto thread *NAME",
		"const float (thread &NAME)[2][2]"} {
		value := "a"
		if strings.HasPrefix(name, "auto") {
			value = "&a"
		}
		require.NoError(t, compiled(strings.Replace(name, "NAME", "r", 1)+" = "+value+";"), name)
	}
	for _, body := range []string{
		"float const device *p = x; float device const *q = x; const float device *const r = x; device float *thread s = x;",
		"float device *thread *pp; device float *p = x; pp = &p; float thread *thread *tt; float thread *u = a[0]; tt = &u;",
		"float (device *p)[2] = (float (device *)[2])x; auto q = (float (device *)[4])x; device float (*r)[2] = p;",
		"float (device *p)[2] = reinterpret_cast<float (device *)[2]>(x); float (device *l[2])[2] = {p, p};",
		"typedef float (thread *Row)[2]; using Ref = float (thread &)[2]; Row r = a; Ref s = a[0]; s[0] = (*r)[1];",
		"threadgroup float g[2]; float (threadgroup *p)[2] = &g; float (threadgroup *q)[2] = m; t1(p); t1(q); t1(m);",
		"f1(a); f2(a); f3(a[0]); f4(a); f5(a[0]); f6(a); g1(x); g2(x); g3(x); any<float (thread *)[2]>(a);",
		"x[0] = size(a) + sizeof(float (thread *)[2]) + sizeof(float thread *);",
		"for (float (thread *r)[2] = a; r != a + 2; ++r) (*r)[0] = 1; if (float (thread *r)[2] = a) (*r)[0] = 1;",
		"auto l = [](float (thread *r)[2]) { return (*r)[0]; }; x[0] = l(a); S s; float (thread *r)[2] = s.m; s.rp = s.m;",
		"float (thread *r)[2] = a, b = 2, (thread &c)[2] = a[0]; r[0][0] = b + c[1];",
		"float (b)[2] = {1, 2}; float ((c)[2]) = {1, 2}; float (d); d = b[0] + c[0]; x[0] = float(d) + float (b[1]);",
	} {
		require.NoError(t, compiled(body), body)
	}
	for body, want := range map[string]string{
		"float (device *r)[2] = a;":      "pointer to thread memory (float[2]*) is no pointer to device memory",
		"float (threadgroup *r)[2] = a;": "is no pointer to threadgroup memory",
		"float (thread *r)[2] = m;":      "is no pointer to thread memory",
		"float (thread *r)[3] = a;":      "does not convert to",
		"float (device &r)[2][2] = a;":   "cannot be bound to",
		"device float (threadgroup *r);": "two address spaces: device and threadgroup",
		"float (device thread2 *r);":     "expected",
		"t1(a);":                         "is no pointer to threadgroup memory",
		"float (const *r)[2] = a;":       "expected",
	} {
		err := compiled(body)
		require.ErrorContains(t, err, want, body)
	}
}
