package products_test

import (
	"os"
	"strings"
	"testing"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/products"
	"github.com/mlxlua/mlxlua/tensor/optest"
)

func TestMain(m *testing.M) {
	os.Exit(optest.Main(m, map[string]string{"einsum_path": "golden data: it gives no arrays"}))
}

type array = tensor.Array

var (
	inexact = []tensor.DType{tensor.Float32, tensor.Float16, tensor.BFloat16, tensor.Float64, tensor.Complex64}
	near    = optest.Tol{Rel: 1e-5, Abs: 4e-5}
)

// run tests a function in cases.
func run(t *testing.T, name string, dtypes []tensor.DType, f func(in []*array) *array, cases ...optest.Case) {
	optest.Run(t, optest.Subject{
		Name: name, Ops: []string{"matmul"}, DTypes: dtypes, Fn: optest.One(f), Cases: cases, Second: true, Tol: near,
	})
}

func TestEinsum(t *testing.T) {
	of := optest.Of
	einsum := func(text string, dtypes []tensor.DType, cases ...optest.Case) {
		run(t, "einsum "+text, dtypes, func(in []*array) *array { return products.Einsum(text, in) }, cases...)
	}
	einsum("ab,bc->ca", inexact, of("n,k", "k,m"))
	einsum("abc,cdb->da", inexact[:2], of("2,n,3", "3,m,n"))
	einsum("...ab,...bc", inexact[:1], of("2,n,k", "k,m"), of("1,2,n", "3,n,2"))
	einsum("aab->ba", nil, of("3,3,n"))
	einsum("aab,bcc->ac", inexact[:1], of("2,2,n", "n,3,3"))
	einsum("a,ab,b->a", inexact[:1], of("n", "n,m", "m"))
	einsum("ab,bc,cd->ad", inexact[:1], of("2,n", "n,m", "m,3"))
	einsum("ab,b->ab", nil, of("n,m", "m"))
	einsum("ab->", nil, of("n,m"))
	bad := func(text, want string, shapes ...[]int) {
		t.Helper()
		in := make([]*array, len(shapes))
		for i, s := range shapes {
			in[i] = optest.Zeros(s...)
		}
		optest.Fails(t, products.Einsum(text, in), "[einsum] "+want)
	}
	bad("ab,bc", `there is no operand for subscripts "ab,bc"`)
	bad("ab,bc", `"ab,bc" has subscripts for 2 operands, there are 1`, []int{2, 3})
	bad("ab,bc", "dimension 0 of operand 1, of shape (4, 5), cannot be broadcast to 3", []int{2, 3}, []int{4, 5})
	bad("ab", `subscripts "ab" are for 2 dimensions, operand 0 has shape (2,)`, []int{2})
	bad("a2", `subscripts are letters and ellipses, but "a2" has "2"`, []int{2, 2})
	bad("...a...", `a subscript has one ellipsis at most: "...a..."`, []int{2, 2})
	bad(strings.Repeat("a,", 128)+"a", "there are 129 operands, at most 128 can be put in order", make([][]int, 129)...)
	bad("aa", `dimensions of operand 0, of shape (2, 3), have one name, "a", and sizes 2 and 3`, []int{2, 3})
	bad("ab->bb", `the result of "ab->bb" has "b" twice`, []int{2, 3})
	bad("ab->c", `the result of "ab->c" has "c", which no operand has`, []int{2, 3})
	ints := ops.AsType(optest.Zeros(2, 2), tensor.Int32)
	optest.Fails(t, products.Einsum("ab,bc", []*array{ints, ints}), "[einsum] operands have dtypes int32 and int32")
	optest.Fails(t, products.Einsum("a", []*array{nil}), "[einsum] an input is nil")
	_, _, fail := products.EinsumPath("ab->bb", []*array{optest.Zeros(2, 2)})
	optest.Fails(t, fail, "[einsum_path] the result of")
}

