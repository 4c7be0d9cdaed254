package msl

import (
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/mlxlua/mlxlua/metal/kir"
)

// tkind says what a ctype is.
type tkind uint8

const (
	tBad tkind = iota // stands for a type in error: everything converts to it silently
	tVoid
	tScalar  // bool, integers, floats: kt
	tVec     // elem.T, n; packed
	tArray   // elem, n; n is -1 for an array of unknown size
	tPtr     // elem: the pointee with its qualifiers
	tRef     // elem
	tClass   // class; unions and lambdas too
	tEnum    // enum; kt is the underlying type
	tAtomic  // elem.T
	tSimdMat // elem.T: an 8x8 matrix spread over the SIMD-group, two elements a lane
	tNull    // of nullptr
	tFunc    // a function; only decltype and explicit instantiations name one
	tAuto    // to be deduced
)

// ctype is a type without qualifiers. Types are interned in a compiler, those of scalars and vectors for the whole
// process: two ctypes are the same type exactly if their pointers are equal.
type ctype struct {
	kind   tkind
	kt     kir.Type // tScalar, tEnum: its representation
	packed bool
	elem   qtype
	n      int
	class  *classInfo
	enum   *enumInfo
	sig    *funcSig

	size, align int
	// comps is how many scalars a value of the type has when it is taken apart, -1 for unions and what holds one.
	comps int
}

// qtype is a type with the qualifiers of an object: the pointee of a pointer, an element, a variable.
type qtype struct {
	T     *ctype
	Const bool
	Vol   bool
	Space Space
}

// funcSig is the type of a function.
type funcSig struct {
	ret     qtype
	params  []qtype // without qualifiers, which are the function's own business
	unknown bool    // of a set of functions: ret and params mean nothing
}

// classInfo is a class: an instance if it comes from a template.
type classInfo struct {
	name   string
	decl   *ClassDecl
	args   []boundArg
	tmpl   *tmplInfo // of an instance
	scope  *env      // of its members; its parents hold the template's arguments and what encloses the class
	fields []field
	bases  []*ctype // each base is also a field named ""
	union  bool
	lambda *lambdaInfo
	state  uint8 // 0 declared, 1 being completed, 2 complete
	typ    *ctype
	// userCtor says that the class declares a constructor other than copies: it is no aggregate.
	userCtor bool
	declared bool     // its members are in scope
	inherits []string // bases whose constructors are its own too
	asserts  []*StaticAssertDecl
	friends  map[string][]*funcEnt // functions defined in the class that are no members: found by its objects
	inits    uint8                 // needsInit's answer once it is complete: 1 yes, 2 no
	text     string                // its name with its arguments, for messages
	// noContract: its methods' products do not contract.
	noContract bool
}

// field is a non-static data member.
type field struct {
	name string
	q    qtype
	off  int // bytes
	comp int // first component
	decl *VarDecl
	bits bitField
	base bool // a base class subobject
	anon bool // an anonymous struct or union, whose members are found through it
}

// enumInfo is an enumeration.
type enumInfo struct {
	name   string
	scoped bool
	scope  *env
}

var (
	typeBad  = &ctype{kind: tBad}
	typeVoid = &ctype{kind: tVoid}
	typeNull = &ctype{kind: tNull, size: 8, align: 8, comps: 1}
	typeAuto = &ctype{kind: tAuto}

	scalarTypes = makeScalars()
	vecTypes    = makeVecs()
	simdMats    = makeSimdMats()
	atomicTypes = makeAtomics()

	typeBool  = scalarTypes[kir.Bool]
	typeInt   = scalarTypes[kir.I32]
	typeUint  = scalarTypes[kir.U32]
	typeLong  = scalarTypes[kir.I64]
	typeUlong = scalarTypes[kir.U64]
	typeFloat = scalarTypes[kir.F32]
	typeHalf  = scalarTypes[kir.F16]
	typeBF    = scalarTypes[kir.BF16]
)

const numScalars = int(kir.F64) + 1

func makeScalars() (a [numScalars]*ctype) {
	for k := kir.Bool; k <= kir.F64; k++ {
		a[k] = &ctype{kind: tScalar, kt: k, size: k.Size(), align: k.Size(), comps: 1}
	}
	return a
}

// maxVec is the largest number of components of a vector: all are in slots. Metal names vectors of up to maxNamed
// components, and its library and the packed vectors have no more.
const (
	maxVec   = maxSlots
	maxNamed = 4
)

