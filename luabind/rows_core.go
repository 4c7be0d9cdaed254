package luabind

import (
	"math"
	"strconv"
	"time"

	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/quant"
)

// coreRows are the functions that make, evaluate and read arrays.
var coreRows = []row{
	{name: "array", sig: "val:any dtype:dtype?",
		help: "An array of val: a number, true or false, mx.complex(re, im), a string of digits (a 64-bit integer), a " +
			"nested table of such, or an array. Without a dtype numbers make float32, booleans bool, complex values " +
			"complex64. A table that holds arrays is stacked: mx.array({x, y}); numbers beside arrays " +
			"take their dtype.",
		call: makeArray},
	{name: "asarray", sig: "a:any dtype:dtype? copy:bool?",
		help: "The array that a is if it has that dtype, else one that mx.array makes of it. copy = false is an error, as " +
			"no array shares its memory with what it is made of.",
		call: func(a *args) any {
			if a.raw[2] == lua.LFalse {
				a.fail("a is %s: no array shares memory with it, and copy is false", describe(a.raw[0]))
			}
			return makeArray(a)
		}},
	{name: "item", sig: "a form:string?", host: true,
		help: "The value of an array of one element: a number or a boolean, for complex64 two numbers; it is evaluated. " +
			"form = \"string\" gives 64-bit integers as strings, exactly.", call: func(a *args) any {
			v, err := a.s.item(a.Array(0), a.asText(1))
			if err != nil {
				a.fail("%w", err)
			}
			return v
		}},
	{name: "tolist", sig: "a form:string?", host: true,
		help: "The elements as nested tables, evaluated; of an array without dimensions, the value. " +
			"form = \"string\" gives 64-bit integers as strings.", call: func(a *args) any {
			return a.s.tolist(a.Array(0), a.asText(1))
		}},
	{name: "dim", sig: "a axis:int", host: true,
		help: "The size of one dimension; axis counts from 0, negative from the end. In a compiled function only " +
			"this dimension is then a guard.", call: func(a *args) any {
			n, err := a.Array(0).Dim(a.Int(1))
			if err != nil {
				a.fail("%w", err)
			}
			return lua.LNumber(n)
		}},
	{name: "free", sig: "a", host: true,
		help: "Gives the array's bytes back now. Later use is an error that names both lines; views and " +
			"queued work keep the bytes.",
		call: func(a *args) any {
			a.Array(0).Free(a.Ctx)
			return nil
		}},
	{name: "complex", sig: "re:operand im:operand=0",
		help: "A complex value, for mx.array and as an operand; it has the fields re and im. Of an array re or im it is " +
			"the array re + im*1j, of complex64.", call: func(a *args) any {
			if z := complexArray(a); z != nil {
				return z
			}
			z := complexNumber(complex(a.complexPart(0), a.complexPart(1)))
			return a.s.userdata(complexKind, z)
		}},
	{name: "type", sig: "v:any?", host: true,
		help: "\"array\", \"dtype\", \"device\", \"stream\" or what Lua's type says.", call: func(a *args) any {
			return lua.LString(typeName(a.raw[0]))
		}},
	{name: "random.seed", sig: "seed:value", host: true,
		help: "Makes the key of seed, a number or a string of digits, that of the random functions which are given none.",
		call: func(a *args) any {
			seed, err := toSeed(nil, a.raw[0])
			if err != nil {
				a.wrong("seed", err)
			}
			a.s.random.Seed(seed.(uint64))
			a.s.changes.reseeded()
			return nil
		}},
	{name: "clock", sig: "", host: true,
		help: "Seconds since the program's start, by a clock that never goes back.", call: func(a *args) any {
			return lua.LNumber(time.Since(clockStart).Seconds())
		}},
	{name: "block_size", sig: "mode:string", host: true,
		help: "How many elements a block has in one of the modes of quantization that are llama.cpp's blocks, such as " +
			"q4_k, in how many bytes, and with how many bits in an element's code; of other modes nil.",
		call: func(a *args) any {
			elements, bytes, bits, ok := quant.BlockSize(a.Text(0))
			if !ok {
				return nil
			}
			return values{lua.LNumber(elements), lua.LNumber(bytes), lua.LNumber(bits)}
		}},
	{name: "iinfo", sig: "dtype:dtype", host: true,
		help: "A table of an integer dtype's min, max, bits and dtype. Limits beyond 2^53 are strings.", call: iinfo},
	{name: "finfo", sig: "dtype:dtype", host: true,
		help: "A table of a floating-point dtype's min, max, eps, smallest_normal, bits and dtype.", call: finfo},
}

