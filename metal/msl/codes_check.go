package msl

// The codes of names, types and Metal's rules. A doc comment holds, after "Example:", a text that provokes exactly
// that code.
const (
	// Undeclared is the use of a name that nothing declares.
	//
	// Example:
	//	kernel void k(device float *x) { x[0] = lenght; }
	Undeclared Code = 301
	// NotAType is a name that stands for something else where a type is needed.
	//
	// Example:
	//	constant int n = 1; kernel void k(device int *x) { x[0] = int(sizeof(metal::max::t)); }
	NotAType Code = 302
	// BadType is a type that cannot exist or cannot be deduced.
	//
	// Example:
	//	kernel void k(device int *x) { auto a = {1, 2}; }
	BadType Code = 303
	// Incomplete is the use of a class that has no definition, or of void, where an object is needed.
	//
	// Example:
	//	struct S; kernel void k(device int *x) { S s; }
	Incomplete Code = 304
	// ArgCount is a call with too few or too many arguments.
	//
	// Example:
	//	float f(float a) { return a; }
	//	kernel void k(device float *x) { x[0] = f(1, 2); }
	ArgCount Code = 305
	// NoMatch is a call that no function of that name fits.
	//
	// Example:
	//	void f(device float *p) {} void f(device int *p) {}
	//	kernel void k(device float *x) { f(1.5f); }
	NoMatch Code = 306
	// Ambiguous is a call that several functions fit equally well.
	//
	// Example:
	//	void f(int a, float b) {} void f(float a, int b) {}
	//	kernel void k(device float *x) { f(1, 1); }
	Ambiguous Code = 307
	// TypeMismatch is a value that does not convert to the type needed.
	//
	// Example:
	//	kernel void k(device float *x) { device int *p = x; }
	TypeMismatch Code = 308
	// BadOperands is an operator on types it is not defined for.
	//
	// Example:
	//	kernel void k(device float *x) { x[0] = x[0] % 2.0f; }
	BadOperands Code = 309
	// NotAssignable is a write to something constant.
	//
	// Example:
	//	kernel void k(device const float *x) { x[0] = 1; }
	NotAssignable Code = 310
	// NotLvalue is a value where an object is needed.
	//
	// Example:
	//	kernel void k(device float *x) { 1 = 2; }
	NotLvalue Code = 311
	// AddressSpace is a pointer, reference or variable of the wrong address space.
	//
	// Example:
	//	void f(threadgroup float *p) {}
	//	kernel void k(device float *x) { thread float *p = x; }
	AddressSpace Code = 312
	// NoMember is a member that a class or vector has not.
	//
	// Example:
	//	struct S { int a; };
	//	kernel void k(device int *x) { S s; s.a = 1; x[0] = s.b; }
	NoMember Code = 313
	// BadSwizzle is a component that a vector has not, or one written twice.
	//
	// Example:
	//	kernel void k(device float2 *x) { x[0].x = x[0].z; }
	BadSwizzle Code = 314
	// NotCallable is the call of something that is no function, or a function that is not called.
	//
	// Example:
	//	kernel void k(device int *x) { int a = 1; x[0] = a(2); }
	NotCallable Code = 315
	// NotConstant is an expression that must be constant, and is not.
	//
	// Example:
	//	kernel void k(device int *x) { int a[x[0]]; }
	NotConstant Code = 316
	// StaticAssert is a static_assert that does not hold.
	//
	// Example:
	//	static_assert(sizeof(int) == 8, "ints are small");
	//	kernel void k(device int *x) {}
	StaticAssert Code = 317
	// BadArraySize is an array without elements or of unknown size.
	//
	// Example:
	//	kernel void k(device int *x) { int a[-1]; }
	BadArraySize Code = 318
	// Redefinition is a second definition of a name.
	//
	// Example:
	//	kernel void k(device int *x) { int a = 1; int a = 2; }
	Redefinition Code = 319
	// Recursion is a function that calls itself, directly or through others, and not as the last thing it does.
	//
	// Example:
	//	int f(int n) { return n == 0 ? 0 : f(n - 1); }
	//	kernel void k(device int *x) { x[0] = f(x[1]); }
	Recursion Code = 320
	// MissingReturn is a function that ends without the value it promises.
	//
	// Example:
	//	int f(int n) { n++; }
	//	kernel void k(device int *x) { x[0] = f(x[1]); }
	MissingReturn Code = 321
	// BadReturn is a return that does not fit the function's type.
	//
	// Example:
	//	void f() { return 1; }
	//	kernel void k(device int *x) { f(); }
	BadReturn Code = 322
	// Narrowing is a conversion in braces that may lose a value.
	//
	// Example:
	//	kernel void k(device int *x) { short a[2] = {1, 100000}; x[0] = a[1]; }
	Narrowing Code = 323
	// TooManyInits is a braced list with more values than there are places.
	//
	// Example:
	//	kernel void k(device int *x) { int a[2] = {1, 2, 3}; x[0] = a[1]; }
	TooManyInits Code = 324
	// BadTemplateArgs is a template used with arguments that do not fit it.
	//
	// Example:
	//	template <typename T> struct S { T a; };
	//	kernel void k(device int *x) { S<int, int> s; }
	BadTemplateArgs Code = 325
	// BadCast is a cast between types that have nothing to do with each other.
	//
	// Example:
	//	kernel void k(device int *x) { x[0] = as_type<int>(half(1)); }
	BadCast Code = 326
	// Unsupported is something that Metal or mlxlua refuses.
	//
	// Example:
	//	kernel void k(device int *x) { double d = 1; }
	//
	// Example:
	//	kernel void k(device int *x, metal::texture2d<float, metal::access::read> t [[texture(0)]]) {}
	//
	// Example:
	//	using namespace metal;
	//	kernel void k(device int *x, texture2d_array<half> t [[texture(0)]]) {}
	//
	// Example:
	//	kernel void k(device int *x, metal::sampler s [[sampler(0)]]) {}
	Unsupported Code = 327
	// UnknownAttribute is an attribute that does not exist, or in the wrong place.
	//
	// Example:
	//	kernel void k(device int *x [[bufer(0)]]) {}
	UnknownAttribute Code = 328
	// KernelParam is a kernel parameter that nothing can be bound to.
	//
	// Example:
	//	kernel void k(device int *x, float y) {}
	KernelParam Code = 329
	// TooManyBuffers is a buffer index past Metal's 31 buffers.
	//
	// Example:
	//	kernel void k(device int *x [[buffer(31)]]) {}
	TooManyBuffers Code = 330
	// ThreadgroupMemory is a kernel that declares more than Metal's 32 KiB of threadgroup memory. Only this kernel is
	// refused, when a pipeline is made of it.
	//
	// Example:
	//	kernel void k(device int *x) { threadgroup float a[8193]; }
	ThreadgroupMemory Code = 331
	// ThreadgroupScope is a threadgroup variable outside the body of a kernel.
	//
	// Example:
	//	void f() { threadgroup float a[8]; }
	//	kernel void k(device int *x) { f(); }
	ThreadgroupScope Code = 332
	// BadInit is an initial value where none can stand.
	//
	// Example:
	//	kernel void k(device int *x) { threadgroup int a = 1; }
	BadInit Code = 333
	// Uninitialised is a constant without a value.
	//
	// Example:
	//	kernel void k(device int *x) { const int a; }
	Uninitialised Code = 334
	// NoFunctionConstant is a function constant without a value that a kernel reaches.
	//
	// Example:
	//	constant bool f [[function_constant(0)]];
	//	kernel void k(device int *x) { if (f) x[0] = 1; }
	NoFunctionConstant Code = 335
	// TooLarge is a kernel, type or nesting that exceeds a limit.
	//
	// Example:
	//	kernel void k(device int *x) { int a[536870912]; x[0] = a[1]; }
	TooLarge Code = 336
	// Internal is a failure of the compiler itself: a bug. No example: none is known.
	Internal Code = 337
	// DivergentCollective is a function of the SIMD-group or quad that not all lanes are sure to reach together, under
	// Options.Portable.
	//
	// Example:
	//	kernel void k(device float *x, uint i [[thread_index_in_simdgroup]]) {
	//	  if (x[i] > 0) x[0] = simd_sum(x[i]);
	//	}
	DivergentCollective Code = 341
	// DivergentBarrier is a barrier that not all threads of the threadgroup are sure to reach together, under
	// Options.Portable.
	//
	// Example:
	//	kernel void k(device float *x, constant uint &n, uint i [[thread_position_in_grid]]) {
	//	  if (i >= n) return;
	//	  threadgroup_barrier(mem_flags::mem_device);
	//	  x[i] = 1;
	//	}
	DivergentBarrier Code = 342
	// WaitsForOthers is a loop that only another threadgroup can end, under Options.Portable.
	//
	// Example:
	//	kernel void k(device atomic_uint *flag) {
	//	  while (atomic_load_explicit(flag, memory_order_relaxed) == 0) {}
	//	}
	WaitsForOthers Code = 343
	// NoBody is a call that a kernel reaches, of a function that is declared only.
	//
	// Example:
	//	float f(float x);
	//	kernel void k(device float *x) { x[0] = f(1); }
	NoBody Code = 344
	// WrongFunctionConstant is a value for a function constant that the text has not, or that is not of its type.
	// No example: values are given beside the text.
	WrongFunctionConstant Code = 345
	// WritesInput is a write, behind a cast, to what a parameter of the kernel declares const.
	//
	// Example:
	//	kernel void k(device int *x, const device int *y) { *(device int *)y = x[0]; }
	WritesInput Code = 346
	// NotMetal is what Apple's compiler refuses of Metal 3.1, under Options.Portable or Options.Apple.
	//
	// Example:
	//	void f(thread float &x) { x = 1; }
	//	kernel void k(device float *x) { float4 v = 0; f(v.x); x[0] = v.x; }
	NotMetal Code = 347
)
