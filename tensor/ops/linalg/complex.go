package linalg

import (
	"math"
	"math/cmplx"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/lapack"
	"gonum.org/v1/gonum/lapack/gonum"
)

// gonum's LAPACK is real. A complex matrix becomes a real tridiagonal or bidiagonal one by reflections and phases,
// and gonum does the rest.

// reflector overwrites x, n numbers that stand step apart, with the unit vector v for which (1 - 2 v v^H) x is alpha
// times the first unit vector. Of a vector that is zero v is zero.
func reflector(x []complex128, n, step int) (alpha complex128) {
	scale := 0.0
	for i := range n {
		scale = max(scale, math.Abs(real(x[i*step])), math.Abs(imag(x[i*step])))
	}
	if scale == 0 {
		return 0
	}
	sum := 0.0
	for i := range n {
		v := x[i*step] / complex(scale, 0)
		x[i*step] = v
		sum += real(v)*real(v) + imag(v)*imag(v)
	}
	norm := math.Sqrt(sum)
	p := -phase(x[0]) * complex(norm, 0)
	alpha = p * complex(scale, 0)
	first := x[0] - p
	sum += -real(x[0])*real(x[0]) - imag(x[0])*imag(x[0]) + real(first)*real(first) + imag(first)*imag(first)
	x[0] = first
	length := complex(math.Sqrt(sum), 0)
	for i := range n {
		x[i*step] /= length
	}
	return alpha
}

// phase is z on the unit circle, 1 for 0.
func phase(z complex128) complex128 {
	if z == 0 {
		return 1
	}
	return z / complex(cmplx.Abs(z), 0)
}

// reflectRows is a - 2 v (v^H a) for the rows from r on and the columns from c on of a matrix with n columns.
func reflectRows(a []complex128, n, r, c int, v []complex128) {
	for j := c; j < n; j++ {
		sum := 0i
		for i, x := range v {
			sum += cmplx.Conj(x) * a[(r+i)*n+j]
		}
		sum *= 2
		for i, x := range v {
			a[(r+i)*n+j] -= x * sum
		}
	}
}

// reflectColumns is a - 2 (a v) v^H for the rows from r to before end and the columns from c on of a matrix with n
// columns.
func reflectColumns(a []complex128, n, r, end, c int, v []complex128) {
	for i := r; i < end; i++ {
		row := a[i*n+c : i*n+c+len(v)]
		sum := 0i
		for j, x := range v {
			sum += row[j] * x
		}
		sum *= 2
		for j, x := range v {
			row[j] -= sum * cmplx.Conj(x)
		}
	}
}

// identity is the n x n identity.
func identity(w *workspace, n int) []complex128 {
	q := w.complexes(n * n)
	for i := range n {
		q[i*n+i] = 1
	}
	return q
}

// hessenberg makes a, n x n, zero below its first subdiagonal, and returns the unitary Q with a = Q H Q^H.
func hessenberg(w *workspace, a []complex128, n int) []complex128 {
	q, v := identity(w, n), w.complexes(n)
	for k := range n - 2 {
		x := v[:n-k-1]
		for i := range x {
			x[i] = a[(k+1+i)*n+k]
		}
		alpha := reflector(x, len(x), 1)
		reflectRows(a, n, k+1, k, x)
		reflectColumns(a, n, 0, n, k+1, x)
		reflectColumns(q, n, 0, n, k+1, x)
		a[(k+1)*n+k] = alpha
		for i := k + 2; i < n; i++ {
			a[i*n+k] = 0
		}
	}
	return q
}

// eighComplex returns the eigenvalues and vectors of a Hermitian matrix, which it overwrites.
func eighComplex(w *workspace, a []complex128, n int) (values []float64, vectors []complex128, ok bool) {
	q := hessenberg(w, a, n) // tridiagonal, since a is Hermitian
	d, e, z := w.reals(n), w.reals(max(n-1, 0)), w.reals(n*n)
	turn := complex128(1) // makes the off-diagonal elements real
	for k := range n {
		d[k] = real(a[k*n+k])
		if k > 0 {
			off := a[k*n+k-1]
			turn *= phase(off)
			e[k-1] = cmplx.Abs(off)
			for i := range n {
				q[i*n+k] *= turn
			}
		}
	}
	impl := gonum.Implementation{}
	if !impl.Dsteqr(lapack.EVTridiag, n, d, e, z, n, w.reals(max(1, 2*n-2))) {
		return nil, nil, false
	}
	return d, byReal(w, q, n, n, z, n), true
}

