package soft

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/metal/front"
	"github.com/mlxlua/mlxlua/metal/kerneltest"
	"github.com/mlxlua/mlxlua/metal/kir"
	"github.com/mlxlua/mlxlua/metal/launch"
)

// kernels are what the test compiler knows, by text.
var kernels = map[string]func() *kir.Kernel{
	// out[i] = in[i] + k
	"addk": func() *kir.Kernel {
		b := kerneltest.NewBuilder("addk")
		in, k := b.Param("in", kir.Device, kir.U32), b.Param("k", kir.Constant, kir.U32)
		out := b.Param("out", kir.Device, kir.U32)
		b.K.Params[0].Write, b.K.Params[0].Atomic, b.K.Params[1].MinBytes = false, false, 4
		i := b.Builtin(kir.ThreadPositionInGrid, 0)
		v := b.Op(kir.Add, kir.U32, b.Load(kir.U32, in, i), b.Op(kir.Load, kir.U32, k))
		b.Store(out, i, v)
		return b.Kernel()
	},
	// out[i] = in[i*s]
	"strided": func() *kir.Kernel {
		b := kerneltest.NewBuilder("strided")
		in, s := b.Param("in", kir.Device, kir.U32), b.Param("s", kir.Constant, kir.U32)
		out := b.Param("out", kir.Device, kir.U32)
		b.K.Params[0].Write, b.K.Params[0].Atomic = false, false
		i := b.Builtin(kir.ThreadPositionInGrid, 0)
		v := b.Load(kir.U32, in, b.Op(kir.Mul, kir.U32, i, b.Op(kir.Load, kir.U32, s)))
		b.Store(out, i, v)
		return b.Kernel()
	},
	// adds to a word forever
	"endless": func() *kir.Kernel {
		b := kerneltest.NewBuilder("endless")
		out := b.Param("out", kir.Device, kir.U32)
		b.Loop(func(*kir.Instr) {
			one := b.Int(kir.U32, 1)
			b.Append(&kir.Instr{Op: kir.AtomicRMW, Mode: kir.ModeAdd, Type: kir.U32, Args: []*kir.Instr{out, one}})
		})
		return b.Kernel()
	},
	// out[group] = the sum of the threadgroup's positions, by way of dynamic memory
	"sum": func() *kir.Kernel {
		b := kerneltest.NewBuilder("sum")
		out := b.Param("out", kir.Device, kir.U32)
		b.K.Params = append(b.K.Params, kir.Param{Name: "tile", Space: kir.Threadgroup, Elem: kir.U32, ElemSize: 4})
		tile := b.Append(&kir.Instr{Op: kir.ParamAddr, Type: kir.PtrThreadgroup, Imm: 1})
		l := b.Builtin(kir.ThreadIndexInThreadgroup, 0)
		b.Store(tile, l, b.Builtin(kir.ThreadPositionInGrid, 0))
		b.Barrier(kir.MemThreadgroup)
		i, s := b.Var("i", kir.U32), b.Var("s", kir.U32)
		n := b.Builtin(kir.ThreadsPerThreadgroup, 0)
		b.While(func() *kir.Instr { return b.Op(kir.Lt, kir.Bool, b.Get(i), n) }, func(*kir.Instr) {
			b.Set(s, b.Op(kir.Add, kir.U32, b.Get(s), b.Load(kir.U32, tile, b.Get(i))))
			b.Set(i, b.Op(kir.Add, kir.U32, b.Get(i), b.Int(kir.U32, 1)))
		})
		b.If(b.Op(kir.Eq, kir.Bool, l, b.Int(kir.U32, 0)), func() {
			b.Store(out, b.Builtin(kir.ThreadgroupPositionInGrid, 0), b.Get(s))
		}, nil)
		return b.Kernel()
	},
	// reads tile before anything was written
	"uninit": func() *kir.Kernel {
		b := kerneltest.NewBuilder("uninit")
		out := b.Param("out", kir.Device, kir.U32)
		i := b.Builtin(kir.ThreadPositionInGrid, 0)
		b.Store(out, i, b.Load(kir.U32, b.Region("tile", kir.Threadgroup, kir.U32, 64), i))
		return b.Kernel()
	},
}

