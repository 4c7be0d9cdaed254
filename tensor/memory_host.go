package tensor

import (
	"context"

	"github.com/mlxlua/mlxlua/metal"
)

// HostView is an array's elements for the host to read: the element at index i stands in Bytes at OffsetBytes plus the
// sum of i times Strides times the element's size. Bytes are the device's memory where the host can address it, else a
// copy of the range in which the elements lie. They must not be changed.
type HostView struct {
	Bytes       []byte
	OffsetBytes int64
	Strides     []int

	buf *metal.Buffer // in which Bytes lie, or nil
}

// Guard calls f, which reads the view's bytes. Where they are those of a file that cannot be read any more, that is an
// error.
func (v HostView) Guard(f func() error) error { return v.buf.Guard(f) }

// Contiguous reports whether elements of that shape lie in row-major order without gaps.
func (v HostView) Contiguous(s Shape) bool { return contiguous(s, v.Strides) }

// toHost gives the host the elements of that spec, whose commands have run. A copy is charged to the account, nil for
// none, until release is called.
func (v View) toHost(ctx context.Context, s Spec, a *metal.Account) (h HostView, release func(), err error) {
	h, release = HostView{OffsetBytes: v.OffsetBytes, Strides: v.Strides}, func() {}
	switch {
	case v.buf == nil:
		h.Bytes = v.inline
	case v.buf.Host() != nil:
		h.Bytes, h.buf = v.buf.Host(), v.buf
	default:
		low, high := v.span(s)
		if release, err = v.buf.Device().Reserve(ctx, a, high-low); err != nil {
			return HostView{}, nil, err
		}
		if h.Bytes, err = hostBytes(v.buf, v.OffsetBytes+low, high-low); err != nil {
			release()
			return HostView{}, nil, err
		}
		h.OffsetBytes = -low
	}
	return h, release, nil
}

// hostBytes is n bytes of a buffer for the host to read: in place, or a copy.
func hostBytes(buf *metal.Buffer, at, n int64) ([]byte, error) {
	if b := buf.Host(); b != nil {
		return b[at:][:n:n], nil
	}
	b := make([]byte, n)
	return b, buf.ReadBytes(b, at)
}

// copyTo copies the elements of a view into row-major order.
func (v HostView) copyTo(dst []byte, s Spec) {
	size := s.DType.Size()
	src := v.Bytes
	if v.Contiguous(s.Shape) {
		copy(dst, src[v.OffsetBytes:][:len(dst)])
		return
	}
	nd := len(s.Shape)
	index := make([]int, nd)
	at := v.OffsetBytes
	inner, step := s.Shape[nd-1], int64(v.Strides[nd-1]*size)
	for len(dst) > 0 {
		p := at
		for range inner {
			copy(dst[:size], src[p:])
			dst, p = dst[size:], p+step
		}
		d := nd - 2
		for ; d >= 0; d-- {
			index[d]++
			at += int64(v.Strides[d] * size)
			if index[d] < s.Shape[d] {
				break
			}
			at -= int64(s.Shape[d] * v.Strides[d] * size)
			index[d] = 0
		}
		if d < 0 {
			return
		}
	}
}
