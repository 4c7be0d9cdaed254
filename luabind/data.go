package luabind

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/luabind/lua51"
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
)

// arrayOf makes an array of a number, a bool, a complex value, a string (64-bit integers), or a nested table of such.
// With integral set, a number that is no integer is an error: the data are indices.
func arrayOf(ctx context.Context, c *tensor.Ctx, v lua.LValue, d tensor.DType, integral bool) (*tensor.Array, error) {
	b := arrayBuilder{ctx: ctx, dtype: d, integral: integral}
	if err := b.shapeOf(v); err != nil {
		return nil, err
	}
	if err := (tensor.Shape(b.shape)).Check(d); err != nil {
		return nil, err
	}
	// A table that holds one table in many places has more elements than it takes memory.
	if err := tensor.Fits(c, tensor.Spec{Shape: b.shape, DType: d}); err != nil {
		return nil, err
	}
	if c.Holder != nil {
		if err := c.Holder.Account().Check(tensor.Spec{Shape: b.shape, DType: d}.NBytes()); err != nil {
			return nil, err
		}
	}
	if err := b.add(v, 0); err != nil {
		return nil, err
	}
	return tensor.FromBytes(c, tensor.Spec{Shape: b.shape, DType: d}, b.bytes), nil
}

type arrayBuilder struct {
	ctx      context.Context
	entries  int
	dtype    tensor.DType
	integral bool
	shape    []int
	bytes    []byte
}

// maxRank bounds the nesting of tables, so that a table that contains itself is an error.
const maxRank = 64

// shapeOf reads the shape off the first elements.
func (b *arrayBuilder) shapeOf(v lua.LValue) error {
	b.shape = []int{}
	for {
		t, ok := v.(*lua.LTable)
		if !ok {
			return nil
		}
		if len(b.shape) == maxRank {
			return fmt.Errorf("is a table nested deeper than %d levels", maxRank)
		}
		n := t.Len()
		if n == 0 {
			if key, _ := t.Next(lua.LNil); key != lua.LNil {
				return fmt.Errorf("is a table with the key %s, want a sequence of numbers", quote(key.String()))
			}
		}
		b.shape = append(b.shape, n)
		if n == 0 {
			return nil
		}
		v = t.RawGetInt(1)
	}
}