// whole is a Text whose kernels are all there.
type whole struct{ kir.Module }

func (w *whole) Names() []string {
	var names []string
	for _, k := range w.Kernels {
		names = append(names, k.Name)
	}
	return names
}

func (w *whole) Kernel(i int) (*kir.Kernel, error) { return w.Kernels[i], nil }
func (w *whole) Files() []string                   { return w.Module.Files }

func compileTest(_ context.Context, src metal.Source) (front.Text, error) {
	switch src.Text {
	case "panic":
		panic("the compiler is broken")
	case "invalid":
		return &whole{kir.Module{Kernels: []*kir.Kernel{{Name: "k"}}}}, nil
	}
	f := kernels[src.Text]
	if f == nil {
		return nil, fmt.Errorf("unknown kernel %s", src.Text)
	}
	return &whole{kir.Module{Kernels: []*kir.Kernel{f()}, Files: []string{src.Label}}}, nil
}

func newDevice(t testing.TB) *metal.Device {
	t.Helper()
	dev, err := metal.NewDevice(New(Options{Workers: 3, Compiler: compileTest}), metal.DeviceOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, dev.Close()) })
	return dev
}

func pipeline(t testing.TB, dev *metal.Device, name string) *metal.Pipeline {
	t.Helper()
	return pipelineWith(t, dev, name, metal.Options{})
}

func pipelineWith(t testing.TB, dev *metal.Device, name string, opt metal.Options) *metal.Pipeline {
	t.Helper()
	lib, err := dev.Library(context.Background(), metal.Source{Label: name + ".metal", Text: name, Options: opt})
	require.NoError(t, err)
	p, err := lib.Pipeline(name)
	require.NoError(t, err)
	return p
}

func u32Bytes(v ...uint32) []byte {
	var b []byte
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, x)
	}
	return b
}

func alloc(t testing.TB, dev *metal.Device, n int64) *metal.Buffer {
	t.Helper()
	b, err := dev.Alloc(context.Background(), n)
	require.NoError(t, err)
	t.Cleanup(b.Release)
	return b
}

func x(n int) metal.Size { return metal.Size{X: n, Y: 1, Z: 1} }

// withNumber encodes a kernel of in, k and out that has a thread for each word of out: addk is out[i] = in[i] + k, and
// strided out[i] = in[i*k], which is a fault where in is too short.
func withNumber(e *metal.Encoder, p *metal.Pipeline, in, out *metal.Buffer, k uint32) error {
	e.SetPipeline(p)
	e.SetBuffer(0, in, 0)
	e.SetBytes(1, u32Bytes(k))
	e.SetBuffer(2, out, 0)
	n := int(out.Len() / 4)
	return e.Dispatch(x(n), x(min(n, 64)))
}

func TestChainsOfDispatchesCopiesAndFills(t *testing.T) {
	dev := newDevice(t)
	p := pipeline(t, dev, "addk")
	for _, validate := range []bool{false, true} {
		dev.SetValidate(validate)
		const n = 1000
		a, b, c := alloc(t, dev, 4*n), alloc(t, dev, 4*n), alloc(t, dev, 4*n)
		cb := dev.NewCommandBuffer(0, "chain")
		e := cb.Encoder()
		require.NoError(t, e.Fill(a.All(), u32Bytes(7)))
		for i := range uint32(10) { // a -> b -> a ...: each depends on the one before
			require.NoError(t, withNumber(e, p, a, b, i))
			require.NoError(t, e.Copy(c.All(), b.All()))
			require.NoError(t, withNumber(e, p, c, a, 100))
		}
		require.NoError(t, cb.Commit())
		require.NoError(t, cb.Wait(context.Background()))
		for i := range n {
			require.Equal(t, uint32(7+45+1000), binary.LittleEndian.Uint32(a.Host()[4*i:]))
		}
	}
}

