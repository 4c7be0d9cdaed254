package msl

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What people get wrong, and what the message tells them to do. A text without a kernel is the body of one, as
// metal_kernel makes it.
func TestMistakes(t *testing.T) {
	t.Parallel()
	const head = "using namespace metal;\nkernel void k(device float *out, const device float *inp, " +
		"const device float3 *v3, const device int *ii, uint3 thread_position_in_grid [[thread_position_in_grid]]) {\n" +
		"uint elem = thread_position_in_grid.x;\n"
	for _, c := range []struct {
		text string
		code Code
		says string
	}{
		{"out[elem] = metal::expp(inp[elem]);", Undeclared, "did you mean 'exp'?"},
		{"out[elem] = sqr(inp[elem]);", Undeclared, "did you mean 'sqrt'?"},
		{"out[elem] = expf(inp[elem]);", Undeclared, "did you mean 'exp'?"},
		{"out[elem] = simd_add(inp[elem]);", Undeclared, "did you mean 'simd_and'?"},
		{"out[elem] = exp(inp[elem])", UnexpectedToken, "expected ';' after an expression"},
		{"int x = 5\nout[elem] = x;", UnexpectedToken, "expected ';' after a declaration"},
		{"if (elem < 5 { out[elem] = 1; }", UnexpectedToken, "expected ')' after the condition"},
		{"out[elem] = inp[elem] > 0 ? 1;", UnexpectedToken, "expected ':' between the values of ?:"},
		{"while (true) { out[elem] = 1;", UnexpectedToken, "expected '}' at the end of a block"},
		{"int class = 1;", BadDeclarator, "expected a name to declare, found the keyword 'class'"},
		{"int kernel = 1;", BadDeclarator, "found '=': the keyword 'kernel' cannot be one"},
		{"void f(int default) {}\nkernel void k(device int *x) {}", UnexpectedToken, "found the keyword 'default'"},
		{"template <typename T> void f(T T) {}\nkernel void k(device int *x) { f(x[0]); }", Redefinition,
			"'T' is the name of a template parameter"},
		{"template <int n> kernel void k(device int *n) {}\ntemplate [[host_name(\"k\")]] kernel void k<3>(device int *n);",
			Redefinition, "'n' is the name of a template parameter"},
		{"int f(int a, int a) { return a; }\nkernel void k(device int *x) { x[0] = f(1, 2); }", Redefinition,
			"'a' is declared twice"},
		{"out[elem] = clamp(inp[elem], 0.0f);", ArgCount, "write clamp(x, least, most)"},
		{"out[elem] = fma(inp[elem]);", ArgCount, "write fma(a, b, c)"},
		{"out[elem] = select(1.0f, 2.0f);", ArgCount, "write select(a, b, c), which is c ? b : a"},
		{"out[elem] = exp(inp[elem], 2);", NoMatch, "exp(float): it takes 1 argument, not 2"},
		{"out[elem] = mix(1.0, 2.0f);", NoMatch, "mix(float, float, float): it takes 3 arguments, not 2"},
		{"threadgroup_barrier();", ArgCount, "write threadgroup_barrier(mem_flags::mem_threadgroup)"},
		{"threadgroup_barrier(mem_flags::threadgroup);", TypeAsValue, "mem_flags::mem_threadgroup"},
		{"kernel void k(device float *x [[bufer(0)]]) {}", UnknownAttribute, "did you mean 'buffer'?"},
		{"kernel void k(device float *x, uint i [[thread_position_in_gird]]) {}", UnknownAttribute,
			"did you mean 'thread_position_in_grid'?"},
		{"kernel void k(float *x [[buffer(0)]]) { x[0] = 1; }", AddressSpace, "name device, constant or threadgroup"},
		{"float *p = inp; out[elem] = p[0];", AddressSpace, "write device before its type, or auto"},
		{"out[elme] = 1;", Undeclared, "did you mean 'elem'?"},
		{"out[elem] = thread_position_in_gird.x;", Undeclared, "did you mean 'thread_position_in_grid'?"},
		{"template <typename T> T f() { return T(1); } kernel void k(device float *x) { x[0] = f(); }", NoMatch,
			"write f<...>(...)"},
		{"out[elem] = v3[elem].w;", BadSwizzle, "it has .xyz"},
		{"out[inp[elem]] = 1;", BadOperands, "write uint(...) around it"},
		{"return inp[elem];", BadReturn, "write it to an output"},
		{"out[elem] = v3[elem];", TypeMismatch, "name a component, such as .x"},
		{"uint i = thread_position_in_grid; out[i] = 1;", TypeMismatch, "name a component, such as .x"},
		{"int i = int(thread_position_in_grid); out[i] = 1;", BadCast, "name a component, such as .x"},
		{"uint2 p = thread_position_in_grid; out[p.x] = 1;", TypeMismatch, "name the components, .xy"},
		{"out[thread_position_in_grid] = 1;", BadOperands, "name a component, such as .x"},
		{"out[tid] = 1;", Undeclared, "write thread_position_in_grid.x"},
		{"out[elem] = T(1);", Undeclared, `template = {{"T", mx.float32}}`},
		{"T acc = 0; out[elem] = acc;", UnknownType, `template = {{"T", mx.float32}}`},
		{"out[elem] = static_cast<T>(1);", UnknownType, `template = {{"T", mx.float32}}`},
		{"threadgroup T s[3];", UnknownType, `template = {{"T", mx.float32}}`},
		{"out[elem] = y_shape[0];", Undeclared, "metal_kernel declares it for an input named 'y'"},
		{"int n = inp.size();", NoMember, "metal_kernel declares x_shape"},
		{"float x = inp[elem]; x.y = 2;", NoMember, "it is one number"},
		{"float x = inp(elem);", NotCallable, "index it with [ ]"},
		{"out[elem] = length(v3);", NoMatch, "argument 1 is a pointer: index it for a value"},
		{"atomic_fetch_add_explicit(out, 1.0f, memory_order_relaxed);", TypeMismatch, "atomic_outputs = true"},
		{"atomic_fetch_add(out, 1.0f);", Undeclared, "write atomic_fetch_add_explicit"},
		{"float a[elem];", NotConstant, "it needs the value of 'elem'"},
		{"inp[elem] = 1;", NotAssignable, "const float cannot be assigned to"},
		{"out[elem] = *(inp + 2.0f);", BadOperands, "or write uint(...) around the offset"},
		{"out[elem] = inp * 2;", BadOperands, "* is not defined on device const float* and int: index the pointer"},
		{"out[elem] = 2.0f - out;", BadOperands, "index the pointer"},
		{"threadgroup_barrier(mem_threadgroup);", Undeclared, "write mem_flags::mem_threadgroup"},
		{"while (true) { }\n}\nvoid f() { template <typename T> T g();", BadTemplate, "is a '}' missing before it?"},
		{"out[elem] = ii[elem] % 2.0;", BadOperands, "write fmod(a, b)"},
		{"out[elem] = inp[elem] ^ 2;", BadOperands, "a power is pow(a, b)"},
		{"double a = 1; out[elem] = a;", Unsupported, "Metal has no double: use float"},
		{"long double a = 1; out[elem] = a;", BadSpecifiers, "Metal has no long double: use float"},
		{"kernel void k(device float *x, metal::sampler s [[sampler(0)]]) {}", Unsupported, "pass a buffer"},
		{"using namespace metal; kernel void k(device float *x, sampler s [[sampler(0)]]) {}", Unsupported,
			"pass a buffer and index it"},
		{"kernel void k(device float *x, metal::texture2d<float> s [[texture(0)]]) {}", Unsupported,
			"pass a buffer and index it"},
		{"#include <MetalPerformancePrimitives/MetalPerformancePrimitives.h>\nout[elem] = 1;", IncludeNotFound,
			"is not supported: it declares Apple's operations on tensors; multiply with simdgroup_matrix"},
		{"#include <metal_raytracing>\nusing namespace metal;\nkernel void k(device int *x) {}", IncludeNotFound,
			"it declares ray tracing"},
		{"imageblock<float4> b; out[elem] = 1;", UnexpectedToken, "imageblocks are not supported: use threadgroup memory"},
		{"tensor<float, dextents<int, 2>> t(inp); out[elem] = 1;", UnexpectedToken,
			"tensors are not supported: pass buffers"},
		{"typedef half h65 __attribute__((ext_vector_type(65)));\nkernel void k(device h65 *x) {}", BadTemplateArgs,
			"vec has 1 to 64 components"},
		{"half8 h; out[elem] = h.x;", UnknownType, "Metal reserves it: write vec<half, 8>"},
		{"out[elem] = ushort16(1)[elem];", Undeclared, "Metal reserves it: write vec<ushort, 16>"},
		{"typedef float f4 __attribute__((vector_size(16)));\nkernel void k(device f4 *x) {}", NotInMetal,
			"write vec<type, n>"},
		{"out[elem] = cos[elem];", BadOperands, "[] is not defined on the function 'cos': no input has that name"},
		{"out[{elem, 0}] = 1;", BadOperands, "[] takes a list in braces only where a class defines it so"},
		{"template <typename T> kernel void k(device T *o);\ntemplate kernel void k<float>(device float *o);", NoBody,
			"is declared, but has no body"},
		{"float f(float x) { return x; }\nint g(int (*op)(int)) { return op(1); }\n" +
			"kernel void k(device int *x) { x[0] = g(f); }", TypeMismatch, "function f does not convert to int(int)*"},
		{"#include <math.h>\nout[elem] = 1;", IncludeNotFound, "leave it out"},
		{"static float x = 1;", Unsupported, "kernels keep nothing"},
		// Python
		{"out[elem] = inp[elem] ** 2;", BadOperands, "write pow(a, b)"},
		{"out[elem] = inp[elem] // 2;", UnexpectedToken, "// starts a comment"},
		{"out[elem] = None;", Undeclared, "write nullptr for a pointer, and 0 for a number"},
		{"out[elem] = True;", Undeclared, "write true"},
		{"float x = inp[elem] if elem > 3 else 0;", UnexpectedToken, "written c ? a : b"},
		{"for i in range(10): out[i] = 1;", UnexpectedToken, "write for (int i = 0; i < n; i++)"},
		{"def f(x): return x", UnknownType, "declare a function with its types"},
		{"elif (elem) {}", UnexpectedToken, "write else if"},
		{"let x = 3;", UnknownType, "write the type, or auto"},
		{"out[elem] = math.exp(inp[elem]);", Undeclared, "write the function alone"},
		{"out[elem] = std::exp(inp[elem]);", Undeclared, "write metal::exp"},
		{"std::vector<float> v;", UnexpectedToken, "in the namespace metal"},
		{"out[elem] = std::accumulate(inp, inp + 3, 0);", Undeclared, "in the namespace metal"},
		// CUDA, OpenCL, GLSL
		{"int i = threadIdx.x; out[i] = 1;", Undeclared, "write thread_position_in_threadgroup"},
		{"int i = blockIdx.x; out[i] = 1;", Undeclared, "write threadgroup_position_in_grid"},
		{"__syncthreads();", Undeclared, "write threadgroup_barrier(mem_flags::mem_threadgroup)"},
		{"__shared__ float s[32];", UnexpectedToken, "write threadgroup"},
		{"atomicAdd(&out[0], 1.0f);", Undeclared, "write atomic_fetch_add_explicit"},
		{"__global__ void k(float *x) { x[0] = 1; }", UnknownType, "write kernel, and device or constant"},
		{"out[elem] = __shfl_down_sync(0xffffffff, inp[elem], 1);", Undeclared, "write simd_shuffle_down(x, delta)"},
		{`printf("%f", out[elem]);`, Undeclared, "kernels cannot print"},
		{"uint i = get_global_id(0);", Undeclared, "write thread_position_in_grid.x"},
		{"__local float x[3];", UnexpectedToken, "write threadgroup"},
		{"vec3 a = vec3(1, 2, 3); out[elem] = a.x;", UnknownType, "write float3"},
		{"uint i = gl_GlobalInvocationID.x;", Undeclared, "write thread_position_in_grid"},
	} {
		text := c.text
		if !strings.Contains(text, "kernel ") && !strings.Contains(text, "__global__") {
			text = head + text + "\n}\n"
		}
		_, err := Compile(Source{Name: "source", Text: text}, Options{})
		var errs ErrorList
		require.True(t, errors.As(err, &errs), c.text)
		require.Equal(t, c.code, errs[0].Code, "%s: %s", c.text, errs[0])
		require.Contains(t, errs[0].Error(), c.says, c.text)
	}
}

