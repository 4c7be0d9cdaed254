package cuda

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/metal/ptx"
)

// Gates, and copies and fills that the library has no call for or that may be skipped, are kernels of the driver's own.
const helperText = `#include <metal_stdlib>
using namespace metal;

// into becomes 1 if a word is not 0, or if it is 1 already and this is not the first range of words.
kernel void gate(device uint* into, device const uint* words, constant uint& count, constant uint& first) {
  uint shut = first != 0 ? 0u : into[0];
  for (uint i = 0; i < count; i++) {
    shut |= words[i] != 0 ? 1u : 0u;
  }
  into[0] = shut;
}
kernel void fill(device uint4* to, constant uint4& v, uint i [[thread_position_in_grid]]) { to[i] = v; }
kernel void fill_bytes(device uchar* to, device const uchar* pattern, constant uint& period,
                       uint i [[thread_position_in_grid]]) {
  to[i] = pattern[i % period];
}
kernel void copy(device uint4* to, device const uint4* from, uint i [[thread_position_in_grid]]) { to[i] = from[i]; }
kernel void copy_bytes(device uchar* to, device const uchar* from, uint i [[thread_position_in_grid]]) {
  to[i] = from[i];
}
`

// helpers are the driver's kernels, made when one is first asked for.
type helpers struct {
	mu     sync.Mutex
	module *module
	index  map[string]int
}

func (d *Driver) helper(name string) (*kernel, error) {
	h := &d.helpers
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.module == nil {
		m, err := d.Compile(context.Background(), metal.Source{Label: "cuda", Text: helperText,
			Options: metal.Options{Portable: true}})
		if err != nil {
			return nil, fmt.Errorf("[cuda] BUG: %w", err)
		}
		h.module, h.index = m.(*module), map[string]int{}
		for i, n := range m.Names() {
			h.index[n] = i
		}
	}
	i := h.index[name]
	if x := h.module.kernels[i].Load(); x != nil {
		return x, nil
	}
	if _, err := h.module.Kernel(i); err != nil {
		return nil, fmt.Errorf("[cuda] BUG: %w", err)
	}
	return h.module.kernels[i].Load(), nil
}

// help makes a launch of a helper: buffers are addresses with lengths, the rest comes with it.
func (q *queue) help(j *job, k int, c *metal.Command, name string, threads int64, buffers [][2]uint64,
	inline ...[]byte) error {
	x, err := q.d.helper(name)
	if err != nil {
		return err
	}
	const group = 256
	n := len(buffers) + len(inline)
	a := ptx.Arguments{Grid: [3]int{int(threads), 1, 1}, Threadgroup: [3]int{int(min(threads, group)), 1, 1},
		Addresses: make([]uint64, n), Lengths: make([]uint64, n), Inline: make([][]byte, n)}
	w := wants{make([]int, n), make([]int, n)}
	for i := range n {
		if w.align[i], w.inline[i] = fullAlign, -1; i < len(buffers) {
			a.Addresses[i], a.Lengths[i] = buffers[i][0], buffers[i][1]
			w.align[i] = int((a.Addresses[i] | fullAlign) & -(a.Addresses[i] | fullAlign))
			continue
		}
		b := inline[i-len(buffers)]
		a.Inline[i], a.Lengths[i], w.inline[i] = b, uint64(len(b)), len(b)
	}
	e, err := x.entryFor(q.d, w)
	if err != nil {
		return err
	}
	q.words(j, k, c, &a)
	return q.launches(k, x, e, &a)
}

func word(v uint32) []byte { return binary.LittleEndian.AppendUint32(nil, v) }

// mustBeKernel reports whether a command has to be a kernel: it is not always to run, or is in a graph of kernels.
func (j *job) mustBeKernel(k int, c *metal.Command) bool {
	return j.chain != nil || c.Unless.Buf != nil || j.partOf(k) != nil
}

// mostAtOnce is how many threads of a helper there are at once, a multiple of all periods in use.
const mostAtOnce = 1 << 30