func TestQueuesKeepTheirOrder(t *testing.T) {
	dev := newDevice(t)
	p := pipeline(t, dev, "addk")
	var wg sync.WaitGroup
	bufs := make([]*metal.Buffer, 4)
	for q := range bufs {
		buf := alloc(t, dev, 4*500)
		bufs[q] = buf
		clear(buf.Host())
		wg.Go(func() {
			var last *metal.CommandBuffer
			for i := range 50 { // x -> x + i only comes out right one after another
				cb := dev.NewCommandBuffer(q, "")
				out, err := dev.Alloc(context.Background(), buf.Len())
				if err == nil {
					err = withNumber(cb.Encoder(), p, buf, out, uint32(i))
				}
				if err == nil {
					err = cb.Encoder().Copy(buf.All(), out.All())
				}
				if err == nil {
					err = cb.Commit()
				}
				if err != nil {
					t.Error(err)
					return
				}
				out.Release()
				last = cb
			}
			if err := last.Wait(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, buf := range bufs {
		require.Equal(t, u32Bytes(49*50/2), buf.Host()[4*499:])
	}
}

func TestDynamicThreadgroupMemoryAndEdges(t *testing.T) {
	dev := newDevice(t)
	dev.SetValidate(true)
	p := pipeline(t, dev, "sum")
	out := alloc(t, dev, 4*4)
	cb := dev.NewCommandBuffer(0, "")
	e := cb.Encoder()
	e.SetPipeline(p)
	e.SetBuffer(0, out, 0)
	e.SetThreadgroupBytes(1, 4*64)
	require.NoError(t, e.Dispatch(x(200), x(64)))
	require.NoError(t, cb.Commit())
	require.NoError(t, cb.Wait(context.Background()))
	require.Equal(t, u32Bytes(63*64/2, 64*64+2016, 64*128+2016, 8*192+28), out.Host())
}

func TestCancellationStopsAnEndlessKernel(t *testing.T) {
	dev := newDevice(t)
	p := pipeline(t, dev, "endless")
	out := alloc(t, dev, 4)
	cb := dev.NewCommandBuffer(0, "")
	cb.Encoder().SetPipeline(p)
	cb.Encoder().SetBuffer(0, out, 0)
	require.NoError(t, cb.Encoder().Dispatch(x(1000), x(32)))
	after := dev.NewCommandBuffer(0, "") // waits in the same queue
	require.NoError(t, after.Encoder().Fill(out.All(), u32Bytes(5)))
	require.NoError(t, cb.Commit())
	require.NoError(t, after.Commit())
	why := errors.New("enough")
	cb.Cancel(why)
	require.ErrorIs(t, cb.Wait(context.Background()), why)
	require.NoError(t, after.Wait(context.Background()))
	require.Equal(t, u32Bytes(5), out.Host())
}

func TestFaultsFailTheirCommandBufferOnly(t *testing.T) {
	dev := newDevice(t)
	p := pipeline(t, dev, "addk")
	short, out := alloc(t, dev, 4*10), alloc(t, dev, 4*100)
	cb := dev.NewCommandBuffer(0, "")
	require.NoError(t, withNumber(cb.Encoder(), p, short, out, 1))
	require.NoError(t, cb.Commit())
	var f *launch.Fault
	require.ErrorAs(t, cb.Wait(context.Background()), &f)
	require.Equal(t, "[addk] read of in[10] is out of range: in has 10 elements", f.Error())
	cb = dev.NewCommandBuffer(0, "")
	require.NoError(t, withNumber(cb.Encoder(), p, out, short, 1))
	require.NoError(t, cb.Commit())
	require.NoError(t, cb.Wait(context.Background()))
}

func TestValidationReachesTheKernel(t *testing.T) {
	dev := newDevice(t)
	p := pipeline(t, dev, "uninit")
	out := alloc(t, dev, 4*64)
	for _, validate := range []bool{false, true} {
		dev.SetValidate(validate)
		cb := dev.NewCommandBuffer(0, "")
		cb.Encoder().SetPipeline(p)
		cb.Encoder().SetBuffer(0, out, 0)
		require.NoError(t, cb.Encoder().Dispatch(x(64), x(64)))
		require.NoError(t, cb.Commit())
		err := cb.Wait(context.Background())
		if validate {
			require.ErrorContains(t, err, "before anything was written")
		} else {
			require.NoError(t, err)
		}
	}
}

func TestCompileErrors(t *testing.T) {
	d := New(Options{Workers: 1, Compiler: compileTest})
	defer d.Close()
	for text, want := range map[string]string{
		"nothing": "unknown kernel nothing",
		"panic":   "[compile] BUG: the compiler is broken in lbl",
	} {
		_, err := d.Compile(context.Background(), metal.Source{Label: "lbl", Text: text})
		require.EqualError(t, err, want)
	}
	m, err := d.Compile(context.Background(), metal.Source{Text: "invalid"})
	require.NoError(t, err)
	_, err = m.Kernel(0)
	require.EqualError(t, err, `[kir] kernel "k": no body`)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = d.Compile(ctx, metal.Source{Text: "sum"})
	require.ErrorIs(t, err, context.Canceled)
	m, err = d.Compile(context.Background(), metal.Source{Text: "uninit"})
	require.NoError(t, err)
	r, err := m.Kernel(0)
	require.NoError(t, err)
	require.Equal(t, int64(256), r.StaticTG)
	require.Equal(t, metal.ParamInfo{Name: "out", ElemSize: 4, Read: true, Write: true, Atomic: true}, r.Params[0])
}

func TestMemory(t *testing.T) {
	d := New(Options{Workers: 1, Memory: 1 << 30})
	require.Equal(t, int64(1<<30), d.Info().Memory)
	m, err := d.Alloc(100_000)
	require.NoError(t, err)
	require.Len(t, m.Host, 100_000)
	require.Zero(t, addressOf(m.Host)%alignment)
	for i := range m.Host {
		if m.Host[i] != 0 {
			t.Fatalf("byte %d is not zero", i)
		}
		m.Host[i] = 1
	}
	again, err := d.Alloc(1)
	require.NoError(t, err)
	require.Zero(t, again.Host[0])
	d.Free(m)
	d.Free(m) // ignored
	d.Free(metal.Memory{})
	for _, n := range []int64{0, -1, 1<<30 + 1, 1<<63 - 1} {
		_, err = d.Alloc(n)
		require.ErrorContains(t, err, "[alloc] ", "%d bytes", n)
	}
	require.NoError(t, d.Close())
	require.NoError(t, d.Close())
	_, err = d.Alloc(1)
	require.ErrorIs(t, err, errClosed)
	d = New(Options{})
	defer d.Close()
	require.Greater(t, d.Info().Memory, int64(1<<20))
	require.NotEmpty(t, d.Info().Name)
}

func TestMachineLimits(t *testing.T) {
	require.Equal(t, []string{
		"/sys/fs/cgroup/a/b/memory.max", "/sys/fs/cgroup/a/memory.max", "/sys/fs/cgroup/memory.max",
	}, cgroupFiles("0::/a/b\n"))
	require.Equal(t, []string{"/sys/fs/cgroup/memory/memory.limit_in_bytes"},
		cgroupFiles("4:cpu:/x\n3:memory:/\nbad\n"))
	require.Equal(t, int64(5), limited(9, []int64{0, -1, 7, 5}))
	require.Equal(t, "123 kB", field("MemFree: 1 kB\nMemTotal:   123 kB\n", "MemTotal"))
	require.Equal(t, "", field("x\n", "y"))
}

// TestLargeCopies: what goroutines share is copied to the last byte, and no further.
func TestLargeCopies(t *testing.T) {
	t.Parallel()
	w := newWorkers(3)
	defer w.close()
	for _, n := range []int{copyPart, copyPart + 1, 3*copyPart - 1, 9*copyPart + 77} {
		src, dst := make([]byte, n), make([]byte, n+1)
		for i := range src {
			src[i] = byte(i*7 + i>>9)
		}
		c := &copying{dst: dst[:n], src: src}
		goroutines, _ := c.Parallelism()
		require.Equal(t, (n-1)/copyPart+1, goroutines)
		task := w.newTask(c.Work)
		w.open(task)
		w.run(task, goroutines-1, true)
		w.shut(task)
		require.Equal(t, src, dst[:n])
		require.Zero(t, dst[n])
	}
}

func TestFill(t *testing.T) {
	b := make([]byte, 11)
	fill(b, []byte{1, 2, 3, 4})
	require.Equal(t, []byte{1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3}, b)
	fill(b, nil)
	fill(nil, []byte{1})
}
