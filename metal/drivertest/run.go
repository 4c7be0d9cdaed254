// Package drivertest is the conformance suite that every driver passes, and Fake, a driver that records command buffers
// and completes them when the test says so.
package drivertest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/mlxlua/mlxlua/metal"
)

// Run holds a driver against the contract of metal.Driver. Open makes a new driver for each part of the suite; the
// suite closes it. The kernels are Metal Shading Language as users write it.
func Run(t *testing.T, open func(*testing.T) metal.Driver) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { c.on(t, open(t)) })
	}
}

// Names lists the parts of the suite.
func Names() []string {
	var names []string
	for _, c := range cases {
		names = append(names, c.name)
	}
	return names
}

// Check holds a driver against one part of the suite, in a program that is no test.
func Check(name string, open func() (metal.Driver, error)) error {
	for _, c := range cases {
		if c.name == name {
			drv, err := open()
			if err != nil {
				return err
			}
			var r report
			r.collect(func() { c.on(&r, drv) })
			return errors.Join(r.errs...)
		}
	}
	return fmt.Errorf("the suite has no part %q", name)
}

// report is a tester for programs.
type report struct{ errs []error }

// over is what FailNow ends the part with.
type over struct{}

func (r *report) Errorf(format string, args ...any) {
	r.errs = append(r.errs, fmt.Errorf(format, args...))
}
func (r *report) FailNow() { panic(over{}) }

// collect runs a part until it fails.
func (r *report) collect(f func()) {
	defer func() {
		if v := recover(); v != nil && v != any(over{}) {
			r.Errorf("panic: %v", v)
		}
	}()
	f()
}

// testCase is one part of the suite.
type testCase struct {
	name     string
	validate []bool // once with each; none means without and with validation
	wrap     func(metal.Driver) metal.Driver
	run      func(*bench)
}

// on runs the case on a driver.
func (c testCase) on(t tester, drv metal.Driver) {
	if c.wrap != nil {
		drv = c.wrap(drv)
	}
	d, err := metal.NewDevice(drv, metal.DeviceOptions{})
	must.NoError(t, err)
	defer func() { must.NoError(t, d.Close()) }()
	modes := c.validate
	if modes == nil {
		modes = []bool{false, true}
	}
	b := &bench{t: t, d: d, drv: drv}
	defer func() { // a case that failed must not leave an endless kernel for Close to wait for
		for _, cb := range b.begun {
			cb.Cancel(nil)
		}
	}()
	for _, v := range modes {
		d.SetValidate(v)
		c.run(b)
	}
}

// bench is a device with what the cases do again and again.
type bench struct {
	t     tester
	d     *metal.Device
	drv   metal.Driver
	begun []*metal.CommandBuffer
}

var bg = context.Background()

// words allocates a buffer of 32-bit words.
func (b *bench) words(v ...uint32) *metal.Buffer {
	var raw []byte
	for _, x := range v {
		raw = binary.LittleEndian.AppendUint32(raw, x)
	}
	buf, err := b.d.AllocCopy(bg, raw, nil)
	must.NoError(b.t, err)
	return buf
}

// zeros allocates n zero words.
func (b *bench) zeros(n int) *metal.Buffer { return b.words(make([]uint32, n)...) }

// floats allocates a buffer of float32.
func (b *bench) floats(v ...float32) *metal.Buffer {
	u := make([]uint32, len(v))
	for i, x := range v {
		u[i] = math.Float32bits(x)
	}
	return b.words(u...)
}

// contents is a copy of a buffer's bytes.
func (b *bench) contents(buf *metal.Buffer) []byte {
	raw := make([]byte, buf.Len())
	must.NoError(b.t, buf.ReadBytes(raw, 0))
	return raw
}

// read is a buffer's words, and readFloats the same as float32.
func (b *bench) read(buf *metal.Buffer) []uint32 {
	raw := b.contents(buf)
	out := make([]uint32, len(raw)/4)
	for i := range out {
		out[i] = binary.LittleEndian.Uint32(raw[4*i:])
	}
	return out
}

func (b *bench) readFloats(buf *metal.Buffer) []float32 {
	var out []float32
	for _, u := range b.read(buf) {
		out = append(out, math.Float32frombits(u))
	}
	return out
}

// kernel compiles one of the suite's kernels.
func (b *bench) kernel(name string) *metal.Pipeline {
	l, err := b.d.Library(bg, metal.Source{Label: name, Text: kernelText[name]})
	must.NoError(b.t, err)
	p, err := l.Pipeline(name)
	must.NoError(b.t, err)
	return p
}

// arg binds one parameter by name.
type arg struct {
	name string
	buf  *metal.Buffer
	at   int64
	raw  []byte
	tg   int
}

func buf(name string, b *metal.Buffer) arg { return arg{name: name, buf: b} }

func word32(name string, v uint32) arg {
	return arg{name: name, raw: binary.LittleEndian.AppendUint32(nil, v)}
}

