package drivertest

import (
	"fmt"
	"strings"

	"github.com/mlxlua/mlxlua/metal"
)

// manyText is a kernel of that many buffers, the last of which gets the sum of the others.
func manyText(name string, buffers int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%skernel void %s(", header, name)
	sum := "0"
	for i := range buffers - 1 {
		fmt.Fprintf(&b, "device const uint* x%d [[buffer(%d)]],\n  ", i, i)
		sum += fmt.Sprintf(" + x%d[0]", i)
	}
	fmt.Fprintf(&b, "device uint* out [[buffer(%d)]]) {\n  out[0] = %s;\n}", buffers-1, sum)
	return b.String()
}

// tileText is a kernel that declares that many words of threadgroup memory.
func tileText(name string, words int) string {
	return fmt.Sprintf(`%skernel void %s(device uint* out [[buffer(0)]], uint l [[thread_position_in_threadgroup]]) {
  threadgroup uint s[%d];
  s[%d - l] = l + 5;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[l] = s[%d - l];
}`, header, name, words, words-1, words-1)
}

// caseEdges: what Metal just permits works, and one more is refused, by the compiler or by the pipeline.
func caseEdges(b *bench) {
	for _, c := range []struct{ name, text, kernel string }{
		{"32 buffers", manyText("too_many", 32), "too_many"},
		{"32772 bytes of threadgroup memory", tileText("too_large", 8193), "too_large"},
	} {
		l, err := b.d.Library(bg, metal.Source{Label: c.name, Text: c.text})
		if err == nil {
			var p *metal.Pipeline
			if p, err = l.Pipeline(c.kernel); err == nil {
				cb := b.begin()
				cb.Encoder().SetPipeline(p)
				err = cb.Encoder().Dispatch(threads(1), threads(1))
				cb.Cancel(nil)
			}
		}
		must.Error(b.t, err, c.name)
	}

	l, err := b.d.Library(bg, metal.Source{Label: "many", Text: manyText("many", 31)})
	must.NoError(b.t, err)
	p, err := l.Pipeline("many")
	must.NoError(b.t, err)
	cb := b.begin()
	e := cb.Encoder()
	e.SetPipeline(p)
	x, out := b.words(0, 1, 2, 3, 4, 5, 6, 7), b.zeros(1)
	for i, q := range p.Params() {
		if q.Name == "out" {
			e.SetBuffer(i, out, 0)
		} else {
			e.SetBuffer(i, x, int64(4*(q.Index%8)))
		}
	}
	must.NoError(b.t, e.Dispatch(threads(1), threads(1)))
	b.finish(cb)
	sum := uint32(0)
	for i := range 30 {
		sum += uint32(i % 8)
	}
	must.Equal(b.t, []uint32{sum}, b.read(out))

	l, err = b.d.Library(bg, metal.Source{Label: "large", Text: tileText("large", 8192)})
	must.NoError(b.t, err)
	p, err = l.Pipeline("large")
	must.NoError(b.t, err)
	wide := b.zeros(1024)
	cb = b.begin()
	e = cb.Encoder()
	e.SetPipeline(p)
	e.SetBuffer(0, wide, 0)
	must.NoError(b.t, e.Dispatch(threads(1024), threads(1024)))
	b.finish(cb)
	must.Equal(b.t, []uint32{5, 1028}, []uint32{b.read(wide)[0], b.read(wide)[1023]})

	inline := make([]byte, 4096)
	inline[0] = 3
	target := b.zeros(4)
	cb = b.begin()
	e = cb.Encoder()
	p = b.kernel("store_at")
	e.SetPipeline(p)
	for i, q := range p.Params() {
		if q.Name == "at" {
			e.SetBytes(i, inline)
		} else {
			e.SetBuffer(i, target, 0)
		}
	}
	must.NoError(b.t, e.Dispatch(threads(1), threads(1)))
	b.finish(cb)
	must.Equal(b.t, []uint32{0, 0, 0, 1}, b.read(target))
	release(x, out, wide, target)
}
