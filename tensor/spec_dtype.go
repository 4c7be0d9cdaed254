package tensor

import "fmt"

// DType is the type of an array's elements.
type DType uint8

// The dtypes, in MLX's order of categories. Float64 exists on devices whose Info says Float64 (the CPU).
const (
	Bool DType = iota
	Uint8
	Uint16
	Uint32
	Uint64
	Int8
	Int16
	Int32
	Int64
	Float16
	BFloat16
	Float32
	Float64
	Complex64
	numDTypes
)

var dtypes = [numDTypes]struct {
	name, msl string
	size      int
	code      byte // in the promotion table
}{
	Bool:      {"bool", "bool", 1, 'b'},
	Uint8:     {"uint8", "uint8_t", 1, '1'},
	Uint16:    {"uint16", "uint16_t", 2, '2'},
	Uint32:    {"uint32", "uint32_t", 4, '4'},
	Uint64:    {"uint64", "uint64_t", 8, '8'},
	Int8:      {"int8", "int8_t", 1, 'i'},
	Int16:     {"int16", "int16_t", 2, 'j'},
	Int32:     {"int32", "int32_t", 4, 'k'},
	Int64:     {"int64", "int64_t", 8, 'l'},
	Float16:   {"float16", "half", 2, 'h'},
	BFloat16:  {"bfloat16", "bfloat16_t", 2, 'g'},
	Float32:   {"float32", "float", 4, 'f'},
	Float64:   {"float64", "double", 8, 'd'},
	Complex64: {"complex64", "complex64_t", 8, 'c'},
}

// promotion[a][b] is the dtype code of an operation on a and b: MLX's table.
var promotion = [numDTypes]string{
	Bool:      "b1248ijklhgfdc",
	Uint8:     "11248jjklhgfdc",
	Uint16:    "22248kkklhgfdc",
	Uint32:    "44448llllhgfdc",
	Uint64:    "88888ffffhgfdc",
	Int8:      "ijklfijklhgfdc",
	Int16:     "jjklfjjklhgfdc",
	Int32:     "kkklfkkklhgfdc",
	Int64:     "llllfllllhgfdc",
	Float16:   "hhhhhhhhhhffdc",
	BFloat16:  "gggggggggfgfdc",
	Float32:   "ffffffffffffdc",
	Float64:   "dddddddddddddc",
	Complex64: "cccccccccccccc",
}

// DTypes lists all dtypes.
func DTypes() []DType {
	all := make([]DType, numDTypes)
	for i := range all {
		all[i] = DType(i)
	}
	return all
}

// ParseDType finds a dtype by its name ("float32").
func ParseDType(name string) (DType, error) {
	for i, d := range dtypes {
		if d.name == name {
			return DType(i), nil
		}
	}
	return 0, fmt.Errorf("unknown dtype %q", name)
}

// String is MLX's name of the dtype: "float32".
func (d DType) String() string {
	if d >= numDTypes {
		return fmt.Sprintf("dtype(%d)", uint8(d))
	}
	return dtypes[d].name
}

// MSL is the type's name in kernels: "float", "bfloat16_t", "complex64_t".
func (d DType) MSL() string { return dtypes[d].msl }

// Size is an element's size in bytes.
func (d DType) Size() int { return dtypes[d].size }

// IsFloat reports whether d is a real floating-point type.
func (d DType) IsFloat() bool { return d >= Float16 && d <= Float64 }

// IsComplex reports whether d is complex.
func (d DType) IsComplex() bool { return d == Complex64 }

// IsInexact reports whether d is floating-point or complex.
func (d DType) IsInexact() bool { return d >= Float16 }

// IsInteger reports whether d is a signed or unsigned integer type; Bool is not.
func (d DType) IsInteger() bool { return d >= Uint8 && d <= Int64 }

// IsSigned reports whether d is a signed integer type.
func (d DType) IsSigned() bool { return d >= Int8 && d <= Int64 }

// IsUnsigned reports whether d is an unsigned integer type.
func (d DType) IsUnsigned() bool { return d >= Uint8 && d <= Uint64 }

// Promote is the dtype of an operation on a and b, by MLX's table.
func Promote(a, b DType) DType {
	code := promotion[a][b]
	for i := range dtypes {
		if dtypes[i].code == code {
			return DType(i)
		}
	}
	panic("BUG: promotion table")
}

// Inexact is d if it is inexact, else Float32: the dtype of functions such as exp.
func (d DType) Inexact() DType {
	if d.IsInexact() {
		return d
	}
	return Float32
}
