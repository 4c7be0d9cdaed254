package msl

import "strings"

// hints say what to write instead of words that people bring along from other languages, or from kernels that name
// their parameters otherwise.
var hints = map[string]string{
	// CUDA, HIP
	"threadIdx":        "write thread_position_in_threadgroup",
	"blockIdx":         "write threadgroup_position_in_grid; the index over all threads is thread_position_in_grid",
	"blockDim":         "write threads_per_threadgroup; the index over all threads is thread_position_in_grid",
	"gridDim":          "write threadgroups_per_grid",
	"warpSize":         "write threads_per_simdgroup, or 32",
	"laneId":           "write thread_index_in_simdgroup",
	"__syncthreads":    "write threadgroup_barrier(mem_flags::mem_threadgroup)",
	"__syncwarp":       "write simdgroup_barrier(mem_flags::mem_none)",
	"__threadfence":    "write atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device)",
	"__shared__":       "write threadgroup",
	"__global__":       "write kernel, and device or constant before each pointer's type",
	"__device__":       "leave it out: every function may be called from kernels",
	"__host__":         "leave it out: every function may be called from kernels",
	"__constant__":     "write constant",
	"__forceinline__":  "write inline",
	"__restrict__":     "leave it out",
	"__ldg":            "index the pointer: p[i]",
	"atomicAdd":        "write atomic_fetch_add_explicit(p, v, memory_order_relaxed)",
	"atomicSub":        "write atomic_fetch_sub_explicit(p, v, memory_order_relaxed)",
	"atomicMax":        "write atomic_fetch_max_explicit(p, v, memory_order_relaxed)",
	"atomicMin":        "write atomic_fetch_min_explicit(p, v, memory_order_relaxed)",
	"atomicExch":       "write atomic_exchange_explicit(p, v, memory_order_relaxed)",
	"atomicCAS":        "write atomic_compare_exchange_weak_explicit(p, &expected, v, memory_order_relaxed, memory_order_relaxed)",
	"__shfl_sync":      "write simd_shuffle(x, lane)",
	"__shfl_down_sync": "write simd_shuffle_down(x, delta)",
	"__shfl_up_sync":   "write simd_shuffle_up(x, delta)",
	"__shfl_xor_sync":  "write simd_shuffle_xor(x, mask)",
	"__ballot_sync":    "write simd_ballot(x)",
	"__any_sync":       "write simd_any(x)",
	"__all_sync":       "write simd_all(x)",
	"__popc":           "write popcount(x)",
	"__clz":            "write clz(x)",
	"__expf":           "write fast::exp(x)",
	"__half":           "write half",
	"__nv_bfloat16":    "write bfloat",
	"rsqrtf":           "write rsqrt(x)",
	"make_float2":      "write float2(x, y)",
	"make_float3":      "write float3(x, y, z)",
	"make_float4":      "write float4(x, y, z, w)",
	"printf":           "kernels cannot print: write what you want to see to an output",
	"cout":             "kernels cannot print: write what you want to see to an output",
	"assert":           "kernels cannot stop the program: write a flag to an output",
	"malloc":           "kernels have no heap: declare an array of constant size, or pass a buffer",
	"free":             "kernels have no heap",
	// OpenCL
	"get_global_id":       "write thread_position_in_grid.x",
	"get_local_id":        "write thread_position_in_threadgroup.x",
	"get_group_id":        "write threadgroup_position_in_grid.x",
	"get_global_size":     "write threads_per_grid.x",
	"get_local_size":      "write threads_per_threadgroup.x",
	"barrier":             "write threadgroup_barrier(mem_flags::mem_threadgroup)",
	"CLK_LOCAL_MEM_FENCE": "write mem_flags::mem_threadgroup",
	"__kernel":            "write kernel",
	"__global":            "write device",
	"__local":             "write threadgroup",
	"__constant":          "write constant",
	// GLSL, HLSL, WGSL
	"gl_GlobalInvocationID": "write thread_position_in_grid",
	"gl_LocalInvocationID":  "write thread_position_in_threadgroup",
	"gl_WorkGroupID":        "write threadgroup_position_in_grid",
	"gl_WorkGroupSize":      "write threads_per_threadgroup",
	"groupshared":           "write threadgroup",
	"shared":                "write threadgroup",
	"workgroupBarrier":      "write threadgroup_barrier(mem_flags::mem_threadgroup)",
	"subgroupAdd":           "write simd_sum(x)",
	"vec2":                  "write float2",
	"vec3":                  "write float3",
	"vec4":                  "write float4",
	"ivec2":                 "write int2",
	"ivec3":                 "write int3",
	"ivec4":                 "write int4",
	"uvec2":                 "write uint2",
	"uvec3":                 "write uint3",
	"uvec4":                 "write uint4",
	"mat2":                  "write float2x2",
	"mat3":                  "write float3x3",
	"mat4":                  "write float4x4",
	"mod":                   "write fmod(a, b) for floats and a % b for integers",
	"f32":                   "write float",
	"f16":                   "write half",
	"i32":                   "write int",
	"u32":                   "write uint",
	"lerp":                  "write mix(a, b, t)",
	// Python, Lua, JavaScript
	"None":     "write nullptr for a pointer, and 0 for a number",
	"nil":      "write nullptr for a pointer, and 0 for a number",
	"null":     "write nullptr for a pointer, and 0 for a number",
	"NULL":     "write nullptr",
	"True":     "write true",
	"False":    "write false",
	"pass":     "write {}",
	"elif":     "write else if",
	"range":    "write for (int i = 0; i < n; i++)",
	"len":      "pass the length, or name the input's shape: metal_kernel declares x_shape for an input x",
	"math":     "write the function alone: exp(x)",
	"np":       "write the function alone: exp(x)",
	"torch":    "write the function alone: exp(x)",
	"mx":       "write the function alone: exp(x)",
	"self":     "pass it as an input",
	"def":      "declare a function with its types, outside the kernel: float f(float x) { ... }",
	"fn":       "declare a function with its types, outside the kernel: float f(float x) { ... }",
	"function": "declare a function with its types, outside the kernel: float f(float x) { ... }",
	"let":      "write the type, or auto",
	"var":      "write the type, or auto",
	"local":    "write the type, or auto",
	// C and C++
	"std":       "Metal's functions and types are in the namespace metal, and there are no containers",
	"string":    "kernels have no strings",
	"FLT_PI":    "write M_PI_F",
	"M_PI":      "write M_PI_F",
	"PI":        "write M_PI_F",
	"pi":        "write M_PI_F",
	"M_E":       "write M_E_F",
	"mem_flags": "its values are mem_none, mem_device, mem_threadgroup and mem_texture: mem_flags::mem_threadgroup",
	"int64":     "write int64_t",
	"uint64":    "write uint64_t",
	"int32":     "write int",
	"uint32":    "write uint",
	"float32":   "write float",
	"float16":   "write half",
	"bfloat16":  "write bfloat",
	// names that other kernels give their parameters
	"tid":      "write thread_position_in_grid.x, or declare it: uint tid = thread_position_in_grid.x;",
	"gid":      "write thread_position_in_grid.x, or declare it: uint gid = thread_position_in_grid.x;",
	"idx":      "write thread_position_in_grid.x, or declare it: uint idx = thread_position_in_grid.x;",
	"index":    "write thread_position_in_grid.x, or declare it: uint index = thread_position_in_grid.x;",
	"lid":      "write thread_position_in_threadgroup.x, or declare it first",
	"tgid":     "write threadgroup_position_in_grid.x, or declare it first",
	"lane":     "write thread_index_in_simdgroup, or declare it first",
	"lane_id":  "write thread_index_in_simdgroup, or declare it first",
	"simd_lid": "write thread_index_in_simdgroup, or declare it first",
	"simd_gid": "write simdgroup_index_in_threadgroup, or declare it first",
	"T":        "give it to metal_kernel in template = {{\"T\", dtype}}",
}

