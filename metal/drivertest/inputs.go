package drivertest

import (
	"fmt"

	"github.com/mlxlua/mlxlua/metal"
)

// caseInputs: what a kernel declares const it cannot write: a text that shows it does not compile, and a pointer that
// leads there when it runs is a fault that names kernel and input and changes nothing, nor does it keep the next launch
// from running.
func caseInputs(b *bench) {
	l, err := b.d.Library(bg, metal.Source{Label: "wrong_input", Text: kernelText["wrong_input"]})
	if err == nil {
		_, err = l.Pipeline("wrong_input")
	}
	must.ErrorContains(b.t, err, "write to 'in', which is an input")
	if b.drv.Info().Faults != metal.FaultsPlaced {
		return
	}
	x, out := b.words(1, 2, 3, 4), b.zeros(4)
	launch := func(way uint32) error {
		cb := b.begin()
		b.encode(cb, "change_input", threads(1), threads(1), buf("in", x), buf("out", out), word32("way", way))
		must.NoError(b.t, cb.Commit())
		return cb.Wait(bg)
	}
	for way := range uint32(4) { // behind a cast, in a structure, by an atomic operation, from an integer
		err := launch(way)
		for _, s := range []string{"change_input", "of in[0]", "which is an input"} {
			must.ErrorContains(b.t, err, s, "way %d", way)
		}
		must.Equal(b.t, []uint32{1, 2, 3, 4}, b.read(x), "way %d", way)
		must.Equal(b.t, make([]uint32, 4), b.read(out), "way %d", way)
	}
	must.NoError(b.t, launch(4))
	must.Equal(b.t, []uint32{7, 0, 0, 0}, b.read(out))
	release(x, out)
}

// caseViews: it is the binding that is read-only, not the memory: parts of a buffer, or all of it, may be an input and
// an output of one launch.
func caseViews(b *bench) {
	for _, at := range []int64{0, 32} { // the output's place in words
		x := b.zeros(64)
		p := b.kernel("next")
		cb := b.begin()
		e := cb.Encoder()
		e.SetPipeline(p)
		for i, q := range p.Params() {
			must.Equal(b.t, q.Name == "in", q.ReadOnly, q.Name)
			r := metal.Range{Buf: x, Bytes: 4 * 32}
			if q.Name == "out" {
				r.Offset = 4 * at
			}
			e.SetBufferRange(i, r)
		}
		must.NoError(b.t, e.Dispatch(threads(32), threads(32)))
		b.finish(cb)
		for i, got := range b.read(x) {
			want := uint32(0)
			if int64(i) >= at && int64(i) < at+32 {
				want = step(0)
			}
			must.Equal(b.t, want, got, "word %d", i)
		}
		x.Release()
	}
}

func init() {
	kernelText["wrong_input"] = header + `
kernel void wrong_input(device const uint* in [[buffer(0)]], device uint* out [[buffer(1)]]) {
  out[0] = in[0];
  *(device uint*)in = 1;
}`
	kernelText["change_input"] = header + fmt.Sprintf(`
struct Holder { device uint* p; };
kernel void change_input(device const uint* in [[buffer(0)]], device uint* out [[buffer(1)]],
                         constant uint& way [[buffer(2)]]) {
  device uint* p = way < 4 ? (device uint*)in : out;
  Holder holders[2] = {{out}, {p}};
  if (way == 0 || way == 4) *p = %[1]d;
  if (way == 1) holders[way].p[0] = %[1]d;
  if (way == 2) atomic_store_explicit((device atomic_uint*)p, %[1]du, memory_order_relaxed);
  if (way == 3) *(device uint*)((ulong)p + 4 * way - 12) = %[1]d;
}`, 7)
}
