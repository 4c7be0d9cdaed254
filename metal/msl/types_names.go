package msl

import (
	"strings"

	"github.com/mlxlua/mlxlua/metal/kir"
)

// scalarByName are the spellings of the scalar types, fixed-width names included.
var scalarByName = map[string]kir.Type{
	"bool": kir.Bool, "char": kir.I8, "int8_t": kir.I8, "uchar": kir.U8, "uint8_t": kir.U8, "short": kir.I16,
	"int16_t": kir.I16, "ushort": kir.U16, "uint16_t": kir.U16, "int": kir.I32, "int32_t": kir.I32, "uint": kir.U32,
	"uint32_t": kir.U32, "long": kir.I64, "int64_t": kir.I64, "ulong": kir.U64, "uint64_t": kir.U64,
	"size_t": kir.U64, "ptrdiff_t": kir.I64, "intptr_t": kir.I64, "uintptr_t": kir.U64, "half": kir.F16,
	"bfloat": kir.BF16, "float": kir.F32, "double": kir.F64, "float16_t": kir.F16, "float32_t": kir.F32,
}

// vecElems are the scalar names that vectors are named after: float4, packed_half3, ...
var vecElems = []string{
	"bool", "char", "uchar", "short", "ushort", "int", "uint", "long", "ulong", "half", "bfloat", "float", "double",
}

// atomicByName are the names of atomic types that are no template.
var atomicByName = map[string]kir.Type{
	"atomic_int": kir.I32, "atomic_uint": kir.U32, "atomic_bool": kir.Bool, "atomic_float": kir.F32,
	"atomic_ulong": kir.U64,
}

// simdMatByName are the names of SIMD-group matrices.
var simdMatByName = map[string]kir.Type{
	"simdgroup_float8x8": kir.F32, "simdgroup_half8x8": kir.F16, "simdgroup_bfloat8x8": kir.BF16,
}

// builtinTypes are all the type names that are predeclared.
var builtinTypes = makeBuiltinTypes()

func makeBuiltinTypes() map[string]*ctype {
	m := map[string]*ctype{"void": typeVoid, "nullptr_t": typeNull}
	for name, k := range scalarByName {
		m[name] = scalarTypes[k]
	}
	for _, e := range vecElems {
		for n := 2; n <= maxNamed; n++ {
			digit := string(rune('0' + n))
			m[e+digit] = vecTypes[scalarByName[e]][0][n]
			m["packed_"+e+digit] = vecTypes[scalarByName[e]][1][n]
		}
	}
	for name, k := range atomicByName {
		m[name] = atomicTypes[scalarTypes[k]]
	}
	for name, k := range simdMatByName {
		m[name] = simdMats[scalarTypes[k]]
	}
	return m
}

// builtinTemplates are the predeclared class templates that are not written in the prelude.
var builtinTemplates = map[string]bool{
	"vec": true, "packed_vec": true, "atomic": true, "simdgroup_matrix": true,
	// refused, by name
	"texture1d": true, "texture1d_array": true, "texture2d": true, "texture2d_array": true, "texture2d_ms": true,
	"texture2d_ms_array": true, "texture3d": true, "texturecube": true, "texturecube_array": true,
	"texture_buffer": true, "depth2d": true, "depth2d_array": true, "depth2d_ms": true, "depth2d_ms_array": true,
	"depthcube": true, "depthcube_array": true,
}

// isTexture reports whether a predeclared class template is one of Metal's textures.
func isTexture(name string) bool {
	return strings.HasPrefix(name, "texture") || strings.HasPrefix(name, "depth")
}

// builtinTemplate instantiates a predeclared class template; the message says what is wrong with the arguments.
func builtinTemplate(name string, args []boundArg) (*ctype, string) {
	if len(args) == 0 || args[0].q.T == nil {
		return nil, name + " needs a type as its first argument"
	}
	e := args[0].q.T
	switch name {
	case "vec", "packed_vec":
		if len(args) != 2 || !args[1].isVal {
			return nil, name + " takes a type and a number of components"
		}
		most := maxVec
		if name == "packed_vec" {
			most = maxNamed
		}
		n := args[1].val.int()
		if e.kind != tScalar || n < 1 || n > int64(most) {
			return nil, name + " has 1 to " + itoa(most) + " components of a scalar type, not " + argsString(args)
		}
		if n == 1 {
			return e, ""
		}
		if name == "packed_vec" {
			return vecTypes[e.kt][1][n], ""
		}
		return vecTypes[e.kt][0][n], ""
	case "atomic":
		if t := atomicTypes[e]; t != nil && len(args) == 1 {
			return t, ""
		}
		return nil, "atomic holds int, uint, bool, float or ulong, not " + argsString(args)
	}
	// simdgroup_matrix<T, 8, 8>
	ok := len(args) == 3 && args[1].isVal && args[2].isVal && args[1].val.bits == 8 && args[2].val.bits == 8
	if t := simdMats[e]; t != nil && ok {
		return t, ""
	}
	return nil, "simdgroup_matrix is 8 by 8 of half, bfloat or float, not " + argsString(args)
}

// boundArg is a template argument: a type, a value, a template or a pack of arguments.
type boundArg struct {
	q      qtype // a type if q.T != nil
	isVal  bool
	val    operand // a value, of type vt
	vt     *ctype
	tmpl   *entity   // a template
	fn     *overload // a function
	obj    *object   // a constant that a pointer or reference parameter names
	addr   bool      // of obj: its address was taken
	isPack bool
	pack   []boundArg
}

func argsString(args []boundArg) string {
	var parts []string
	for _, a := range args {
		parts = append(parts, a.String())
	}
	return "<" + strings.Join(parts, ", ") + ">"
}

// String returns the argument as messages show it.
func (a boundArg) String() string {
	switch {
	case a.isPack:
		s := argsString(a.pack)
		return s[1 : len(s)-1]
	case a.isVal:
		return a.val.text(a.vt)
	case a.tmpl != nil:
		return a.tmpl.name
	case a.fn != nil:
		return a.fn.name
	case a.obj != nil && a.addr:
		return "&" + a.obj.name
	case a.obj != nil:
		return a.obj.name
	case a.q.T != nil:
		return a.q.String()
	}
	return "?"
}

// sameArgs reports whether two lists are the same arguments.
func sameArgs(a, b []boundArg) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		x, y := &a[i], &b[i]
		if x.isVal != y.isVal || x.isPack != y.isPack || x.tmpl != y.tmpl || x.obj != y.obj || x.addr != y.addr ||
			x.vt != y.vt || x.val.bits != y.val.bits ||
			x.q.T != y.q.T || !x.q.sameCV(y.q) || x.q.Space.normal() != y.q.Space.normal() ||
			!sameArgs(x.pack, y.pack) || !sameFns(x.fn, y.fn) {
			return false
		}
	}
	return true
}

func sameFns(a, b *overload) bool {
	if a == nil || b == nil || a == b {
		return a == b
	}
	if len(a.funcs) != len(b.funcs) || a.builtin != b.builtin || !sameArgs(a.args, b.args) {
		return false
	}
	for i := range a.funcs {
		if a.funcs[i] != b.funcs[i] {
			return false
		}
	}
	return true
}