// A name that nothing declares is reported once a kernel, however often it is used.
func TestUndeclaredOnce(t *testing.T) {
	t.Parallel()
	_, err := Compile(Source{Name: "source", Text: `
kernel void a(device float *x) { for (i = 0; i < 4; i++) x[i] = i; }
kernel void b(device float *x) { x[i] = 1; }`}, Options{})
	var errs ErrorList
	require.True(t, errors.As(err, &errs))
	require.Len(t, errs, 2)
	require.EqualValues(t, 2, errs[0].Pos.Line)
	require.EqualValues(t, 3, errs[1].Pos.Line)
}

// Every hint is for a name that Metal does not declare: else nobody would see it.
func TestHintsAreForUnknownNames(t *testing.T) {
	t.Parallel()
	for name := range hints {
		if name == "mem_flags" { // a type, whose values people misspell
			continue
		}
		_, err := Compile(Source{Name: "source", Text: "#include <metal_stdlib>\nusing namespace metal;\n" +
			"kernel void k(device float *x) { x[0] = sizeof(" + name + "); }"}, Options{})
		require.Error(t, err, name)
	}
	for name := range usage {
		require.True(t, builtins[name] != nil || prelude0(t, name), name)
	}
}

// prelude0 reports whether the library declares a function.
func prelude0(t *testing.T, name string) bool {
	pre := mustPrelude(t)
	return pre.root.own("metal").ns.own(name) != nil
}

// Notes are of the statement that the error is in, stand once, and take no comment for a division that holds none.
func TestNotesOfSyntaxErrors(t *testing.T) {
	t.Parallel()
	notes := func(body string) (list []string) {
		_, errs := Parse(Unit{Sources: []Source{{Name: "source", Text: "kernel void k(device int *out) {\n" + body + "\n}"}}})
		require.NotEmpty(t, errs, body)
		for _, e := range errs {
			list = append(list, e.Note)
		}
		return list
	}
	require.Equal(t, []string{""}, notes("out[0] = 1 // \\"))
	require.Equal(t, []string{""}, notes("out[0] = 1 // the first\n;;int x = 1 +;")[:1])
	require.Contains(t, notes("out[0] = 7 // 2;")[0], "// starts a comment")
	list := notes("T x = 1; int y = 1 +; int z = 2 +;\nT q = 3;")
	require.Contains(t, list[0], "template = ")
	for _, n := range list[1:] {
		require.Empty(t, n)
	}
}
