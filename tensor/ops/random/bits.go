// Package random is MLX's mx.random: numbers that follow from keys, as MLX's do.
package random

import (
	_ "embed"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

//go:embed random.metal
var bitsText string

var bitsKernels = kit.NewKernels[kit.Plain](bitsText)

// bitsAttrs is a call of random.bits: each key of the input gives an array of this shape.
type bitsAttrs struct {
	Shape tensor.Dims
	Width int // bytes of an element
}

var randomBitsOp = tensor.Declare[bitsAttrs]("random_bits")

var bitsDTypes = map[int]tensor.DType{1: tensor.Uint8, 2: tensor.Uint16, 4: tensor.Uint32}

func init() {
	randomBitsOp.Define(tensor.Rules[bitsAttrs]{
		Shape: func(in []tensor.Spec, a bitsAttrs, outs []tensor.Shape) ([]tensor.Shape, error) {
			per, err := a.Shape.Shape(in)
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
			d, ok := bitsDTypes[a.Width]
			if !ok {
				return nil, fmt.Errorf("width is %d, want 1, 2 or 4 bytes", a.Width)
			}
			if in[0].DType != tensor.Uint32 {
				return nil, fmt.Errorf("key has dtype %v, want uint32", in[0].DType)
			}
			return append(outs, d), nil
		},
		SpecFrom: func(bitsAttrs, int) int { return 1 },
		Run:      runRandomBits,
		Constant: true,
		VMap: func(g *tensor.VMap[bitsAttrs]) ([]*tensor.Array, []int) {
			// Only the key is read: shapes follow the inputs without their batch axes.
			shape, _, err := kit.Unbound(g, g.Attrs.Shape)
			if err != nil {
				return []*tensor.Array{tensor.Fail(g.Ctx, "random_bits", "%w", err)}, []int{0}
			}
			key, axis := g.In[0], g.Axes[0]
			if axis >= 0 { // keys of a batch: its axis goes first, their pairs stay last
				key, axis = ops.MoveAxis(key, axis, 0, g.Ctx), 0
			}
			dims, in := shape.Bind([]*tensor.Array{key})
			return []*tensor.Array{randomBitsOp.One(g.Ctx, bitsAttrs{dims, g.Attrs.Width}, in...)}, []int{axis}
		},
	})
}

func runRandomBits(r *tensor.Run, a bitsAttrs) error {
	keys, err := r.Contiguous(0)
	if err != nil {
		return err
	}
	count := keys.Shape.Size() / 2
	perKey := r.Out[0].Shape.Size() / count * a.Width
	words := (perKey + 3) / 4
	if words > math.MaxUint32 {
		return fmt.Errorf("%d bytes from one key, the most are %d", perKey, 4*math.MaxUint32)
	}
	entry, size := "random_bytes", tensor.Const(uint64(perKey))
	if perKey%4 == 0 {
		entry, size = "random_words", kit.Uint(words)
	}
	over := kit.Grid{Threads: metal.Size{X: (words + 1) / 2, Y: count, Z: 1}, Group: metal.Size{X: 256, Y: 1, Z: 1}}
	return bitsKernels.Launch(r, kit.Plain{}, entry, over, keys.Arg(), r.Out[0].Arg(), size)
}

var _ = sig.Def("random.key", "seed:seed", func(a *sig.Args) any { return Key(a.Seed(0), a.Ctx) })

// Key is the PRNG key of a seed: uint32 (2,), the seed's high and low words.
func Key(seed uint64, ctx ...*tensor.Ctx) *tensor.Array {
	b := make([]byte, 8)
	binary.LittleEndian.PutUint32(b, uint32(seed>>32))
	binary.LittleEndian.PutUint32(b[4:], uint32(seed))
	return tensor.FromBytes(tensor.Call(ctx), tensor.Spec{Shape: tensor.Shape{2}, DType: tensor.Uint32}, b)
}

var _ = sig.Def("random.bits", "shape:shape=[] width:int=4 key:key?", func(a *sig.Args) any {
	return Bits(a.Shape(0), a.Int(1), a.Array(2), a.Ctx)
})

// Bits is uniformly distributed bits from a key: an unsigned integer array of that shape whose elements have
// width bytes (1, 2 or 4). Equal keys give equal bits, the same as MLX's. key is uint32 (2,).
func Bits(shape tensor.ShapeArg, width int, key *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	c := tensor.Call(ctx)
	if f := checkKey(c, "random_bits", key); f != nil {
		return f
	}
	dims, in := shape.Bind([]*tensor.Array{key})
	return randomBitsOp.One(c, bitsAttrs{dims, width}, in...)
}

// checkKey refuses keys that are not of shape (2,); a batch of keys goes through vmap.
func checkKey(c *tensor.Ctx, name string, key *tensor.Array) *tensor.Array {
	if f := kit.Unusable(c, name, key); f != nil {
		return f
	}
	if s := key.Spec(); len(s.Shape) != 1 || s.Shape[0] != 2 || s.DType != tensor.Uint32 {
		return tensor.Fail(c, name, "key is %v, want uint32 (2,)", s)
	}
	return nil
}

var _ = sig.Def("random.split", "key num:int=2", func(a *sig.Args) any {
	return Split(a.Array(0), a.Int(1), a.Ctx)
})

// Split is num new keys from a key: uint32 (num, 2).
func Split(key *tensor.Array, num int, ctx ...*tensor.Ctx) *tensor.Array {
	c := tensor.Call(ctx)
	if num < 0 {
		return tensor.Fail(c, "random_split", "num is %d, want 0 or more", num)
	}
	return Bits(tensor.Sizes(num, 2), 4, key, c)
}