// makeVecs makes the vectors by element type, whether they are packed, and number of components. As in Clang, a vector
// takes the next power of two of bytes, and is aligned to it.
func makeVecs() (a [numScalars][2][maxVec + 1]*ctype) {
	for k := kir.Bool; k <= kir.F64; k++ {
		e := qtype{T: scalarTypes[k]}
		for n := 2; n <= maxVec; n++ {
			size := k.Size() << bits.Len(uint(n-1))
			a[k][0][n] = &ctype{kind: tVec, elem: e, n: n, size: size, align: size, comps: n}
			if n <= maxNamed {
				a[k][1][n] = &ctype{kind: tVec, elem: e, n: n, size: k.Size() * n, align: k.Size(), comps: n, packed: true}
			}
		}
	}
	return a
}

// isWide reports whether the type is a vector of more components than Metal's library knows.
func (t *ctype) isWide() bool { return t.kind == tVec && t.n > maxNamed }

func makeSimdMats() map[*ctype]*ctype {
	m := map[*ctype]*ctype{}
	for _, k := range []kir.Type{kir.F16, kir.BF16, kir.F32, kir.F64} {
		e := scalarTypes[k]
		m[e] = &ctype{kind: tSimdMat, elem: qtype{T: e}, n: 8, size: 2 * e.size, align: 2 * e.size, comps: 2}
	}
	return m
}

func makeAtomics() map[*ctype]*ctype {
	m := map[*ctype]*ctype{}
	for _, k := range []kir.Type{kir.Bool, kir.I32, kir.U32, kir.F32, kir.U64} {
		e := scalarTypes[k]
		m[e] = &ctype{kind: tAtomic, elem: qtype{T: e}, size: e.size, align: e.size, comps: 1}
	}
	return m
}

// vecOf returns the vector of n elements of a scalar type, the type itself for n = 1, nil if there is none.
func vecOf(e *ctype, n int) *ctype {
	if e == nil || e.kind != tScalar || n < 1 || n > maxVec {
		return nil
	}
	if n == 1 {
		return e
	}
	return vecTypes[e.kt][0][n]
}

func (t *ctype) isScalar() bool { return t.kind == tScalar || t.kind == tEnum }
func (t *ctype) isArith() bool  { return t.kind == tScalar }
func (t *ctype) isInt() bool    { return t.kind == tScalar && t.kt.IsInt() }
func (t *ctype) isFloat() bool  { return t.kind == tScalar && t.kt.IsFloat() }
func (t *ctype) isBool() bool   { return t.kind == tScalar && t.kt == kir.Bool }
func (t *ctype) isUnscopedEnum() bool {
	return t.kind == tEnum && !t.enum.scoped
}

// intLike reports whether the type takes part in integer arithmetic after promotion.
func (t *ctype) intLike() bool { return t.isInt() || t.isBool() || t.isUnscopedEnum() }

// unpacked returns a vector's ordinary form.
func (t *ctype) unpacked() *ctype {
	if t.kind == tVec && t.packed {
		return vecTypes[t.elem.T.kt][0][t.n]
	}
	return t
}

// shape returns the scalar type and the number of components of a scalar or vector; n is 0 for other types.
func (t *ctype) shape() (e *ctype, n int) {
	switch t.kind {
	case tScalar:
		return t, 1
	case tVec:
		return t.elem.T, t.n
	}
	return nil, 0
}

// kirScalar returns the representation of a one-component type, Void for others.
func (t *ctype) kirScalar() kir.Type {
	switch t.kind {
	case tScalar, tEnum:
		return t.kt
	case tPtr, tRef:
		return kir.PtrTo(t.elem.Space.kir())
	case tNull:
		return kir.U64
	case tAtomic:
		return t.elem.T.kt
	}
	return kir.Void
}

// kir returns the address space in kir; what names none is the thread's.
func (s Space) kir() kir.Space {
	switch s {
	case SpaceDevice:
		return kir.Device
	case SpaceConstant:
		return kir.Constant
	case SpaceThreadgroup:
		return kir.Threadgroup
	}
	return kir.Thread
}

// qt makes an unqualified qtype.
func qt(t *ctype) qtype { return qtype{T: t} }

func (x qtype) bare() qtype         { return qtype{T: x.T} }
func (x qtype) sameCV(y qtype) bool { return x.Const == y.Const && x.Vol == y.Vol }
func (x qtype) noRef() qtype {
	if x.T.kind == tRef {
		return x.T.elem
	}
	return x
}

// normal gives the thread address space its one spelling, none.
func (s Space) normal() Space {
	if s == SpaceThread {
		return SpaceNone
	}
	return s
}

