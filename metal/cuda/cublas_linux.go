//go:build syslibs && (amd64 || arm64)

package cuda

import (
	"fmt"
	"math"
	"path/filepath"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"

	"github.com/mlxlua/mlxlua/metal"
)

// Functions of cublasLt's, by their places in productNames.
const (
	ltCreate = iota
	ltDescCreate
	ltDescSet
	ltLayoutCreate
	ltLayoutSet
	ltPreferenceCreate
	ltPreferenceSet
	ltHeuristic
	ltCheck
	ltMatmul
	numProductFunctions
)

var productNames = [numProductFunctions]string{"cublasLtCreate", "cublasLtMatmulDescCreate",
	"cublasLtMatmulDescSetAttribute", "cublasLtMatrixLayoutCreate", "cublasLtMatrixLayoutSetAttribute",
	"cublasLtMatmulPreferenceCreate", "cublasLtMatmulPreferenceSetAttribute", "cublasLtMatmulAlgoGetHeuristic",
	"cublasLtMatmulAlgoCheck",
	"cublasLtMatmul"}

// productSonames are what the library is called, and where toolkits put it that the loader does not know.
var productSonames = []string{"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so.11",
	"/usr/local/cuda*/lib64/libcublasLt.so.1[123]", "/usr/local/cuda*/targets/*/lib/libcublasLt.so.1[123]"}

var cublasLt struct {
	sync.Once
	functions [numProductFunctions]uintptr
	err       error
}

func openProducts() {
	l := &cublasLt
	var handle uintptr
	for _, pattern := range productSonames {
		names := []string{pattern}
		if pattern[0] == '/' {
			names, _ = filepath.Glob(pattern)
		}
		for _, name := range names {
			if handle == 0 {
				handle, l.err = purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_LOCAL)
			}
		}
	}
	if handle == 0 {
		return
	}
	for i, name := range productNames {
		if l.functions[i], l.err = purego.Dlsym(handle, name); l.err != nil {
			return
		}
	}
}

// lt calls a function of cublasLt's.
//
//go:uintptrescapes
func lt(fn int, args ...uintptr) error {
	rc, _, _ := purego.SyscallN(cublasLt.functions[fn], args...)
	if int32(rc) == 0 {
		return nil
	}
	return fmt.Errorf("%s: cuBLAS error %d", productNames[fn], int32(rc))
}

// multiplication is how products of one kind are done.
type multiplication struct {
	mu                     sync.Mutex
	desc, left, right, out uintptr
	algorithm              [64]byte
	err                    error
}

// cublas is cublasLt for one card.
type cublas struct {
	handle uintptr
	mu     sync.Mutex
	known  map[key]*multiplication
}

// key is what decides how a product is done.
type key struct {
	metal.MatMul
	align uint32 // of all addresses: 16, or the element's size
}

// Products opens cublasLt; nil: it is not installed.
func (l *library) Products() (products, error) {
	cublasLt.Do(openProducts)
	if cublasLt.err != nil {
		return nil, cublasLt.err
	}
	c := &cublas{known: map[key]*multiplication{}}
	if err := lt(ltCreate, uintptr(unsafe.Pointer(&c.handle))); err != nil {
		return nil, err
	}
	return c, nil
}

// Offers says yes to the element types that the library adds up in float32, without its shorter ones.
func (c *cublas) Offers(m metal.MatMul) bool {
	if m.Element > metal.BFloat16 {
		return false
	}
	for _, n := range []int{m.M, m.N, m.K, m.Batch, m.A.Lead, m.B.Lead} {
		if n > math.MaxInt32 {
			return false
		}
	}
	return true
}

const (
	ltAlign    = 16
	rowsForAll = 4096 // the rows that an algorithm is chosen for
)

// Multiply has the library multiply. It stores matrices by columns, to which ours are turned: out' = b' a'.
func (c *cublas) Multiply(s stream, m metal.MatMul, a, b, out, work address, workBytes int64) error {
	size := m.Element.Size()
	k := key{m, ltAlign}
	bytes := func(n int) address { return address(n * size) }
	if (a|b|out|bytes(m.A.Lead)|bytes(m.B.Lead)|bytes(m.N)|bytes(m.A.Step)|bytes(m.B.Step)|bytes(m.M*m.N))%ltAlign != 0 {
		k.align = uint32(size)
	}
	c.mu.Lock()
	x := c.known[k]
	if x == nil {
		x = &multiplication{}
		c.known[k] = x
	}
	c.mu.Unlock()
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.desc == 0 && x.err == nil {
		x.err = x.choose(c, k, workBytes)
	}
	if x.err != nil {
		return x.err
	}
	one, zero := float32(1), float32(0)
	return lt(ltMatmul, c.handle, x.desc, uintptr(unsafe.Pointer(&one)), uintptr(b), x.left, uintptr(a), x.right,
		uintptr(unsafe.Pointer(&zero)), uintptr(out), x.out, uintptr(out), x.out, uintptr(unsafe.Pointer(&x.algorithm)),
		uintptr(work), uintptr(workBytes), uintptr(s))
}

