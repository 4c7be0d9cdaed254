package ops

import (
	_ "embed"
	"encoding/binary"
	"fmt"
	"math"
	"sync"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/tensor"
)

//go:embed random.metal
var randomSource string

// bitsAttrs is a call of random.bits: each key of the input gives an array of this shape.
type bitsAttrs struct {
	shape tensor.Dims
	width int // bytes of an element
}

var randomBitsOp = tensor.Declare[bitsAttrs]("random_bits")

var bitsDTypes = map[int]tensor.DType{1: tensor.Uint8, 2: tensor.Uint16, 4: tensor.Uint32}

func init() {
	randomBitsOp.Define(tensor.Rules[bitsAttrs]{
		Shape: func(in []tensor.Spec, a bitsAttrs, outs []tensor.Shape) ([]tensor.Shape, error) {
			per, err := a.shape.Shape(in)
			if err != nil {
				return nil, err
			}
			k := in[0].Shape
			if len(k) == 0 || k[len(k)-1] != 2 {
				return nil, fmt.Errorf("key has shape %v, want (2,)", k)
			}
			return append(outs, append(k[:len(k)-1].Clone(), per...)), nil
		},
		DType: func(in []tensor.Spec, a bitsAttrs, outs []tensor.DType) ([]tensor.DType, error) {
			d, ok := bitsDTypes[a.width]
			if !ok {
				return nil, fmt.Errorf("width is %d, want 1, 2 or 4 bytes", a.width)
			}
			if in[0].DType != tensor.Uint32 {
				return nil, fmt.Errorf("key has dtype %v, want uint32", in[0].DType)
			}
			return append(outs, d), nil
		},
		SpecFrom: func(bitsAttrs, int) int { return 1 },
		Run:      runRandomBits,
		VJP:      func(g *tensor.VJP[bitsAttrs]) []*tensor.Array { return make([]*tensor.Array, len(g.In)) },
		JVP:      func(*tensor.JVP[bitsAttrs]) []*tensor.Array { return []*tensor.Array{nil} },
		VMap: func(g *tensor.VMap[bitsAttrs]) ([]*tensor.Array, []int) {
			// Only the key is read: shapes follow the inputs without their batch axes.
			shape, _, err := unbound(g, g.Attrs.shape)
			if err != nil {
				return []*tensor.Array{tensor.Fail(g.Ctx, "random_bits", "%w", err)}, []int{0}
			}
			key, axis := g.In[0], g.Axes[0]
			if axis >= 0 { // keys of a batch: its axis goes first, their pairs stay last
				key, axis = MoveAxis(key, axis, 0, g.Ctx), 0
			}
			dims, in := shape.Bind([]*tensor.Array{key})
			return []*tensor.Array{randomBitsOp.One(g.Ctx, bitsAttrs{dims, g.Attrs.width}, in...)}, []int{axis}
		},
	})
}

func runRandomBits(r *tensor.Run, a bitsAttrs) error {
	keys, err := r.Contiguous(0)
	if err != nil {
		return err
	}
	count := keys.Shape.Size() / 2
	if r.Out[0].Shape.Size() == 0 {
		return nil
	}
	perKey := r.Out[0].Shape.Size() / count * a.width
	words := (perKey + 3) / 4
	if words > math.MaxUint32 {
		return fmt.Errorf("%d bytes from one key, the most are %d", perKey, 4*math.MaxUint32)
	}
	entry, size := "random_bytes", tensor.Const(uint64(perKey))
	if perKey%4 == 0 {
		entry, size = "random_words", tensor.Const(uint32(words))
	}
	src := metal.Source{Label: "random_bits", Text: randomSource, Options: metal.Options{Portable: true}}
	p, err := r.Kernel(src, entry)
	if err != nil {
		return err
	}
	grid := metal.Size{X: (words + 1) / 2, Y: count, Z: 1}
	return r.Dispatch(p, grid, metal.Size{X: 256, Y: 1, Z: 1}, keys.Arg(), r.Out[0].Arg(), size)
}

// RandomKey is the PRNG key of a seed: uint32 (2,), the seed's high and low words.
func RandomKey(seed uint64, ctx ...*tensor.Ctx) *tensor.Array {
	b := make([]byte, 8)
	binary.LittleEndian.PutUint32(b, uint32(seed>>32))
	binary.LittleEndian.PutUint32(b[4:], uint32(seed))
	return tensor.FromBytes(tensor.Call(ctx), tensor.Spec{Shape: tensor.Shape{2}, DType: tensor.Uint32}, b)
}