// hintFor says what to write instead of a name that nothing declares, "" if there is nothing particular to say.
func hintFor(name string) string {
	if h := hints[name]; h != "" {
		return h
	}
	if b := builtins[name+"_explicit"]; b != nil {
		return "write " + name + "_explicit, with memory_order_relaxed as its last argument"
	}
	for _, suffix := range []string{"_shape", "_strides", "_ndim"} {
		if base, ok := strings.CutSuffix(name, suffix); ok && base != "" {
			return "metal_kernel declares it for an input named '" + base + "'"
		}
	}
	return ""
}

// syntaxHint looks at the line of an error, up to where it stands, for the mistakes that syntax errors come from.
func (p *parser) syntaxHint() string {
	at := p.toks[p.i]
	from := p.i
	for n := 0; from > 0 && p.toks[from-1].src == at.src && n < 20; n++ {
		if p.toks[from].flags&fBOL != 0 && from < p.i {
			break
		}
		from--
	}
	var last *token
	for i := from; i <= p.i+2 && i < len(p.toks); i++ {
		t := &p.toks[i]
		if t.kind == tIdent && (p.lookup(t.sym).kind == nkNone || t.text == "mem_flags") {
			if h := hints[t.text]; h != "" {
				return "'" + clip(t.text) + "': " + h
			}
		}
		if i < p.i {
			last = t
		}
	}
	if last == nil || last.mac != 0 {
		return ""
	}
	loc := p.f.locate(last)
	end := int(loc.Col) - 1 + len(last.text)
	if at.kind == kIf && end <= len(loc.Text) {
		return "a choice between values is written c ? a : b"
	}
	if end <= len(loc.Text) && strings.HasPrefix(strings.TrimSpace(loc.Text[end:]), "//") {
		return "// starts a comment; integers are divided by /, and floor(a / b) rounds floats down"
	}
	return ""
}

