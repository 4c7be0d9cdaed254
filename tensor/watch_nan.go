package tensor

import (
	"encoding/binary"
	"fmt"
	"math"
	"sync/atomic"
)

// checkNaN says that evaluations look at every result.
var checkNaN atomic.Bool

// CheckNaN switches the search for NaNs on or off for evaluations that begin after the call, and says what it was. Each
// op then runs by itself, and one fails with its line and the element's index whose output has a NaN and none of its
// inputs has one, or an infinity and none of its inputs has that or a NaN. It is for finding mistakes: evaluation is
// slow meanwhile.
func CheckNaN(on bool) (before bool) { return checkNaN.Swap(on) }

// inspect fails a call that made a NaN or an infinity, once it has run.
func (q *batcher) inspect(t *task) error {
	n := t.node
	if t.isView() {
		return nil
	}
	if err := q.drain(); err != nil {
		return err
	}
	if q.early != nil && *q.early != nil {
		return nil // it has failed in its own way
	}
	infinities, read := true, false // to look for, and whether the inputs were looked at
	for i := range n.out {
		at, what := n.out[i].notFinite(infinities)
		if at == nil {
			continue
		}
		if !read {
			read = true
			for _, v := range t.reads() {
				in := &v.Node.out[v.Out]
				if bad, _ := in.notFinite(false); bad != nil {
					return nil
				}
				if bad, _ := in.notFinite(true); bad != nil {
					infinities = false
				}
			}
			if !infinities {
				if at, what = n.out[i].notFinite(false); at == nil {
					continue
				}
			}
		}
		name := "the output"
		if len(n.out) > 1 {
			name = fmt.Sprintf("output %d", i)
		}
		return fmt.Errorf("%s has %s at index %v, and its inputs have none", name, what, at)
	}
	return nil
}

// notFinite is the index of the first element that is a NaN, or if asked for an infinity, and what it is; nil if there
// is none.
func (o *output) notFinite(infinities bool) (index Shape, what string) {
	s := o.spec
	if !s.DType.IsInexact() || s.Shape.Size() == 0 {
		return nil, ""
	}
	v, _, err := o.data.toHost(nobody, s, nil) // the program looks, not who is charged for arrays
	if err != nil {
		return nil, "" // whoever reads the output is told
	}
	b := make([]byte, s.NBytes())
	v.copyTo(b, s)
	size := s.DType.Size()
	for i := 0; i*size < len(b); i++ {
		v := realPart(s.DType, b[i*size:])
		if s.DType.IsComplex() {
			v = worse(v, realPart(Float32, b[i*size+4:]))
		}
		switch {
		case math.IsNaN(v):
			what = "a NaN"
		case infinities && math.IsInf(v, 1):
			what = "an infinity"
		case infinities && math.IsInf(v, -1):
			what = "a negative infinity"
		default:
			continue
		}
		index = make(Shape, len(s.Shape))
		for d := len(index) - 1; d >= 0; d-- {
			index[d] = i % s.Shape[d]
			i /= s.Shape[d]
		}
		return index, what
	}
	return nil, ""
}

// worse is a NaN if there is one, else an infinity if there is one.
func worse(a, b float64) float64 {
	if math.IsNaN(a) || math.IsInf(a, 0) && !math.IsNaN(b) {
		return a
	}
	return b
}

// realPart is an element of a floating-point dtype, a complex one's real part.
func realPart(d DType, b []byte) float64 {
	switch d {
	case Float64:
		return math.Float64frombits(binary.LittleEndian.Uint64(b))
	case Float16:
		return float64(Float16Value(binary.LittleEndian.Uint16(b)))
	case BFloat16:
		return float64(BFloat16Value(binary.LittleEndian.Uint16(b)))
	}
	return float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
}
