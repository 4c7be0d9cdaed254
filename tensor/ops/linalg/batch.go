package linalg

import (
	"encoding/binary"
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mlxlua/mlxlua/tensor"
)

// workspace is one goroutine's memory for the numbers of one matrix after the other.
type workspace struct {
	floats  []float64
	complex []complex128
	ints    []int
	used    [3]int

	// The factors of matrix luOf, which the next matrix may use again.
	lu     []float64
	pivots []int
	luOf   int
}

// take returns n zeroed elements behind those that are used.
func take[T any](slab *[]T, used *int, n int) []T {
	if *used+n > len(*slab) {
		*slab, *used = make([]T, 2*len(*slab)+n), 0 // what was taken before keeps the old one
	}
	s := (*slab)[*used:][:n:n]
	*used += n
	clear(s)
	return s
}

func (w *workspace) reals(n int) []float64        { return take(&w.floats, &w.used[0], n) }
func (w *workspace) complexes(n int) []complex128 { return take(&w.complex, &w.used[1], n) }
func (w *workspace) integers(n int) []int         { return take(&w.ints, &w.used[2], n) }
func (w *workspace) load(x tensor.HostOperand, i, n int) []float64 {
	a := w.reals(n)
	load(a, x, i*n)
	return a
}

// finite is load, and an error if an element is NaN or infinite: there is no decomposition of such a matrix.
func (w *workspace) finite(x tensor.HostOperand, i, n int) ([]float64, error) {
	a := w.load(x, i, n)
	for _, v := range a {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, notFinite(x, i)
		}
	}
	return a, nil
}

// finiteComplex is finite for complex64 elements.
func (w *workspace) finiteComplex(x tensor.HostOperand, i, n int) ([]complex128, error) {
	a := w.complexes(n)
	loadComplex(a, x, i*n)
	for _, v := range a {
		if size := math.Abs(real(v)) + math.Abs(imag(v)); math.IsNaN(size) || math.IsInf(size, 0) {
			return nil, notFinite(x, i)
		}
	}
	return a, nil
}

func notFinite(x tensor.HostOperand, i int) error {
	return fmt.Errorf("%s holds NaN or an infinity", nameOf(x, i))
}

// nameOf names matrix i of an operand in errors.
func nameOf(x tensor.HostOperand, i int) string {
	s := x.Shape
	return fmt.Sprintf("matrix %d of shape %v", i, s[len(s)-2:])
}

// load reads elements of float32 or float64, from element number first on.
func load(a []float64, x tensor.HostOperand, first int) {
	if x.DType == tensor.Float64 {
		b := x.Bytes[8*first:]
		for i := range a {
			a[i] = math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
		}
		return
	}
	b := x.Bytes[4*first:]
	for i := range a {
		a[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:])))
	}
}

// loadComplex reads elements of complex64.
func loadComplex(a []complex128, x tensor.HostOperand, first int) {
	b := x.Bytes[8*first:]
	for i := range a {
		re := math.Float32frombits(binary.LittleEndian.Uint32(b[8*i:]))
		im := math.Float32frombits(binary.LittleEndian.Uint32(b[8*i+4:]))
		a[i] = complex(float64(re), float64(im))
	}
}

// store writes a as elements i*len(a) and on.
func store(x tensor.HostOperand, i int, a []float64) {
	if x.DType == tensor.Float64 {
		b := x.Bytes[8*i*len(a):]
		for k, v := range a {
			binary.LittleEndian.PutUint64(b[8*k:], math.Float64bits(v))
		}
		return
	}
	b := x.Bytes[4*i*len(a):]
	for k, v := range a {
		binary.LittleEndian.PutUint32(b[4*k:], math.Float32bits(float32(v)))
	}
}

// storeComplex writes a as complex64.
func storeComplex(x tensor.HostOperand, i int, a []complex128) {
	b := x.Bytes[8*i*len(a):]
	for k, v := range a {
		binary.LittleEndian.PutUint32(b[8*k:], math.Float32bits(float32(real(v))))
		binary.LittleEndian.PutUint32(b[8*k+4:], math.Float32bits(float32(imag(v))))
	}
}

// storeInts writes a as uint32.
func storeInts(x tensor.HostOperand, i int, a []int) {
	b := x.Bytes[4*i*len(a):]
	for k, v := range a {
		binary.LittleEndian.PutUint32(b[4*k:], uint32(v))
	}
}

const (
	// leastShare is how many multiplications a goroutine is worth.
	leastShare = 1 << 16
	// longMatrix is how many multiplications take so long that an evaluation which is stopped does not wait for them.
	longMatrix = 1 << 24
	// mostPerSecond is how many multiplications no processor does in a second: four times what the fastest function
	// here does.
	mostPerSecond = 16e9
)

// overBatch calls f for each of count matrices, each of which takes about cost multiplications: the cores share the
// batch. It stops where f fails, with the error of the first matrix that did, and where the evaluation is cancelled:
// between two matrices, or within one that takes long.
func overBatch(h *tensor.HostCall, count int, cost float64, f func(w *workspace, i int) error) error {
	if cost < longMatrix {
		return shareBatch(h, count, cost, f)
	}
	least := cost / (mostPerSecond * float64(runtime.GOMAXPROCS(0))) // of the first matrix, with all processors at it
	return h.Aside(time.Duration(least*float64(time.Second)), func() error { return shareBatch(h, count, cost, f) })
}

// shareBatch is overBatch on the caller's goroutine.
func shareBatch(h *tensor.HostCall, count int, cost float64, f func(w *workspace, i int) error) error {
	workers := min(runtime.GOMAXPROCS(0), count, 1+int(float64(count)*cost/leastShare))
	if workers <= 1 {
		return share(h, &workspace{}, 0, count, f)
	}
	var (
		next   atomic.Int64
		failed atomic.Int64 // the first matrix that failed, or count
		wait   sync.WaitGroup
		errs   = make([]error, workers)
		at     = make([]int, workers)
		block  = max(1, count/(8*workers))
	)
	failed.Store(int64(count))
	for k := range workers {
		wait.Go(func() {
			w := &workspace{}
			for {
				first := int(next.Add(int64(block))) - block
				if first >= int(failed.Load()) {
					return
				}
				for i := first; i < min(first+block, count); i++ {
					if err := share(h, w, i, i+1, f); err != nil {
						errs[k], at[k] = err, i
						for old := failed.Load(); int64(i) < old && !failed.CompareAndSwap(old, int64(i)); {
							old = failed.Load()
						}
						return
					}
				}
			}
		})
	}
	wait.Wait()
	first := -1
	for k, err := range errs {
		if err != nil && (first < 0 || at[k] < at[first]) {
			first = k
		}
	}
	if first < 0 {
		return nil
	}
	return errs[first]
}

// share calls f for the matrices from first to before end.
func share(h *tensor.HostCall, w *workspace, first, end int, f func(w *workspace, i int) error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true)) // an input may be a file's bytes
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("BUG: matrix %d: %v\n%s", first, r, debug.Stack())
		}
	}()
	for i := first; i < end; i++ {
		if err := h.Context().Err(); err != nil {
			return err
		}
		w.used = [3]int{}
		if err := f(w, i); err != nil {
			return err
		}
	}
	return nil
}