// String returns the type as messages show it.
func (x qtype) String() string {
	var b strings.Builder
	if s := x.Space.normal(); s != SpaceNone {
		b.WriteString(s.String())
		b.WriteByte(' ')
	}
	if x.Vol {
		b.WriteString("volatile ")
	}
	if x.Const {
		b.WriteString("const ")
	}
	b.WriteString(x.T.String())
	return b.String()
}

// scalarNames are Metal's names of the scalar types.
var scalarNames = [numScalars]string{
	kir.Bool: "bool", kir.I8: "char", kir.U8: "uchar", kir.I16: "short", kir.U16: "ushort", kir.I32: "int",
	kir.U32: "uint", kir.I64: "long", kir.U64: "ulong", kir.F16: "half", kir.BF16: "bfloat", kir.F32: "float",
	kir.F64: "double",
}

// String returns the type as messages show it.
func (t *ctype) String() string {
	switch t.kind {
	case tVoid:
		return "void"
	case tScalar:
		return scalarNames[t.kt]
	case tVec:
		if t.isWide() { // float8 is a reserved name
			return "vec<" + scalarNames[t.elem.T.kt] + ", " + strconv.Itoa(t.n) + ">"
		}
		s := scalarNames[t.elem.T.kt] + strconv.Itoa(t.n)
		if t.packed {
			return "packed_" + s
		}
		return s
	case tArray:
		dims := ""
		e := qtype{T: t}
		for e.T.kind == tArray {
			if e.T.n < 0 {
				dims += "[]"
			} else {
				dims += fmt.Sprintf("[%d]", e.T.n)
			}
			e = e.T.elem
		}
		return e.String() + dims
	case tPtr:
		return t.elem.String() + "*"
	case tRef:
		return t.elem.String() + "&"
	case tClass:
		return t.class.String()
	case tEnum:
		return t.enum.name
	case tAtomic:
		return "atomic<" + t.elem.T.String() + ">"
	case tSimdMat:
		return "simdgroup_matrix<" + t.elem.T.String() + ", 8, 8>"
	case tNull:
		return "nullptr_t"
	case tFunc:
		var ps []string
		for _, p := range t.sig.params {
			ps = append(ps, p.String())
		}
		return t.sig.ret.String() + "(" + strings.Join(ps, ", ") + ")"
	case tAuto:
		return "auto"
	}
	return "a type in error"
}

// String returns the class's name with its template arguments.
func (s *classInfo) String() string {
	if s.args == nil {
		return s.name
	}
	if s.text == "" {
		s.text = s.name + argsString(s.args)
		if len(s.text) > maxTypeText {
			s.text = strings.ToValidUTF8(s.text[:maxTypeText], "") + "...>"
		}
	}
	return s.text
}

// typeKey is what a derived type is interned by.
type typeKey struct {
	kind tkind
	elem qtype
	n    int
}

// typeTable interns the types that a compilation derives from others.
type typeTable struct {
	byKey map[typeKey]*ctype
	funcs []*ctype
}

// derived returns the interned pointer, reference or array type.
func (tt *typeTable) derived(kind tkind, elem qtype, n int) *ctype {
	elem.Space = elem.Space.normal()
	key := typeKey{kind, elem, n}
	if t := tt.byKey[key]; t != nil {
		return t
	}
	t := &ctype{kind: kind, elem: elem, n: n}
	switch kind {
	case tPtr, tRef: // a reference takes room as a field
		t.size, t.align, t.comps = 8, 8, 1
	case tArray:
		t.align = elem.T.align
		if n > 0 {
			t.size = mulSat(elem.T.size, n)
			t.comps = mulSat(elem.T.comps, n)
			if elem.T.comps < 0 {
				t.comps = -1
			}
		}
	}
	tt.byKey[key] = t
	return t
}

// funcOf returns the interned type of a function.
func (tt *typeTable) funcOf(sig funcSig) *ctype {
	for _, t := range tt.funcs {
		if t.sig.ret == sig.ret && t.sig.unknown == sig.unknown && slices.Equal(t.sig.params, sig.params) {
			return t
		}
	}
	t := &ctype{kind: tFunc, sig: &sig}
	tt.funcs = append(tt.funcs, t)
	return t
}

// maxBytes bounds the size of a type, so that sums and products of sizes cannot overflow.
const maxBytes = 1 << 30

func mulSat(a, b int) int {
	if a > 0 && b > maxBytes/a {
		return maxBytes
	}
	return a * b
}

func (tt *typeTable) ptrTo(e qtype) *ctype { return tt.derived(tPtr, e, 0) }