// byReal is a, m x k, times the real b, k x n.
func byReal(w *workspace, a []complex128, m, k int, b []float64, n int) []complex128 {
	out := w.complexes(m * n)
	for i := range m {
		for r := range k {
			x := a[i*k+r]
			for j := range n {
				out[i*n+j] += complex(real(x)*b[r*n+j], imag(x)*b[r*n+j])
			}
		}
	}
	return out
}

// svdComplex decomposes a, m x n, which it overwrites: u and vt are square.
func svdComplex(w *workspace, a []complex128, m, n int, vectors bool) (u []complex128, s []float64, vt []complex128,
	err error) {
	if m < n { // a^H = V S U^H
		t := w.complexes(n * m)
		conjugateTranspose(t, a, m, n)
		v, s, ut, err := svdComplex(w, t, n, m, vectors)
		if err != nil || !vectors {
			return nil, s, nil, err
		}
		u, vt := w.complexes(m*m), w.complexes(n*n)
		conjugateTranspose(u, ut, m, m)
		conjugateTranspose(vt, v, n, n)
		return u, s, vt, nil
	}
	u, v := identity(w, m), identity(w, n)
	x := w.complexes(m)
	for k := range n {
		column := x[:m-k]
		for i := range column {
			column[i] = a[(k+i)*n+k]
		}
		a[k*n+k] = reflector(column, len(column), 1)
		reflectRows(a, n, k, k+1, column)
		reflectColumns(u, m, 0, m, k, column)
		if k+1 < n {
			row := x[:n-k-1]
			for j := range row {
				row[j] = cmplx.Conj(a[k*n+k+1+j])
			}
			a[k*n+k+1] = cmplx.Conj(reflector(row, len(row), 1))
			reflectColumns(a, n, k+1, m, k+1, row)
			reflectColumns(v, n, 0, n, k+1, row)
		}
	}
	// U diag(p) B diag(r)^H V^H with a real bidiagonal B.
	s, e := w.reals(n), w.reals(max(n-1, 0))
	r := complex128(1)
	for k := range n {
		d := a[k*n+k]
		p := phase(d * r)
		s[k] = cmplx.Abs(d)
		for i := range m {
			u[i*m+k] *= p
		}
		for i := range n {
			v[i*n+k] *= r
		}
		if k+1 < n {
			off := a[k*n+k+1]
			e[k] = cmplx.Abs(off)
			r = cmplx.Conj(phase(off * cmplx.Conj(p)))
		}
	}
	if n == 0 {
		return u, s, v, nil
	}
	ub, vb := w.reals(n*n), w.reals(n*n)
	for i := range n {
		ub[i*n+i], vb[i*n+i] = 1, 1
	}
	impl := gonum.Implementation{}
	if !impl.Dbdsqr(blas.Upper, n, n, n, 0, s, e, vb, n, ub, n, nil, 1, w.reals(4*n)) {
		return nil, nil, nil, errNotConverged
	}
	if !vectors {
		return nil, s, nil, nil
	}
	first := w.complexes(m * n)
	for i := range m {
		copy(first[i*n:(i+1)*n], u[i*m:])
	}
	first = byReal(w, first, m, n, ub, n)
	for i := range m {
		copy(u[i*m:], first[i*n:(i+1)*n])
	}
	vbt := w.reals(n * n)
	for i := range n {
		for j := range n {
			vbt[i*n+j] = vb[j*n+i]
		}
	}
	vt = w.complexes(n * n)
	conjugateTranspose(vt, byReal(w, v, n, n, vbt, n), n, n)
	return u, s, vt, nil
}

// conjugateTranspose makes t the conjugate transpose of a, m x n.
func conjugateTranspose(t, a []complex128, m, n int) {
	for i := range m {
		for j := range n {
			t[j*m+i] = cmplx.Conj(a[i*n+j])
		}
	}
}
