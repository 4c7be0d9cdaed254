package linalg

import (
	"fmt"
	"math"
	"math/cmplx"

	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack"
	"gonum.org/v1/gonum/lapack/lapack64"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

// eigAttrs say whether a call gives vectors beside the eigenvalues.
type eigAttrs struct{ Vectors bool }

var eig = tensor.Declare[eigAttrs]("eig")

func init() {
	eig.Define(tensor.Rules[eigAttrs]{
		Shape: func(in []tensor.Spec, a eigAttrs, outs []tensor.Shape) ([]tensor.Shape, error) {
			return eigenShapes(in, a.Vectors, outs)
		},
		DType: func(in []tensor.Spec, a eigAttrs, outs []tensor.DType) ([]tensor.DType, error) {
			_, _, err := real64OrComplex(in)
			outs = append(outs, tensor.Complex64)
			if a.Vectors {
				outs = append(outs, tensor.Complex64)
			}
			return outs, err
		},
		Host: eigHost,
		VJP: func(g *tensor.VJP[eigAttrs]) []*tensor.Array {
			f, gv := g.Out, (*tensor.Array)(nil)
			if g.Attrs.Vectors {
				gv = g.Cot[1]
			} else {
				f = eig.Call(g.Ctx, eigAttrs{true}, g.In[0])
			}
			sum := eigGradient(g.Ctx, f, g.Cot[0], gv)
			if !g.In[0].DType().IsComplex() {
				sum = ops.AsType(ops.Real(sum, g.Ctx), g.In[0].DType(), g.Ctx)
			}
			return []*tensor.Array{sum}
		},
		VMap: ops.BatchFirst(eig),
	})
}

func eigHost(h *tensor.HostCall, attrs eigAttrs) error {
	x := h.In[0]
	n := x.Shape[len(x.Shape)-1]
	if n == 0 {
		return nil
	}
	cost := 5 * cube(n)
	if attrs.Vectors {
		cost = 20 * cube(n)
	}
	return overBatch(h, batchOf(x.Shape).Size(), cost, func(w *workspace, i int) error {
		var (
			values, vectors []complex128
			ok              bool
		)
		if x.DType.IsComplex() {
			a, err := w.finiteComplex(x, i, n*n)
			if err != nil {
				return err
			}
			values, vectors, ok = eigComplex(w, a, n, attrs.Vectors)
		} else {
			a, err := w.finite(x, i, n*n)
			if err != nil {
				return err
			}
			values, vectors, ok = eigReal(w, a, n, attrs.Vectors)
		}
		if !ok {
			return fmt.Errorf("%s: %w", nameOf(x, i), errNotConverged)
		}
		storeComplex(h.Out[0], i, values)
		if attrs.Vectors {
			storeComplex(h.Out[1], i, vectors)
		}
		return nil
	})
}

// eigReal returns the eigenvalues of a real matrix, which it overwrites, and its eigenvectors as columns.
func eigReal(w *workspace, a []float64, n int, withVectors bool) (values, vectors []complex128, ok bool) {
	re, im, v := w.reals(n), w.reals(n), w.reals(0)
	job, columns := lapack.RightEVNone, 1
	if withVectors {
		job, columns, v = lapack.RightEVCompute, n, w.reals(n*n)
	}
	of := blas64.General{Rows: n, Cols: n, Stride: n, Data: a}
	right := blas64.General{Rows: n, Cols: columns, Stride: columns, Data: v}
	left := blas64.General{Stride: 1}
	var size [1]float64
	lapack64.Geev(lapack.LeftEVNone, job, of, re, im, left, right, size[:], -1)
	work := w.reals(int(size[0]))
	if lapack64.Geev(lapack.LeftEVNone, job, of, re, im, left, right, work, len(work)) != 0 {
		return nil, nil, false
	}
	values = w.complexes(n)
	for i := range n {
		values[i] = complex(re[i], im[i])
	}
	if !withVectors {
		return values, nil, true
	}
	vectors = w.complexes(n * n)
	for j := 0; j < n; j++ {
		if im[j] == 0 {
			for i := range n {
				vectors[i*n+j] = complex(v[i*n+j], 0)
			}
			continue
		}
		for i := range n { // columns j and j+1 are the parts of a conjugate pair
			z := complex(v[i*n+j], v[i*n+j+1])
			vectors[i*n+j], vectors[i*n+j+1] = z, cmplx.Conj(z)
		}
		j++
	}
	return values, vectors, true
}

// eigComplex returns the eigenvalues of a complex matrix, which it overwrites, and its eigenvectors as columns, of
// length 1 with a real greatest element.
func eigComplex(w *workspace, a []complex128, n int, withVectors bool) (values, vectors []complex128, ok bool) {
	z := hessenberg(w, a, n)
	if !schur(w, a, z, n) {
		return nil, nil, false
	}
	values = w.complexes(n)
	for i := range n {
		values[i] = a[i*n+i]
	}
	if !withVectors {
		return values, nil, true
	}
	size := 0.0
	for _, v := range a {
		size = max(size, cmplx.Abs(v))
	}
	least := complex(max(size*0x1p-53, math.SmallestNonzeroFloat64*0x1p52), 0)
	vectors = w.complexes(n * n)
	x := w.complexes(n)
	for k := range n {
		backSubstitute(a, x, n, k, least)
		v := w.complexes(n)
		for i := range n {
			for j := range k + 1 {
				v[i] += z[i*n+j] * x[j]
			}
		}
		normalize(v)
		for i := range n {
			vectors[i*n+k] = v[i]
		}
	}
	return values, vectors, true
}

// backSubstitute makes x an eigenvector of the upper triangular t, n x n, for its element k on the diagonal. Where
// eigenvalues are equal it divides by least.
func backSubstitute(t, x []complex128, n, k int, least complex128) {
	clear(x)
	x[k] = 1
	for i := k - 1; i >= 0; i-- {
		sum := 0i
		for j := i + 1; j <= k; j++ {
			sum += t[i*n+j] * x[j]
		}
		gap := t[k*n+k] - t[i*n+i]
		if cmplx.Abs(gap) < real(least) {
			gap = least
		}
		x[i] = sum / gap
		if size := cmplx.Abs(x[i]); size > 1e100 {
			for j := i; j <= k; j++ {
				x[j] /= complex(size, 0)
			}
		}
	}
}

// normalize makes v as long as 1 and its greatest element real.
func normalize(v []complex128) {
	length, greatest := 0.0, 0i
	for _, z := range v {
		length = math.Hypot(length, cmplx.Abs(z))
		if cmplx.Abs(z) > cmplx.Abs(greatest) {
			greatest = z
		}
	}
	turn := cmplx.Conj(phase(greatest)) / complex(length, 0)
	for i := range v {
		v[i] *= turn
	}
}

// schur makes the Hessenberg matrix a, n x n, upper triangular by QR steps with Wilkinson's shifts, and multiplies z
// by the rotations. It reports whether it came to an end.
func schur(w *workspace, a, z []complex128, n int) bool {
	cosines, sines := w.reals(n), w.complexes(n)
	const most = 60 // steps for one eigenvalue
	for end, steps := n-1, 0; end > 0; {
		first := end
		for ; first > 0; first-- {
			off, around := cmplx.Abs(a[first*n+first-1]), cmplx.Abs(a[first*n+first])+cmplx.Abs(a[(first-1)*n+first-1])
			if off <= 0x1p-53*around || off < math.SmallestNonzeroFloat64*0x1p53 {
				a[first*n+first-1] = 0
				break
			}
		}
		if first == end {
			end, steps = end-1, 0
			continue
		}
		if steps++; steps > most {
			return false
		}
		shift := wilkinson(a, n, end)
		if steps%10 == 0 { // an exceptional one, against cycles
			shift += complex(cmplx.Abs(a[end*n+end-1]), 0)
		}
		qrStep(a, z, n, first, end, shift, cosines, sines)
	}
	return true
}

// wilkinson is the eigenvalue of the last 2 x 2 block that ends at end which is nearer to its last element.
func wilkinson(a []complex128, n, end int) complex128 {
	p, q := a[(end-1)*n+end-1], a[(end-1)*n+end]
	r, s := a[end*n+end-1], a[end*n+end]
	half := (p - s) / 2
	root := cmplx.Sqrt(half*half + q*r)
	if real(half)*real(root)+imag(half)*imag(root) < 0 {
		root = -root
	}
	if half+root == 0 {
		return s
	}
	return s - q*r/(half+root)
}

// qrStep makes one QR step on the rows and columns from first to end.
func qrStep(a, z []complex128, n, first, end int, shift complex128, cosines []float64, sines []complex128) {
	for i := first; i <= end; i++ {
		a[i*n+i] -= shift
	}
	for k := first; k < end; k++ {
		x, y := a[k*n+k], a[(k+1)*n+k]
		c, s := rotation(x, y)
		cosines[k], sines[k] = c, s
		top, low := a[k*n:(k+1)*n], a[(k+1)*n:(k+2)*n]
		for j := k; j < n; j++ {
			x, y := top[j], low[j]
			top[j] = complex(c, 0)*x + s*y
			low[j] = complex(c, 0)*y - cmplx.Conj(s)*x
		}
		low[k] = 0
	}
	for k := first; k < end; k++ {
		c, s := complex(cosines[k], 0), cmplx.Conj(sines[k])
		turn := func(m []complex128, rows int) {
			for i := range rows {
				x, y := m[i*n+k], m[i*n+k+1]
				m[i*n+k] = c*x + s*y
				m[i*n+k+1] = c*y - cmplx.Conj(s)*x
			}
		}
		turn(a, min(k+2, end+1))
		turn(z, n)
	}
	for i := first; i <= end; i++ {
		a[i*n+i] += shift
	}
}

// rotation is c, real, and s with -conj(s) x + c y = 0 and c^2 + |s|^2 = 1.
func rotation(x, y complex128) (c float64, s complex128) {
	if y == 0 {
		return 1, 0
	}
	size := math.Hypot(cmplx.Abs(x), cmplx.Abs(y))
	if x == 0 {
		return 0, cmplx.Conj(phase(y))
	}
	return cmplx.Abs(x) / size, phase(x) * cmplx.Conj(y) / complex(size, 0)
}

// eigGradient is the gradient of a = V diag(w) V^-1 from those of w and V, of which one may be nil, for vectors of
// length 1.
func eigGradient(c *tensor.Ctx, f []*tensor.Array, gw, gv *tensor.Array) *tensor.Array {
	w, v := f[0], f[1]
	vh := adjoint(c, v)
	eye := leading(c, v, -1, v, -1)
	columns := func(x *tensor.Array) *tensor.Array { return ops.ExpandDims(x, []int{-2}, c) }
	var sum *tensor.Array
	if gw != nil {
		sum = ops.Multiply(eye, columns(gw), c)
	}
	if gv != nil {
		// The length of vectors is fixed: what would change it does not count.
		m := ops.Matmul(vh, gv, c)
		along := ops.Real(ops.Sum(ops.Multiply(eye, m, c), []int{-2}, true, c), c)
		m = ops.Subtract(m, ops.Multiply(ops.Matmul(vh, v, c), along, c), c)
		conj := ops.Conjugate(w, c)
		gap := ops.Subtract(columns(conj), ops.ExpandDims(conj, []int{-1}, c), c)
		one, zero := ops.Number(1, tensor.Complex64, c), ops.Number(0, tensor.Complex64, c)
		none := ops.Equal(gap, zero, c)
		m = ops.Where(none, zero, ops.Divide(m, ops.Where(none, one, gap, c), c), c)
		sum = ops.AddTerm(c, sum, m)
	}
	return product(c, inv.One(c, invAttrs{OrNaN: true}, vh), sum, vh)
}

var _ = sig.Def("linalg.eig", "a", func(a *sig.Args) any { return Eig(a.Array(0), a.Ctx) })

// Eig is two complex64 arrays: the eigenvalues of square matrices, in no certain order, and their eigenvectors of
// length 1 as columns: v[:, i] belongs to w[i]. It takes float32, float64 and complex64; see [EigH] for symmetric
// matrices. The gradient is that of eigenvalues that differ, and through vectors it is right where their phases,
// which are arbitrary, do not matter. NaN and infinities are an error when the result is computed. It is computed on
// the host.
func Eig(a *tensor.Array, ctx ...*tensor.Ctx) []*tensor.Array {
	return asMatrices(tensor.Call(ctx), eig, eigAttrs{true}, a)
}

var _ = sig.Def("linalg.eigvals", "a", func(a *sig.Args) any { return EigVals(a.Array(0), a.Ctx) })

// EigVals is the eigenvalues that [Eig] gives, alone, as complex64.
func EigVals(a *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return asMatrices(tensor.Call(ctx), eig, eigAttrs{false}, a)[0]
}

// eigenShapes are the shapes of the eigenvalues of square matrices and, with vectors, of their eigenvectors.
func eigenShapes(in []tensor.Spec, vectors bool, outs []tensor.Shape) ([]tensor.Shape, error) {
	n, err := squareMatrix(in)
	if err != nil {
		return nil, err
	}
	outs = append(outs, batchOf(in[0].Shape, n))
	if vectors {
		outs = append(outs, in[0].Shape)
	}
	return outs, nil
}