// RandomBits is uniformly distributed bits from a key: an unsigned integer array of that shape whose elements have
// width bytes (1, 2 or 4). Equal keys give equal bits, the same as MLX's. key is uint32 (2,).
func RandomBits(shape tensor.ShapeArg, width int, key *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	c := tensor.Call(ctx)
	if f := checkKey(c, "random_bits", key); f != nil {
		return f
	}
	dims, in := shape.Bind([]*tensor.Array{key})
	return randomBitsOp.One(c, bitsAttrs{dims, width}, in...)
}

// checkKey refuses keys that are not of shape (2,); a batch of keys goes through vmap.
func checkKey(c *tensor.Ctx, name string, key *tensor.Array) *tensor.Array {
	if f := unusable(c, name, key); f != nil {
		return f
	}
	if s := key.Spec(); len(s.Shape) != 1 || s.Shape[0] != 2 || s.DType != tensor.Uint32 {
		return tensor.Fail(c, name, "key is %v, want uint32 (2,)", s)
	}
	return nil
}

// RandomSplit is num new keys from a key: uint32 (num, 2).
func RandomSplit(key *tensor.Array, num int, ctx ...*tensor.Ctx) *tensor.Array {
	c := tensor.Call(ctx)
	if num < 0 {
		return tensor.Fail(c, "random_split", "num is %d, want 0 or more", num)
	}
	return RandomBits(tensor.Sizes(num, 2), 4, key, c)
}

// RandomUniform is uniformly distributed floats in [low, high), of that shape and floating-point dtype (float32,
// float16 or bfloat16), from a key. low and high are broadcast to shape. The values are MLX's for the same key:
// min(bits / 2^32, the largest number below 1) * (high - low) + low.
func RandomUniform(low, high *tensor.Array, shape tensor.ShapeArg, d tensor.DType, key *tensor.Array,
	ctx ...*tensor.Ctx) *tensor.Array {
	c := tensor.Call(ctx)
	var upper float32
	switch d {
	case tensor.Float32:
		upper = math.Nextafter32(1, 0)
	case tensor.Float16:
		upper = tensor.Float16Value(tensor.Float16Bits(1) - 1)
	case tensor.BFloat16:
		upper = tensor.BFloat16Value(tensor.BFloat16Bits(1) - 1)
	default:
		return tensor.Fail(c, "random_uniform", "dtype is %v, want float32, float16 or bfloat16", d)
	}
	if f := unusable(c, "random_uniform", low, high); f != nil {
		return f
	}
	lo, hi := AsType(low, d, c), AsType(high, d, c)
	width := Subtract(hi, lo, c)
	unit := Divide(RandomBits(shape, 4, key, c), scalarOf(c, math.MaxUint32), c)
	unit = AsType(Minimum(unit, scalarOf(c, upper), c), d, c)
	out := Add(Multiply(width, unit, c), lo, c)
	if out.NDim() > unit.NDim() {
		return tensor.Fail(c, "random_uniform", "low and high of shape %v do not broadcast to shape %v",
			width.Spec().Shape, unit.Spec().Shape)
	}
	return BroadcastTo(out, tensor.ShapeOf(unit), c)
}

// scalarOf is a float32 array of no dimensions.
func scalarOf(c *tensor.Ctx, v float32) *tensor.Array {
	b := binary.LittleEndian.AppendUint32(nil, math.Float32bits(v))
	return tensor.FromBytes(c, tensor.Spec{DType: tensor.Float32}, b)
}

// RandomState is a sequence of keys from a seed, MLX's global state: each Next splits the key. It belongs to one Lua
// state or to one Go owner, and may be used by any goroutine.
type RandomState struct {
	mu  sync.Mutex
	key *tensor.Array
}

// NewRandomState starts the sequence of a seed.
func NewRandomState(seed uint64) *RandomState { return &RandomState{key: RandomKey(seed)} }

// Seed starts the sequence of a seed anew.
func (s *RandomState) Seed(seed uint64) { s.Set(RandomKey(seed)) }

// Key is the present key. Compile makes it an implicit input.
func (s *RandomState) Key() *tensor.Array {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.key
}

// Set replaces the present key.
func (s *RandomState) Set(key *tensor.Array) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.key = key
}

// Next is a fresh key: uint32 (2,).
func (s *RandomState) Next(ctx ...*tensor.Ctx) *tensor.Array {
	c := tensor.Call(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	pair := RandomSplit(s.key, 2, c)
	s.key = rowOf(c, pair, 0)
	return rowOf(c, pair, 1)
}

// rowOf is row i of a (n, 2) array of keys.
func rowOf(c *tensor.Ctx, keys *tensor.Array, i int) *tensor.Array {
	return Slice(keys, []Part{At(i)}, c)
}
