package kir

// typeInfo describes one Type.
type typeInfo struct {
	name   string
	size   int
	kind   typeKind
	signed bool
}

type typeKind uint8

const (
	kindVoid typeKind = iota
	kindBool
	kindInt
	kindFloat
	kindPtr
)

var typeInfos = [numTypes]typeInfo{
	Void:           {"void", 0, kindVoid, false},
	Bool:           {"bool", 1, kindBool, false},
	I8:             {"i8", 1, kindInt, true},
	U8:             {"u8", 1, kindInt, false},
	I16:            {"i16", 2, kindInt, true},
	U16:            {"u16", 2, kindInt, false},
	I32:            {"i32", 4, kindInt, true},
	U32:            {"u32", 4, kindInt, false},
	I64:            {"i64", 8, kindInt, true},
	U64:            {"u64", 8, kindInt, false},
	F16:            {"f16", 2, kindFloat, true},
	BF16:           {"bf16", 2, kindFloat, true},
	F32:            {"f32", 4, kindFloat, true},
	F64:            {"f64", 8, kindFloat, true},
	PtrDevice:      {"ptr.device", 8, kindPtr, false},
	PtrConstant:    {"ptr.constant", 8, kindPtr, false},
	PtrThreadgroup: {"ptr.threadgroup", 8, kindPtr, false},
	PtrThread:      {"ptr.thread", 8, kindPtr, false},
}

func (t Type) info() typeInfo {
	if t < numTypes {
		return typeInfos[t]
	}
	return typeInfo{name: "invalid type"}
}

// String returns the type's name as Print writes it.
func (t Type) String() string { return t.info().name }

// Size returns the size in bytes of a value in memory: 0 for Void, 1 for Bool, 8 for pointers.
func (t Type) Size() int { return t.info().size }

// Bits returns the width in bits of an integer or float type, 1 for Bool and 64 for pointers.
func (t Type) Bits() int {
	if t == Bool {
		return 1
	}
	return 8 * t.info().size
}

// Mask returns the bits that a canonical value of the type may have set: values are kept zero-extended to 64 bits.
func (t Type) Mask() uint64 {
	if n := t.Bits(); n < 64 {
		return 1<<n - 1
	}
	return ^uint64(0)
}

// IsInt reports whether the type is an integer type; Bool is not.
func (t Type) IsInt() bool { return t.info().kind == kindInt }

// IsSigned reports whether the type is a signed integer type or a float type.
func (t Type) IsSigned() bool { return t.info().signed }

// IsFloat reports whether the type is F16, BF16, F32 or F64.
func (t Type) IsFloat() bool { return t.info().kind == kindFloat }

// IsArith reports whether the type is an integer or a float type.
func (t Type) IsArith() bool { return t.IsInt() || t.IsFloat() }

// IsPtr reports whether the type is a pointer type.
func (t Type) IsPtr() bool { return t.info().kind == kindPtr }

// Space returns the address space of a pointer type; ok is false for other types.
func (t Type) Space() (s Space, ok bool) {
	switch t {
	case PtrDevice:
		return Device, true
	case PtrConstant:
		return Constant, true
	case PtrThreadgroup:
		return Threadgroup, true
	case PtrThread:
		return Thread, true
	}
	return 0, false
}

// PtrTo returns the pointer type of an address space, Void for a Space that does not exist.
func PtrTo(s Space) Type {
	switch s {
	case Device:
		return PtrDevice
	case Constant:
		return PtrConstant
	case Threadgroup:
		return PtrThreadgroup
	case Thread:
		return PtrThread
	}
	return Void
}

var spaceNames = [...]string{"device", "constant", "threadgroup", "thread"}

// String returns the address space's name in Metal.
func (s Space) String() string {
	if int(s) < len(spaceNames) {
		return spaceNames[s]
	}
	return "invalid space"
}

// The layout of a pointer: see Instr.
const (
	// PtrObjectShift is the number of offset bits below the object number.
	PtrObjectShift = 48
	// PtrOffsetMask selects the offset bits of a pointer.
	PtrOffsetMask = 1<<PtrObjectShift - 1
	// MaxObjects bounds the number of memory objects (Params and Regions together) of a kernel.
	MaxObjects = 1<<16 - 1
)

// PtrParam returns a pointer to the first byte of Params[i].
func PtrParam(i int) uint64 { return uint64(i+1) << PtrObjectShift }

// PtrRegion returns a pointer to the first byte of Regions[i].
func (k *Kernel) PtrRegion(i int) uint64 { return uint64(len(k.Params)+i+1) << PtrObjectShift }

// PtrObject returns the object number of a pointer, 0 for null.
func PtrObject(p uint64) int { return int(p >> PtrObjectShift) }

// PtrOffset returns the signed byte offset of a pointer.
func PtrOffset(p uint64) int64 { return int64(p<<16) >> 16 }

// PtrMove moves the offset of a pointer by d bytes; the offset wraps at 48 bits and never reaches the object number.
func PtrMove(p uint64, d int64) uint64 {
	return p&^uint64(PtrOffsetMask) | (p+uint64(d))&PtrOffsetMask
}