func (q *queue) copies(j *job, k int, c *metal.Command) error {
	if err := inside(c.Src); err != nil {
		return err
	}
	if err := inside(c.Dst); err != nil {
		return err
	}
	to, from, n := addressOf(c.Dst), addressOf(c.Src), min(c.Src.Bytes, c.Dst.Bytes)
	if !j.mustBeKernel(k, c) {
		q.steps = append(q.steps, step{command: k, do: func(s stream) error { return q.d.lib.Copy(s, to, from, n) }})
		return nil
	}
	name, unit := "copy", int64(fullAlign)
	if (to|from|uint64(n))%fullAlign != 0 {
		name, unit = "copy_bytes", 1
	}
	for at := int64(0); at < n; at += mostAtOnce * unit {
		piece, by := min(n-at, mostAtOnce*unit), uint64(at)
		err := q.help(j, k, c, name, piece/unit, [][2]uint64{{to + by, uint64(piece)}, {from + by, uint64(piece)}})
		if err != nil {
			return err
		}
	}
	return nil
}

func (q *queue) fills(j *job, k int, c *metal.Command) error {
	if err := inside(c.Dst); err != nil {
		return err
	}
	to, n, p := addressOf(c.Dst), c.Dst.Bytes, c.Pattern
	if len(p) == 0 || n == 0 {
		return nil
	}
	one := true // all its bytes are the same
	for _, b := range p {
		one = one && b == p[0]
	}
	lib := q.d.lib
	switch {
	case one && !j.mustBeKernel(k, c):
		v := p[0]
		q.steps = append(q.steps, step{command: k, do: func(s stream) error { return lib.Fill8(s, to, n, v) }})
		return nil
	case len(p) == wordBytes && (to|uint64(n))%wordBytes == 0 && !j.mustBeKernel(k, c):
		v := binary.LittleEndian.Uint32(p)
		q.steps = append(q.steps, step{command: k, do: func(s stream) error { return lib.Fill32(s, to, n/wordBytes, v) }})
		return nil
	case fullAlign%len(p) == 0 && (to|uint64(n))%fullAlign == 0:
		var v []byte
		for len(v) < fullAlign {
			v = append(v, p...)
		}
		for at := int64(0); at < n; at += mostAtOnce * fullAlign {
			piece := min(n-at, mostAtOnce*fullAlign)
			if err := q.help(j, k, c, "fill", piece/fullAlign, [][2]uint64{{to + uint64(at), uint64(piece)}}, v); err != nil {
				return err
			}
		}
		return nil
	}
	pattern, whole := q.stage(j, p), int64(mostAtOnce/len(p)*len(p))
	for at := int64(0); at < n; at += whole {
		piece := min(n-at, whole)
		err := q.help(j, k, c, "fill_bytes", piece, [][2]uint64{{to + uint64(at), uint64(piece)},
			{pattern, uint64(len(p))}}, word(uint32(len(p))))
		if err != nil {
			return err
		}
	}
	return nil
}

// gates has a word set where one of the words is set, or the one that the gate itself is behind.
func (q *queue) gates(j *job, k int, c *metal.Command) error {
	ranges := c.Words
	if c.Unless.Buf != nil {
		ranges = append(ranges[:len(ranges):len(ranges)], c.Unless)
	}
	into, first := [2]uint64{addressOf(c.Dst), wordBytes}, uint32(1)
	if len(ranges) == 0 {
		ranges = []metal.Range{{Buf: c.Dst.Buf, Offset: c.Dst.Offset}}
	}
	for _, r := range ranges {
		if err := inside(r); err != nil {
			return err
		}
		words := [2]uint64{addressOf(r), uint64(r.Bytes)}
		n := word(uint32(r.Bytes / wordBytes))
		if err := q.help(j, k, c, "gate", 1, [][2]uint64{into, words}, n, word(first)); err != nil {
			return err
		}
		first = 0
	}
	return nil
}