// makeArray makes an array of argument 0, of the dtype that argument 1 is.
func makeArray(a *args) any {
	if x, ok := array(a.raw[0]); ok {
		return ops.AsType(x, a.DTypeOr(1, x.DType()), a.Ctx)
	}
	if holdsArray(a.s.Context(), a.raw[0]) {
		st := stacker{a: a}
		if a.Given(1) {
			st.given = true
			st.dtype = a.DType(1)
		}
		return st.stack(a.raw[0].(*lua.LTable), 0)
	}
	d := tensor.Float32
	switch v := a.raw[0].(type) {
	case lua.LBool:
		d = tensor.Bool
	case *lua.LUserData:
		if _, ok := v.Value.(complexNumber); ok {
			d = tensor.Complex64
		}
	case *lua.LTable:
		d = tableDType(v)
	}
	x, err := arrayOf(a.s.Context(), a.Ctx, a.raw[0], a.DTypeOr(1, d), false)
	if err != nil {
		a.fail("%s %w", a.f.params[0].Name, err)
	}
	return x
}

var clockStart = time.Now()

// tableDType is the dtype of an array of a table without a given one: float32, bool if it starts with a bool,
// complex64 if it starts with a complex value.
func tableDType(v lua.LValue) tensor.DType {
	for depth := 0; depth < maxRank; depth++ {
		t, ok := v.(*lua.LTable)
		if !ok {
			break
		}
		v = t.RawGetInt(1)
	}
	if _, ok := v.(lua.LBool); ok {
		return tensor.Bool
	}
	if _, ok := unwrap[complexNumber](v); ok {
		return tensor.Complex64
	}
	return tensor.Float32
}

// asText reads item's and tolist's argument: "string" gives 64-bit integers as strings.
func (a *args) asText(i int) bool {
	if !a.Given(i) {
		return false
	}
	if a.Text(i) != "string" {
		a.fail("%s is %q, want \"string\"", a.f.params[i].Name, a.Text(i))
	}
	return true
}

// iinfo is a table {min, max, bits, dtype}; limits beyond 2^53 are strings.
func iinfo(a *args) any {
	d := a.DTypeOr(0, tensor.Int32)
	if !d.IsInteger() {
		a.fail("dtype %v is no integer type", d)
	}
	bits := uint(8 * d.Size())
	low, high := int64(0), uint64(math.MaxUint64)>>(64-bits)
	if d.IsSigned() {
		low, high = math.MinInt64>>(64-bits), uint64(math.MaxInt64)>>(64-bits)
	}
	t := a.s.NewTable(0, 6)
	if bits == 64 {
		t.RawSetString("min", lua.LString(strconv.FormatInt(low, 10)))
		t.RawSetString("max", lua.LString(strconv.FormatUint(high, 10)))
		if low == 0 {
			t.RawSetString("min", lua.LNumber(0))
		}
	} else {
		t.RawSetString("min", lua.LNumber(low))
		t.RawSetString("max", lua.LNumber(high))
	}
	t.RawSetString("bits", lua.LNumber(bits))
	t.RawSetString("dtype", a.s.dtype(d))
	return t
}

// finfo is a table {min, max, eps, smallest_normal, bits, dtype}, from the format's exponent and fraction bits.
func finfo(a *args) any {
	d := a.DTypeOr(0, tensor.Float32)
	if d == tensor.Complex64 {
		d = tensor.Float32
	}
	formats := map[tensor.DType][2]int{tensor.Float16: {5, 10}, tensor.BFloat16: {8, 7}, tensor.Float32: {8, 23},
		tensor.Float64: {11, 52}}
	f, ok := formats[d]
	if !ok {
		a.fail("dtype %v is no floating-point type", d)
	}
	bias := 1<<(f[0]-1) - 1
	largest := math.Ldexp(2-math.Ldexp(1, -f[1]), bias)
	t := a.s.NewTable(0, 6)
	for name, v := range map[string]float64{"min": -largest, "max": largest, "eps": math.Ldexp(1, -f[1]),
		"smallest_normal": math.Ldexp(1, 1-bias), "bits": float64(8 * d.Size())} {
		t.RawSetString(name, lua.LNumber(v))
	}
	t.RawSetString("dtype", a.s.dtype(d))
	return t
}