// hinted adds a syntax hint to an error that has no note yet.
func (p *parser) hinted(e *Error) *Error {
	if e.Note == "" {
		e.Note = p.syntaxHint()
	}
	return e
}

// usage shows the parameters of builtins whose order or number is easily mistaken.
var usage = map[string]string{
	"clamp":               "clamp(x, least, most)",
	"fma":                 "fma(a, b, c), which is a * b + c",
	"mix":                 "mix(a, b, t), which is a + (b - a) * t",
	"select":              "select(a, b, c), which is c ? b : a",
	"smoothstep":          "smoothstep(edge0, edge1, x)",
	"step":                "step(edge, x)",
	"ldexp":               "ldexp(x, exponent)",
	"threadgroup_barrier": "threadgroup_barrier(mem_flags::mem_threadgroup)",
	"simdgroup_barrier":   "simdgroup_barrier(mem_flags::mem_none)",
	"simd_shuffle":        "simd_shuffle(x, lane)",
	"simd_shuffle_down":   "simd_shuffle_down(x, delta)",
	"simd_shuffle_up":     "simd_shuffle_up(x, delta)",
	"simd_shuffle_xor":    "simd_shuffle_xor(x, mask)",
	"simd_broadcast":      "simd_broadcast(x, lane)",
	"extract_bits":        "extract_bits(x, offset, count)",
	"insert_bits":         "insert_bits(base, insert, offset, count)",

	"atomic_load_explicit":     "atomic_load_explicit(p, memory_order_relaxed)",
	"atomic_store_explicit":    "atomic_store_explicit(p, v, memory_order_relaxed)",
	"atomic_exchange_explicit": "atomic_exchange_explicit(p, v, memory_order_relaxed)",

	"atomic_compare_exchange_weak_explicit": "atomic_compare_exchange_weak_explicit(p, &expected, v, " +
		"memory_order_relaxed, memory_order_relaxed)",
}

// usageOf returns ": write f(a, b)" for a builtin, or nothing.
func usageOf(name string) string {
	u := usage[name]
	if u == "" && strings.HasPrefix(name, "atomic_fetch_") {
		u = name + "(p, v, memory_order_relaxed)"
	}
	if u == "" {
		return ""
	}
	return ": write " + u
}

// vectorHint says how a vector becomes what is needed, such as the index of a thread in a grid of one dimension.
func vectorHint(from, to *ctype) string {
	switch {
	case from.kind != tVec:
		return ""
	case to.isScalar():
		return ": name a component, such as .x"
	case to.kind == tVec && to.n < from.n:
		return ": name the components, ." + "xyzw"[:to.n]
	}
	return ""
}

// spaceHint says how a pointer is declared that points to the memory of another one.
func spaceHint(s Space) string {
	if s = s.normal(); s == SpaceNone {
		return ""
	}
	return ": write " + s.String() + " before its type, or auto"
}

// indexHint says how to make an index of a value that is none.
func indexHint(t *ctype) string {
	if t.isScalar() {
		return ": write uint(...) around it"
	}
	return vectorHint(t, typeInt)
}

// nearOf is the end of a message about a name that should be one of a list.
func nearOf(name string, list ...string) string {
	s := near(name)
	for _, n := range list {
		s.try(n)
	}
	return meant(s.best)
}

// plural returns "1 argument", "2 arguments".
func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return itoa(n) + " " + what + "s"
}