// encode records a dispatch.
func (b *bench) encode(cb *metal.CommandBuffer, name string, grid, tg metal.Size, args ...arg) {
	p := b.kernel(name)
	e := cb.Encoder()
	e.SetPipeline(p)
	for _, a := range args {
		i := -1
		for k, q := range p.Params() {
			if q.Name == a.name {
				i = k
			}
		}
		must.True(b.t, i >= 0, "%s has no parameter %s", name, a.name)
		switch {
		case a.buf != nil:
			e.SetBuffer(i, a.buf, a.at)
		case a.raw != nil:
			e.SetBytes(i, a.raw)
		default:
			e.SetThreadgroupBytes(i, a.tg)
		}
	}
	must.NoError(b.t, e.Dispatch(grid, tg))
}

// finish commits and waits.
func (b *bench) finish(cb *metal.CommandBuffer) {
	must.NoError(b.t, cb.Commit())
	must.NoError(b.t, cb.Wait(bg))
}

// chained begins the next command buffer of a chain.
func (b *bench) chained(chain *metal.Chain) *metal.CommandBuffer {
	cb := chain.NewCommandBuffer(b.d, 0, "drivertest")
	b.begun = append(b.begun, cb)
	return cb
}

func (b *bench) begin() *metal.CommandBuffer {
	cb := b.d.NewCommandBuffer(0, "drivertest")
	b.begun = append(b.begun, cb)
	return cb
}

func threads(n int) metal.Size { return metal.Size{X: n, Y: 1, Z: 1} }

const header = "#include <metal_stdlib>\nusing namespace metal;\n"

// kernelText is the suite's kernels.
var kernelText = map[string]string{
	"add": header + `
kernel void add(device const float* a [[buffer(0)]], device const float* b [[buffer(1)]],
                device float* out [[buffer(2)]], constant uint& n [[buffer(3)]],
                uint i [[thread_position_in_grid]]) {
  if (i < n) {
    out[i] = a[i] + b[i];
  }
}`,
	"twice_plus_one": header + `
kernel void twice_plus_one(device uint* x [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  x[i] = 2 * x[i] + 1;
}`,
	"next": header + `
kernel void next(device const uint* in [[buffer(0)]], device uint* out [[buffer(1)]],
                 uint i [[thread_position_in_grid]]) {
  out[i] = in[i] * 1664525u + 1013904223u;
}`,
	"place": header + `
kernel void place(device uint* out [[buffer(0)]], uint3 p [[thread_position_in_grid]],
                  uint3 size [[threads_per_grid]], uint3 l [[thread_position_in_threadgroup]],
                  uint3 g [[threadgroup_position_in_grid]], uint3 tg [[threads_per_threadgroup]]) {
  uint at = 4 * ((p.z * size.y + p.y) * size.x + p.x);
  out[at] = p.x | (p.y << 8) | (p.z << 16);
  out[at + 1] = l.x | (l.y << 8) | (l.z << 16);
  out[at + 2] = g.x | (g.y << 8) | (g.z << 16);
  out[at + 3] = tg.x | (tg.y << 8) | (tg.z << 16);
}`,
	"turn": header + `
kernel void turn(device const uint* in [[buffer(0)]], device uint* out [[buffer(1)]],
                 uint l [[thread_position_in_threadgroup]], uint i [[thread_position_in_grid]],
                 uint n [[threads_per_threadgroup]]) {
  threadgroup uint s[256];
  s[l] = in[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = s[n - 1 - l];
}`,
	"turn_dynamic": header + `
kernel void turn_dynamic(device const uint* in [[buffer(0)]], device uint* out [[buffer(1)]],
                         threadgroup uint* s [[threadgroup(0)]], uint l [[thread_position_in_threadgroup]],
                         uint i [[thread_position_in_grid]], uint n [[threads_per_threadgroup]]) {
  s[l] = in[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = s[n - 1 - l];
}`,
	"tally": header + `
kernel void tally(device atomic_uint* count [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  atomic_fetch_add_explicit(&count[i % 3], i, memory_order_relaxed);
}`,
	// These never end, though no rule of arithmetic on wrapping numbers need see that: a device may refuse kernels that
	// wait for memory to change.
	"spin": header + `
kernel void spin(device uint* flag [[buffer(0)]]) {
  uint x = flag[0];
  while (x != 7) {
    x = 2 * x + 2;
  }
  flag[0] = x;
}`,
	"count_forever": header + `
kernel void count_forever(device uint* x [[buffer(0)]], uint t [[thread_position_in_grid]]) {
  uint v = 2 * x[t];
  for (uint i = 0; v != 7; i++) {
    x[64 + t] = i;
    v = 6 * i;
  }
}`,
	"store_at": header + `
kernel void store_at(device uint* target [[buffer(0)]], constant uint& at [[buffer(1)]]) {
  target[at] = 1;
}`,
	"load_at": header + `
kernel void load_at(device const uint* origin [[buffer(0)]], constant uint& at [[buffer(1)]],
                    device uint* out [[buffer(2)]]) {
  out[0] = origin[at];
}`,
}