// choose makes what the library wants to be told. The algorithm is the first choice for many rows, of those that do not
// cut sums into parts, if it will do: in which order numbers are added up is not to depend on how many rows and
// matrices there are.
func (x *multiplication) choose(c *cublas, k key, workBytes int64) error {
	const compute32, float32Type = 68, 0
	const transposeLeft, transposeRight, turned = 3, 4, 1
	const maxWork, reductionMask, alignLeft = 1, 3, 5
	m := k.MatMul
	types := []uintptr{0, 2, 14}
	typ := types[m.Element]
	if err := lt(ltDescCreate, uintptr(unsafe.Pointer(&x.desc)), compute32, float32Type); err != nil {
		return err
	}
	for i, t := range []bool{m.B.Turned, m.A.Turned} {
		op := int32(0)
		if t {
			op = turned
		}
		if err := lt(ltDescSet, x.desc, uintptr(transposeLeft+i), uintptr(unsafe.Pointer(&op)), 4); err != nil {
			return err
		}
	}
	layout := func(rows, batch int) (all [3]uintptr, err error) {
		all[0], err = ltLayout(typ, m.N, m.K, m.B, batch)
		if err == nil {
			all[1], err = ltLayout(typ, m.K, rows, m.A, batch)
		}
		if err == nil {
			all[2], err = ltLayout(types[m.Out()], m.N, rows, metal.Matrix{Lead: m.N, Step: rows * m.N}, batch)
		}
		return all, err
	}
	own, err := layout(m.M, m.Batch)
	if err != nil {
		return err
	}
	x.left, x.right, x.out = own[0], own[1], own[2]
	var preference uintptr
	if err := lt(ltPreferenceCreate, uintptr(unsafe.Pointer(&preference))); err != nil {
		return err
	}
	none := uint32(0)
	if err := lt(ltPreferenceSet, preference, maxWork, uintptr(unsafe.Pointer(&workBytes)), 8); err != nil {
		return err
	}
	if err := lt(ltPreferenceSet, preference, reductionMask, uintptr(unsafe.Pointer(&none)), 4); err != nil {
		return err
	}
	for i := range 4 {
		if err := lt(ltPreferenceSet, preference, uintptr(alignLeft+i), uintptr(unsafe.Pointer(&k.align)), 4); err != nil {
			return err
		}
	}
	shapes := [][3]uintptr{own}
	if !m.A.Turned { // else the distance between rows is that of so many columns
		if many, err := layout(rowsForAll, min(m.Batch, 2)); err == nil {
			shapes = [][3]uintptr{many, own}
		}
	}
	const resultBytes = 96
	for _, s := range shapes {
		result, n := make([]byte, resultBytes), int32(0)
		err = lt(ltHeuristic, c.handle, x.desc, s[0], s[1], s[2], s[2], preference, 1,
			uintptr(unsafe.Pointer(&result[0])), uintptr(unsafe.Pointer(&n)))
		if err != nil || n == 0 {
			continue
		}
		copy(x.algorithm[:], result)
		err = lt(ltCheck, c.handle, x.desc, own[0], own[1], own[2], own[2], uintptr(unsafe.Pointer(&x.algorithm)),
			uintptr(unsafe.Pointer(&result[0])))
		if err == nil {
			return nil
		}
	}
	if err == nil {
		err = fmt.Errorf("[matmul] cublasLt has no way for %+v", m)
	}
	return err
}

// ltLayout describes matrices that lie by columns: rows by cols of them, once they are turned if m says so.
func ltLayout(typ uintptr, rows, cols int, m metal.Matrix, batch int) (layout uintptr, err error) {
	const batchCount, batchStep = 5, 6
	if m.Turned {
		rows, cols = cols, rows
	}
	if err := lt(ltLayoutCreate, uintptr(unsafe.Pointer(&layout)), typ, uintptr(rows), uintptr(cols),
		uintptr(m.Lead)); err != nil || batch == 1 {
		return layout, err
	}
	n, step := int32(batch), int64(m.Step)
	if err := lt(ltLayoutSet, layout, batchCount, uintptr(unsafe.Pointer(&n)), 4); err != nil {
		return 0, err
	}
	return layout, lt(ltLayoutSet, layout, batchStep, uintptr(unsafe.Pointer(&step)), 8)
}
