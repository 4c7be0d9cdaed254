package apple_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/metal/apple"
	"github.com/mlxlua/mlxlua/metal/apple/fake"
)

var bg = context.Background()

// bench is a device on a machine.
type bench struct {
	t  *testing.T
	d  *metal.Device
	rt *fake.Runtime
}

func on(t *testing.T, m fake.Machine) *bench {
	drv, rt := open(t, m)
	d, err := metal.NewDevice(drv, metal.DeviceOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return &bench{t, d, rt}
}

func (b *bench) words(v ...uint32) *metal.Buffer {
	var raw []byte
	for _, x := range v {
		raw = binary.LittleEndian.AppendUint32(raw, x)
	}
	buf, err := b.d.AllocCopy(bg, raw, nil)
	require.NoError(b.t, err)
	b.t.Cleanup(buf.Release)
	return buf
}

func (b *bench) read(buf *metal.Buffer) []uint32 {
	raw := make([]byte, buf.Len())
	require.NoError(b.t, buf.ReadBytes(raw, 0))
	var out []uint32
	for ; len(raw) > 0; raw = raw[4:] {
		out = append(out, binary.LittleEndian.Uint32(raw))
	}
	return out
}

func (b *bench) pipeline(name, text string, o metal.Options) (*metal.Pipeline, error) {
	l, err := b.d.Library(bg, metal.Source{Label: name, Text: text, Options: o})
	require.NoError(b.t, err)
	return l.Pipeline(name)
}

// twice is a kernel that doubles and adds 1.
const twice = `kernel void twice(device uint* x [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  x[i] = 2 * x[i] + 1;
}`

// run dispatches the kernel twice, and waits.
func (b *bench) run(x *metal.Buffer, queue, threads int) error {
	p, err := b.pipeline("twice", twice, metal.Options{})
	require.NoError(b.t, err)
	cb := b.d.NewCommandBuffer(queue, "test")
	cb.Encoder().SetPipeline(p)
	cb.Encoder().SetBuffer(0, x, 0)
	grid := metal.Size{X: int(x.Len() / 4), Y: 1, Z: 1}
	if err := cb.Encoder().Dispatch(grid, metal.Size{X: threads, Y: 1, Z: 1}); err != nil {
		cb.Cancel(err)
		return err
	}
	require.NoError(b.t, cb.Commit())
	return cb.Wait(bg)
}

// TestRefused: what the driver was not made for is refused, by its name.
func TestRefused(t *testing.T) {
	for says, change := range map[string]func(m *fake.Machine){
		"macOS 13.6: kernels need macOS 14": func(m *fake.Machine) { m.Version = "13.6" },
		"runs translated":                   func(m *fake.Machine) { m.Translated = true },
		"no GPU was found":                  func(m *fake.Machine) { m.NoDevice = true },
		"AMD Radeon Pro 5500M: kernels need a GPU of Apple's": func(m *fake.Machine) {
			m.Name, m.Family, m.Split = "AMD Radeon Pro 5500M", 0, true
		},
		"Apple A12X: kernels need a GPU of Apple's, from the M1 on": func(m *fake.Machine) {
			m.Name, m.Family = "Apple A12X", 1005
		},
		"a discrete one: kernels need": func(m *fake.Machine) { m.Name, m.Split = "a discrete one", true },
		"in buffers of 0":              func(m *fake.Machine) { m.MostBuffer = 0 },
	} {
		m := fake.M1
		change(&m)
		rt := fake.New(m)
		d, err := apple.New(rt)
		require.Nil(t, d)
		require.ErrorContains(t, err, says)
		require.Empty(t, rt.Problems())
		require.Empty(t, rt.Leaks())
	}
	m := fake.M1
	m.NoDefault = true
	d, _ := open(t, m) // in a program without a screen
	require.Equal(t, "Apple M1", d.Info().Name)
}

// TestInfo: the device says what it cannot do.
func TestInfo(t *testing.T) {
	d, _ := open(t, fake.M1)
	i := d.Info()
	require.Equal(t, int64(5<<30), i.Memory)
	require.Equal(t, int64(4<<30), i.Limits.MaxBufferBytes)
	require.Equal(t, "metal", i.Kind)
	require.Equal(t, metal.FaultsUnchecked, i.Faults)
	require.Equal(t, metal.StopsBetween, i.Stops)
	require.False(t, i.Skips || i.Float64 || i.PairDots || i.TracksWrites || i.Host)
	require.Equal(t, "apple-1, macOS 15.1, applegpu_g13g, MSL 3.1", i.Version)
}

// TestMath: which arithmetic Metal is told to use, in both ways that there are of saying that: kernels of ours are
// precise, and nobody's may take it that there are no infinities.
func TestMath(t *testing.T) {
	for _, version := range []string{"14.0", "15.1", "26.0"} {
		m := fake.M1
		m.Version = version
		b := on(t, m)
		for _, o := range []metal.Options{{}, {MathMode: metal.MathRelaxed}, {MathMode: metal.MathSafe}, {Portable: true}} {
			_, err := b.pipeline("twice", twice, o)
			require.NoError(t, err, version)
		}
		modes, fast := b.rt.MathModes()
		require.Equal(t, []bool{false, false, false, false}, fast, version)
		if version != "14.0" {
			require.Equal(t, [][2]int64{{1, 0}, {1, 1}, {0, 1}, {0, 1}}, modes, version)
		}
	}
}

// TestFailure: an error of Metal's has its text, its number and the kernel's name; what comes later runs, on a queue
// that has not failed.
func TestFailure(t *testing.T) {
	b := on(t, fake.M1)
	x := b.words(0, 0, 0)
	b.rt.Fail(2, "Caused GPU Hang Error (00000003:kIOGPUCommandBufferCallbackErrorHang)")
	err := b.run(x, 0, 1)
	require.ErrorContains(t, err, "kernel twice: Caused GPU Hang Error")
	require.ErrorContains(t, err, "(Metal error 2)")
	require.Equal(t, []uint32{0, 0, 0}, b.read(x))
	require.NoError(t, b.run(x, 0, 1))
	require.Equal(t, []uint32{1, 1, 1}, b.read(x))
	// Of several command buffers that Metal has those behind the first fail with it, and no more.
	b.rt.Fail(3, "Caused GPU Address Fault Error")
	var all []*metal.CommandBuffer
	p, err := b.pipeline("twice", twice, metal.Options{})
	require.NoError(t, err)
	for range 20 {
		cb := b.d.NewCommandBuffer(0, "test")
		cb.Encoder().SetPipeline(p)
		cb.Encoder().SetBuffer(0, x, 0)
		require.NoError(t, cb.Encoder().Dispatch(metal.Size{X: 3, Y: 1, Z: 1}, metal.Size{X: 1, Y: 1, Z: 1}))
		require.NoError(t, cb.Commit())
		all = append(all, cb)
	}
	failed := 0
	for _, cb := range all {
		if err := cb.Wait(bg); err != nil {
			require.True(t, strings.Contains(err.Error(), "Address Fault") || strings.Contains(err.Error(), "Ignored"), err)
			failed++
		}
	}
	require.LessOrEqual(t, failed, 3)
	require.GreaterOrEqual(t, failed, 1)
	require.NoError(t, b.run(x, 0, 1))
}

// TestLost: a device that is removed is lost, and says so from then on.
func TestLost(t *testing.T) {
	b := on(t, fake.M1)
	x := b.words(0)
	b.rt.Fail(11, "Device removed")
	require.ErrorContains(t, b.run(x, 0, 1), "the device is lost")
	require.ErrorContains(t, b.run(x, 1, 1), "the device is lost")
	_, err := b.d.Alloc(bg, 1<<24)
	require.ErrorContains(t, err, "the device is lost")
}

// TestIgnored: a GPU that ignores one command buffer after another is lost.
func TestIgnored(t *testing.T) {
	b := on(t, fake.M1)
	x := b.words(0)
	for range 3 {
		b.rt.Fail(4, "Ignored (for causing prior/excessive GPU errors)")
		require.NotContains(t, b.run(x, 0, 1).Error(), "lost")
	}
	b.rt.Fail(4, "Ignored (for causing prior/excessive GPU errors)")
	require.ErrorContains(t, b.run(x, 0, 1), "the device is lost")
}

// TestPageFault: a kernel that leaves its buffers fails its command buffer, with its name.
func TestPageFault(t *testing.T) {
	b := on(t, fake.M1)
	p, err := b.pipeline("far", `kernel void far(device uint* x [[buffer(0)]]) { x[1 << 30] = 1; }`, metal.Options{})
	require.NoError(t, err)
	cb := b.d.NewCommandBuffer(0, "test")
	cb.Encoder().SetPipeline(p)
	cb.Encoder().SetBuffer(0, b.words(1), 0)
	require.NoError(t, cb.Encoder().Dispatch(metal.Size{X: 1, Y: 1, Z: 1}, metal.Size{X: 1, Y: 1, Z: 1}))
	require.NoError(t, cb.Commit())
	require.ErrorContains(t, cb.Wait(bg), "kernel far: Caused GPU Address Fault")
}

// TestThreads: what a pipeline permits is a limit, but kernels of ours get what the device permits.
func TestThreads(t *testing.T) {
	m := fake.M1
	m.Threads = 384
	b := on(t, m)
	x := b.words(make([]uint32, 1000)...)
	require.NoError(t, b.run(x, 0, 384))
	require.ErrorContains(t, b.run(x, 0, 385), "more than the limit of 384 threads")
	p, err := b.pipeline("twice", twice, metal.Options{Portable: true})
	require.NoError(t, err)
	require.Equal(t, 1024, p.Reflection().MaxThreads)
}

// TestFunctionConstants: values of all types that a function constant may have.
func TestFunctionConstants(t *testing.T) {
	b := on(t, fake.M1)
	var declared, body strings.Builder
	var list []metal.Constant
	var want []float32
	for i, c := range []struct {
		kind   string
		values []any
		as     string // %s: the constant
		want   float32
	}{
		{"float", []any{1.5}, "%s", 1.5}, {"half", []any{2.0}, "%s", 2}, {"bfloat", []any{3.0}, "%s", 3},
		{"int", []any{-4.0}, "%s", -4}, {"uint", []any{5.0}, "%s", 5}, {"short", []any{-6.0}, "%s", -6},
		{"ushort", []any{7.0}, "%s", 7}, {"char", []any{-8.0}, "%s", -8}, {"uchar", []any{9.0}, "%s", 9},
		{"bool", []any{true}, "%s", 1}, {"long", []any{"-10"}, "%s", -10}, {"ulong", []any{"11"}, "%s", 11},
		{"float3", []any{1.0, 2.0, 3.5}, "%[1]s.x + %[1]s.y + %[1]s.z", 6.5},
		{"uint4", []any{1.0, 2.0, 3.0, 4.0}, "%[1]s.x + %[1]s.w", 5},
		{"bool2", []any{false, true}, "(%[1]s.x ? 10 : 0) + (%[1]s.y ? 1 : 0)", 1},
		{"half2", []any{0.5, 0.25}, "%[1]s.x - %[1]s.y", 0.25},
	} {
		name := fmt.Sprintf("c%d", i)
		fmt.Fprintf(&declared, "constant %s %s [[function_constant(%d)]];\n", c.kind, name, 3*i)
		fmt.Fprintf(&body, "  out[%d] = float(%s);\n", i, fmt.Sprintf(c.as, name))
		list, want = append(list, metal.Constant{Name: name, Values: c.values}), append(want, c.want)
	}
	constants, err := metal.ConstantsText(list)
	require.NoError(t, err)
	p, err := b.pipeline("all", declared.String()+"kernel void all(device float* out [[buffer(0)]]) {\n"+body.String()+"}",
		metal.Options{Constants: constants})
	require.NoError(t, err)
	out := b.words(make([]uint32, len(want))...)
	cb := b.d.NewCommandBuffer(0, "test")
	cb.Encoder().SetPipeline(p)
	cb.Encoder().SetBuffer(0, out, 0)
	require.NoError(t, cb.Encoder().Dispatch(metal.Size{X: 1, Y: 1, Z: 1}, metal.Size{X: 1, Y: 1, Z: 1}))
	require.NoError(t, cb.Commit())
	require.NoError(t, cb.Wait(bg))
	for i, v := range b.read(out) {
		require.Equal(t, want[i], math.Float32frombits(v), "constant %d", i)
	}
}

// TestMapped: kernels read a file's pages where they lie; where Metal refuses them, or an offset suits no scalar, the
// caller copies.
func TestMapped(t *testing.T) {
	path := filepath.Join(t.TempDir(), "weights")
	raw := make([]byte, 100_004)
	for i := range raw {
		raw[i] = byte(i * 7)
	}
	require.NoError(t, os.WriteFile(path, raw, 0o600))
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	m := fake.M1
	b := on(t, m)
	var buf *metal.Buffer
	for i := 0; buf == nil; i++ { // where a page is less than Apple's a file may begin anywhere
		require.Less(t, i, 1000, "no mapping begins with a page of Apple's")
		mapping, err := metal.MapFile(f)
		require.NoError(t, err)
		defer mapping.Release()
		if buf, err = b.d.MappedBuffer(mapping, 16, 40_000); err != nil {
			require.ErrorIs(t, err, metal.ErrNotMapped)
			continue
		}
		_, err = b.d.MappedBuffer(mapping, 3, 8)
		require.ErrorIs(t, err, metal.ErrNotMapped)
		m.Refuses = true
		_, err = on(t, m).d.MappedBuffer(mapping, 16, 40_000)
		require.ErrorIs(t, err, metal.ErrNotMapped)
	}
	out := b.words(make([]uint32, 10_000)...)
	cb := b.d.NewCommandBuffer(0, "test")
	require.NoError(t, cb.Encoder().Copy(out.All(), buf.All()))
	require.NoError(t, cb.Commit())
	buf.Release()
	require.NoError(t, cb.Wait(bg))
	got := make([]byte, 40_000)
	require.NoError(t, out.ReadBytes(got, 0))
	require.Equal(t, raw[16:40_016], got)
}

// TestOddPlaces: small arrays of half types lie anywhere, and Metal binds nothing in constant memory but at multiples
// of 4.
func TestOddPlaces(t *testing.T) {
	b := on(t, fake.M1)
	p, err := b.pipeline("odd", `kernel void odd(constant ushort* in [[buffer(0)]], device ushort* out [[buffer(1)]],
  uint i [[thread_position_in_grid]]) { out[i] = in[i]; }`, metal.Options{})
	require.NoError(t, err)
	in, out := b.words(0x00020001, 0x00040003, 0x00060005), b.words(0, 0)
	cb := b.d.NewCommandBuffer(0, "test")
	e := cb.Encoder()
	for i := range 2 { // the second reads what the first has written
		e.SetPipeline(p)
		e.SetBuffer(0, in, int64(2*i+2))
		e.SetBuffer(1, out, 0)
		require.NoError(t, e.Dispatch(metal.Size{X: 3, Y: 1, Z: 1}, metal.Size{X: 3, Y: 1, Z: 1}))
		in = out
	}
	require.NoError(t, cb.Commit())
	require.NoError(t, cb.Wait(bg))
	require.Equal(t, []uint32{0x00000004, 0}, b.read(out))
}

// TestInline: 4,096 inline bytes, which Metal may not take, and patterns of that length.
func TestInline(t *testing.T) {
	b := on(t, fake.M1)
	p, err := b.pipeline("sum", `kernel void sum(constant uint* in [[buffer(0)]], device uint* out [[buffer(1)]]) {
  uint s = 0;
  for (int i = 0; i < 1024; ++i) { s += in[i]; }
  out[0] = s;
}`, metal.Options{})
	require.NoError(t, err)
	raw, sum := []byte{}, uint32(0)
	for i := range uint32(1024) {
		raw, sum = binary.LittleEndian.AppendUint32(raw, i*i), sum+i*i
	}
	out, filled := b.words(0), b.words(make([]uint32, 2048)...)
	cb := b.d.NewCommandBuffer(0, "test")
	e := cb.Encoder()
	e.SetPipeline(p)
	e.SetBytes(0, raw)
	e.SetBuffer(1, out, 0)
	require.NoError(t, e.Dispatch(metal.Size{X: 1, Y: 1, Z: 1}, metal.Size{X: 1, Y: 1, Z: 1}))
	require.NoError(t, e.Fill(filled.All(), raw))
	require.NoError(t, cb.Commit())
	require.NoError(t, cb.Wait(bg))
	require.Equal(t, []uint32{sum}, b.read(out))
	for i, v := range b.read(filled) {
		require.Equal(t, uint32(i%1024)*uint32(i%1024), v)
	}
}

// TestMany: a command buffer of more commands than Metal's queue has room for, measured and not.
func TestMany(t *testing.T) {
	for _, measured := range []bool{false, true} {
		b := on(t, fake.M1)
		p, err := b.pipeline("twice", twice, metal.Options{})
		require.NoError(t, err)
		x := b.words(0, 0)
		cb := b.d.NewCommandBuffer(0, "test")
		if measured {
			cb.Measure()
		}
		want := uint32(0)
		for range 300 {
			e := cb.Encoder()
			e.SetPipeline(p)
			e.SetBuffer(0, x, 0)
			require.NoError(t, e.Dispatch(metal.Size{X: 2, Y: 1, Z: 1}, metal.Size{X: 2, Y: 1, Z: 1}))
			want = 2*want + 1
		}
		require.NoError(t, cb.Commit())
		require.NoError(t, cb.Wait(bg))
		require.Equal(t, []uint32{want, want}, b.read(x))
		if measured {
			took := cb.Took()
			require.Len(t, took, 599)
			require.True(t, slices.ContainsFunc(took, func(c metal.CommandTime) bool { return c.Took > 0 }))
		}
	}
}

// TestModulesEnd: what Metal made of a text goes when nobody can launch its kernels any more.
func TestModulesEnd(t *testing.T) {
	drv, rt := open(t, fake.M1)
	func() {
		m, err := drv.Compile(bg, metal.Source{Label: "twice", Text: twice})
		require.NoError(t, err)
		_, err = m.Kernel(0)
		require.NoError(t, err)
		require.Len(t, rt.Leaks(), 3) // with the device
		runtime.KeepAlive(m)
	}()
	require.Eventually(t, func() bool {
		runtime.GC()
		return len(rt.Leaks()) == 1
	}, 10*time.Second, time.Millisecond)
}

// TestCapture: a capture needs a program that was started for it, and a path that is free.
func TestCapture(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.gputrace")
	drv, _ := open(t, fake.M1)
	require.ErrorContains(t, drv.StartCapture(path), "MTL_CAPTURE_ENABLED=1")
	m := fake.M1
	m.Capture = true
	b := on(t, m)
	c := b.d.Driver().(metal.Capturer)
	require.ErrorContains(t, c.StopCapture(), "no capture is under way")
	require.ErrorContains(t, c.StartCapture(t.TempDir()), "exists")
	require.NoError(t, c.StartCapture(path))
	require.Equal(t, path, b.rt.Captured())
	require.ErrorContains(t, c.StartCapture(path), "Invalid descriptor")
	require.NoError(t, b.run(b.words(1), 0, 1))
	require.NoError(t, c.StopCapture())
	require.Empty(t, b.rt.Captured())
}