func TestContractions(t *testing.T) {
	of := optest.Of
	run(t, "tensordot", inexact, func(in []*array) *array {
		return products.TensorDotAt(in[0], in[1], []int{-1, 0}, []int{0, 1})
	}, of("m,2,n", "n,m,3"))
	run(t, "tensordot none", inexact[:1], func(in []*array) *array { return products.TensorDot(in[0], in[1], 0) },
		of("n", "2,m"))
	run(t, "inner", inexact, func(in []*array) *array { return products.Inner(in[0], in[1]) }, of("n,k", "m,k"))
	run(t, "inner scalar", nil, func(in []*array) *array { return products.Inner(in[0], in[1]) }, of("n", ""))
	run(t, "outer", nil, func(in []*array) *array { return products.Outer(in[0], in[1]) }, of("n", "2,m"))
	run(t, "vecdot", nil, func(in []*array) *array { return products.VecDot(in[0], in[1], -1) }, of("n,m", "n,m"))
	run(t, "vecdot first", inexact[:1], func(in []*array) *array { return products.VecDot(in[0], in[1], 0) },
		of("n,2", "n,1"))
	run(t, "kron", nil, func(in []*array) *array { return products.Kron(in[0], in[1]) }, of("n,2", "m"), of("2", "3,n"))
	z := optest.Zeros
	at := func(a, b []int) *array { return products.TensorDotAt(z(2, 3), z(2, 3), a, b) }
	optest.Fails(t, products.TensorDot(z(2, 3), z(2, 3), 3), "[tensordot] axes is 3, want 0 to the dimensions of a (2, 3)")
	optest.Fails(t, products.TensorDot(z(2, 3), z(2, 3), -1), "[tensordot] axes is -1")
	optest.Fails(t, at([]int{0}, []int{0, 1}), "[tensordot] 1 axes of a and 2 axes of b: [0] and [0 1]")
	optest.Fails(t, at([]int{0}, []int{1}), "[tensordot] axis 0 of a (2, 3) and axis 1 of b (2, 3) have sizes 2 and 3")
	optest.Fails(t, at([]int{2}, []int{1}), "[tensordot] a (2, 3): axis 2 is out of range")
	optest.Fails(t, products.Inner(z(2, 3), z(2)), "[inner] axis -1 of a (2, 3) and axis -1 of b (2,) have sizes 3 and 2")
	optest.Fails(t, products.VecDot(z(2, 3), z(3), -1), "[vecdot] axis -1 is dimension 1 of a (2, 3) and dimension 0 of b")
	optest.Fails(t, products.VecDot(z(2, 3), z(2, 4), 1), "[vecdot] a (2, 3) and b (2, 4) have sizes 3 and 4 along axis 1")
	optest.Fails(t, products.VecDot(z(), z(3), -1), "[vecdot] a (): axis -1 is out of range")
	optest.Fails(t, products.Kron(z(0, 2), z(3)), "[kron] an operand has no elements: a (0, 2), b (3,)")
	optest.Fails(t, products.Outer(z(2), nil), "[outer] an input is nil")
}

func TestAddMM(t *testing.T) {
	run(t, "addmm", inexact, func(in []*array) *array { return products.AddMM(in[0], in[1], in[2], 0.5, -2) },
		optest.Of("n,m", "n,k", "k,m"), optest.Of("m", "2,n,k", "k,m"))
	z := optest.Zeros
	ints := ops.AsType(z(2, 2), tensor.Int32)
	optest.Fails(t, products.AddMM(z(2, 5), z(2, 3), z(3, 4), 1, 1),
		"[addmm] c does not have the product's shape: shape (2, 5) does not broadcast to (2, 4)")
	optest.Fails(t, products.AddMM(z(2, 5), z(2, 3), z(2, 4), 1, 1), "[addmm] inner dimensions differ: a (2, 3), b (2, 4)")
	optest.Fails(t, products.AddMM(ints, ints, ints, 1, 1), "[addmm] operands have dtypes int32, int32 and int32")
	optest.Fails(t, products.AddMM(z(2), nil, z(2, 4), 1, 1), "[addmm] an input is nil")
}