func (b *arrayBuilder) add(v lua.LValue, depth int) error {
	t, ok := v.(*lua.LTable)
	if !ok {
		if depth != len(b.shape) {
			return fmt.Errorf("has %s where a table of %s belongs", describe(v), tensor.Count(b.shape[depth], "element"))
		}
		return b.element(v)
	}
	if depth >= len(b.shape) || t.Len() != b.shape[depth] {
		return fmt.Errorf("is not rectangular: a table of %s at depth %d, where shape %v has others",
			tensor.Count(t.Len(), "element"), depth,
			tensor.Shape(b.shape))
	}
	for i := 1; i <= t.Len(); i++ {
		if err := stopped(b.ctx, b.entries); err != nil {
			return err
		}
		b.entries++
		if err := b.add(t.RawGetInt(i), depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (b *arrayBuilder) element(v lua.LValue) error {
	switch v := v.(type) {
	case lua.LNumber:
		if b.integral && float64(v) != math.Trunc(float64(v)) {
			return fmt.Errorf("has the number %v, want integers", float64(v))
		}
		if f := float64(v); b.integral && (f < math.MinInt32 || f > math.MaxInt32) {
			return fmt.Errorf("has the number %.0f, want integers that fit int32", f) // it would wrap to an index that exists
		}
		return b.float(float64(v))
	case lua.LBool:
		if b.integral {
			return fmt.Errorf("has %v, want integers", bool(v))
		}
		if bool(v) {
			return b.float(1)
		}
		return b.float(0)
	case lua.LString:
		return b.integerText(string(v))
	}
	if z, ok := unwrap[complexNumber](v); ok {
		if b.dtype != tensor.Complex64 {
			return fmt.Errorf("has the complex number %v, want dtype complex64, not %v", z, b.dtype)
		}
		b.u32(math.Float32bits(real(complex64(z))))
		b.u32(math.Float32bits(imag(complex64(z))))
		return nil
	}
	return fmt.Errorf("has %s, want numbers", describe(v))
}

func (b *arrayBuilder) u32(v uint32) { b.bytes = binary.LittleEndian.AppendUint32(b.bytes, v) }

// float appends a number: rounded once to the dtype; integers drop the fraction and wrap, what is beyond 64 bits
// saturates.
func (b *arrayBuilder) float(v float64) error {
	if !b.dtype.IsInteger() {
		var err error
		b.bytes, err = ops.AppendNumber(b.bytes, v, b.dtype)
		return err
	}
	if v != v || math.IsInf(v, 0) {
		return fmt.Errorf("has %v, which no %v can be", v, b.dtype)
	}
	b.integer(wholeNumber(v, b.dtype))
	return nil
}

func wholeNumber(v float64, d tensor.DType) uint64 {
	switch {
	case d == tensor.Uint64 && v >= 1<<63:
		if v >= 1<<64 {
			return math.MaxUint64
		}
		return uint64(v)
	case v >= 1<<63:
		return math.MaxInt64
	case v < -(1 << 63):
		return 1 << 63
	}
	return uint64(int64(v))
}

func (b *arrayBuilder) integer(n uint64) {
	var eight [8]byte
	binary.LittleEndian.PutUint64(eight[:], n)
	b.bytes = append(b.bytes, eight[:b.dtype.Size()]...)
}

// integerText appends an integer given as a string: that is how integers beyond 2^53 are written.
func (b *arrayBuilder) integerText(text string) error {
	if !b.dtype.IsInteger() {
		return fmt.Errorf("has the string %s; strings stand for integers, and the dtype is %v", quote(text), b.dtype)
	}
	bits := 8 * b.dtype.Size()
	if b.dtype.IsSigned() {
		n, err := strconv.ParseInt(text, 10, bits)
		if err != nil {
			return fmt.Errorf("has the string %s, want an integer that fits %v", quote(text), b.dtype)
		}
		b.integer(uint64(n))
		return nil
	}
	n, err := strconv.ParseUint(text, 10, bits)
	if err != nil {
		return fmt.Errorf("has the string %s, want an integer that fits %v", quote(text), b.dtype)
	}
	b.integer(n)
	return nil
}

// element is an element's bits as a Lua value; asText gives 64-bit integers as strings.
func element(b []byte, d tensor.DType, asText bool) lua.LValue {
	switch d {
	case tensor.Bool:
		return lua.LBool(b[0] != 0)
	case tensor.Complex64:
		re := math.Float32frombits(binary.LittleEndian.Uint32(b))
		im := math.Float32frombits(binary.LittleEndian.Uint32(b[4:]))
		return lua.LString(complexNumber(complex(re, im)).String())
	case tensor.Int64:
		n := int64(binary.LittleEndian.Uint64(b))
		if asText {
			return lua.LString(strconv.FormatInt(n, 10))
		}
		return lua.LNumber(n)
	case tensor.Uint64:
		n := binary.LittleEndian.Uint64(b)
		if asText {
			return lua.LString(strconv.FormatUint(n, 10))
		}
		return lua.LNumber(n)
	}
	return lua.LNumber(float(b, d))
}

// float is a real element that is no 64-bit integer.
func float(b []byte, d tensor.DType) float64 {
	le := binary.LittleEndian
	switch d {
	case tensor.Uint8:
		return float64(b[0])
	case tensor.Uint16:
		return float64(le.Uint16(b))
	case tensor.Uint32:
		return float64(le.Uint32(b))
	case tensor.Int8:
		return float64(int8(b[0]))
	case tensor.Int16:
		return float64(int16(le.Uint16(b)))
	case tensor.Int32:
		return float64(int32(le.Uint32(b)))
	case tensor.Float16:
		return float64(tensor.Float16Value(le.Uint16(b)))
	case tensor.BFloat16:
		return float64(tensor.BFloat16Value(le.Uint16(b)))
	case tensor.Float32:
		return float64(math.Float32frombits(le.Uint32(b)))
	}
	return math.Float64frombits(le.Uint64(b))
}

// bytes evaluates x and gives its elements in row-major order.
func (s *State) bytes(x *tensor.Array) []byte {
	s.looks.ifDue(x)
	b, err := x.Bytes(s.Context())
	if err != nil {
		s.raise(err)
	}
	return b
}

// complexParts are the two numbers of a complex element.
func complexParts(b []byte) complexNumber {
	re := math.Float32frombits(binary.LittleEndian.Uint32(b))
	im := math.Float32frombits(binary.LittleEndian.Uint32(b[4:]))
	return complexNumber(complex(re, im))
}

// item is x:item(): the value of an array with one element, as two numbers where it is complex.
func (s *State) item(x *tensor.Array, asText bool) (values, error) {
	if n := x.Spec().Shape.Size(); n != 1 {
		return nil, fmt.Errorf("the array has shape %v, want one element; x:tolist() gives all", x.Spec().Shape)
	}
	b := s.bytes(x)
	if x.DType() == tensor.Complex64 {
		z := complexParts(b)
		return values{lua.LNumber(real(complex64(z))), lua.LNumber(imag(complex64(z)))}, nil
	}
	return values{element(b, x.DType(), asText)}, nil
}

// tolist is x:tolist(): nested tables of numbers; a number for an array without dimensions. Tables that would be
// larger than the memory limit are an error: no script could catch the failure of making them.
func (s *State) tolist(x *tensor.Array, asText bool) lua.LValue {
	if dev, err := tensor.MetalDevice(tensor.DefaultDevice()); err == nil {
		if n, limit := x.Spec().Shape.Size(), dev.Memory().Limit; int64(n) > limit/lua51.ElementBytes {
			s.raise(fmt.Errorf("[tolist] tables of %d elements take %g bytes or more: the memory limit is %d", n,
				float64(n)*lua51.ElementBytes, limit))
		}
	}
	s.Charge(2 * lua51.ElementBytes * int64(x.Spec().Shape.Size()))
	b, spec := s.bytes(x), x.Spec()
	size, made := spec.DType.Size(), 0
	var level func(dim int) lua.LValue
	level = func(dim int) lua.LValue {
		if dim == len(spec.Shape) {
			var v lua.LValue
			if spec.DType == tensor.Complex64 {
				v = s.userdata(complexKind, complexParts(b))
			} else {
				v = element(b, spec.DType, asText)
			}
			b = b[size:]
			return v
		}
		t := s.NewTable(spec.Shape[dim], 0)
		for range spec.Shape[dim] {
			if err := stopped(s.Context(), made); err != nil {
				s.raise(err)
			}
			made++
			t.Append(level(dim + 1))
		}
		return t
	}
	return level(0)
}

const complexKind = "complex"

// printed is an array as MLX prints it, with the state's precision. It reads what it prints and no more: arrays may be
// large. What it prints counts as the script's: an array of few bytes may have many elements in many dimensions.
func printed(s *State, x *tensor.Array) (string, error) {
	spec, view, release, err := x.HostView(s.Context())
	if err != nil {
		return "", err
	}
	defer release()
	p := arrayPrinter{spec: spec, bytes: view.Bytes, strides: view.Strides, precision: s.precision,
		taken: lua51.Hold(s.State)}
	defer p.taken.End()
	p.out.WriteString("array(")
	err = view.Guard(func() error { return p.level(0, view.OffsetBytes) })
	fmt.Fprintf(&p.out, ", dtype=%v)", p.spec.DType)
	return p.out.String(), err
}

// arrayPrinter writes the elements of an array.
type arrayPrinter struct {
	spec      tensor.Spec
	bytes     []byte
	strides   []int // in elements
	precision int   // places after the point, or shortest
	out       strings.Builder
	taken     *lua51.Holding
	counted   int // bytes of out, with the room that it has
}

// count counts what was printed since it was last asked, by pieces.
func (p *arrayPrinter) count() error {
	const piece = 4 << 10
	n := p.out.Cap() + p.out.Len()
	if n < p.counted+piece {
		return nil
	}
	more := n - p.counted
	p.counted = n
	return p.taken.Add(int64(more))
}

// edge is how many elements are printed at either end of a dimension that has more than twice as many.
const edge = 3

func (p *arrayPrinter) level(dim int, at int64) error {
	shape := p.spec.Shape
	if dim == len(shape) {
		p.element(at)
		return p.count()
	}
	if dim == 0 && shape.Size() == 0 && len(shape) == 1 {
		p.out.WriteString("[]")
		return nil
	}
	step := int64(p.strides[dim]) * int64(p.spec.DType.Size())
	last := dim == len(shape)-1
	p.out.WriteByte('[')
	for i := 0; i < shape[dim]; i++ {
		switch {
		case i == 0:
		case last:
			p.out.WriteString(", ")
		default:
			p.out.WriteString(",\n" + strings.Repeat(" ", 7+dim))
		}
		if i == edge && shape[dim] > 2*edge {
			p.out.WriteString("...")
			i = shape[dim] - edge - 1
			continue
		}
		if err := p.level(dim+1, at+int64(i)*step); err != nil {
			return err
		}
	}
	p.out.WriteByte(']')
	return p.count()
}

func (p *arrayPrinter) element(at int64) {
	d := p.spec.DType
	b := p.bytes[at:]
	switch {
	case d == tensor.Bool && b[0] != 0:
		p.out.WriteString("True")
	case d == tensor.Bool:
		p.out.WriteString("False")
	case d == tensor.Complex64:
		p.out.WriteString(complexParts(b).text(p.precision))
	case d.IsInteger():
		p.out.WriteString(element(b, d, true).String())
	default:
		p.out.WriteString(formatFloat(float(b, d), p.precision))
	}
}