// commonPointer is the type that two pointers are compared in, and chosen from by ?:, nil if there is none: what they
// point to is of one type, of a class and its base, or void in one, and const or volatile if it is in one.
func (tt *typeTable) commonPointer(a, b *ctype) *ctype {
	x, y := a.elem, b.elem
	if x.Space.normal() != y.Space.normal() {
		return nil
	}
	z := x
	switch {
	case x.T == y.T, x.T.kind == tVoid:
	case y.T.kind == tVoid:
		z = y
	case x.T.kind == tClass && y.T.kind == tClass:
		if _, down := derivesFrom(x.T, y.T); down {
			z = y
		} else if _, up := derivesFrom(y.T, x.T); !up {
			return nil
		}
	default:
		return nil
	}
	z.Const, z.Vol = x.Const || y.Const, x.Vol || y.Vol
	return tt.ptrTo(z)
}
func (tt *typeTable) refTo(e qtype) *ctype {
	if e.T.kind == tRef {
		return e.T
	}
	return tt.derived(tRef, e, 0)
}
func (tt *typeTable) arrayOf(e qtype, n int) *ctype { return tt.derived(tArray, e, n) }

// decayed returns an rvalue's type: arrays become pointers.
func (tt *typeTable) decayed(v *value) qtype {
	t := v.q
	if t.T.kind == tArray {
		e := t.T.elem
		e.Space = t.Space
		e.Const = e.Const || t.Const
		return qt(tt.ptrTo(e))
	}
	t = t.bare()
	if t.T.kind == tVec {
		t.T = t.T.unpacked()
	}
	return t
}

// dummy is an lvalue of a type that is never evaluated.
func (tt *typeTable) dummy(t qtype) value {
	return value{k: vMem, q: t, ptr: operand{ty: tt.ptrTo(t).kirScalar()}}
}

// paramType adjusts a parameter's type as C++ does: arrays become pointers, qualifiers of the parameter itself
// stay with it.
func (tt *typeTable) paramType(t qtype) qtype {
	if t.T.kind == tArray {
		e := t.T.elem
		e.Space, e.Const, e.Vol = t.Space, e.Const || t.Const, e.Vol || t.Vol
		return qt(tt.ptrTo(e))
	}
	return t
}

// isComplete reports whether objects of the type can exist, completing a class if need be.
func (c *compiler) isComplete(t *ctype) bool {
	switch t.kind {
	case tVoid, tFunc:
		return false
	case tArray:
		return t.n >= 0 && c.isComplete(t.elem.T)
	case tClass:
		c.complete(t.class)
		return t.class.state == 2
	}
	return true
}

// compTypes appends the representations of a type's components in their order.
func (t *ctype) compTypes(dst []kir.Type) []kir.Type {
	switch t.kind {
	case tVec, tSimdMat:
		for range t.comps {
			dst = append(dst, t.elem.T.kt)
		}
	case tArray:
		for range t.n {
			dst = t.elem.T.compTypes(dst)
		}
	case tClass:
		for i := range t.class.fields {
			dst = t.class.fields[i].q.T.compTypes(dst)
		}
	case tVoid, tBad, tFunc, tAuto:
	default:
		dst = append(dst, t.kirScalar())
	}
	return dst
}

// compOffsets appends the byte offset of each component.
func (t *ctype) compOffsets(dst []int, at int) []int {
	switch t.kind {
	case tVec, tSimdMat:
		for i := range t.comps {
			dst = append(dst, at+i*t.elem.T.size)
		}
	case tArray:
		for i := range t.n {
			dst = t.elem.T.compOffsets(dst, at+i*t.elem.T.size)
		}
	case tClass:
		for i := range t.class.fields {
			f := &t.class.fields[i]
			dst = f.q.T.compOffsets(dst, at+f.off)
		}
	case tVoid, tBad, tFunc, tAuto:
	default:
		dst = append(dst, at)
	}
	return dst
}

// counted returns the bytes of what messages count in an object of the type: an array's elements, a vector's
// components, a matrix's columns; 0 for what is a mixture.
func (t *ctype) counted() int {
	switch t.kind {
	case tArray, tVec, tSimdMat:
		return t.elem.T.size
	case tClass:
		if f := t.class.fields; len(f) == 1 && f[0].q.T.kind == tArray && !t.class.union {
			return f[0].q.T.counted()
		}
		return 0
	}
	return t.size
}

// firstScalar returns the scalar type of a type's elements, and U8 for mixtures.
func (t *ctype) firstScalar() kir.Type {
	switch t.kind {
	case tArray, tVec, tSimdMat:
		return t.elem.T.firstScalar()
	case tClass, tVoid, tBad, tFunc, tAuto, tRef:
		return kir.U8
	}
	return t.kirScalar()
}
