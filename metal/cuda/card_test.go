package cuda

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/metal/drivertest"
)

// openCard opens a card, where the program may and there is one.
func openCard(t testing.TB) *Driver {
	t.Helper()
	d, err := Open(0)
	if err != nil {
		t.Skip(err)
	}
	return d
}

// TestCardConformance: a card does what drivers must.
func TestCardConformance(t *testing.T) {
	d := openCard(t)
	t.Log(d.Info().Name, d.Info().Version)
	require.NoError(t, d.Close())
	drivertest.Run(t, func(t *testing.T) metal.Driver { return openCard(t) })
}

// TestCardFigures measures what a card's driver takes and gives, with -v.
func TestCardFigures(t *testing.T) {
	drv := openCard(t)
	d, err := metal.NewDevice(drv, metal.DeviceOptions{})
	require.NoError(t, err)
	defer func() { require.NoError(t, d.Close()) }()
	t.Log(d.Info().Name)
	figureTexts(t, d)
	figureSubmit(t, d)
	figureStep(t, d)
	figureStreams(t, d)
}

func median(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}

// figureTexts: from a text to a loaded kernel; CUDA_CACHE_DISABLE=1 keeps the driver from remembering texts.
func figureTexts(t *testing.T, d *metal.Device) {
	var took []time.Duration
	for i := range 20 {
		text := fmt.Sprintf(`kernel void gelu(device const float* a, device const float* b, device const float* c,
                 device float* out, uint i [[thread_position_in_grid]]) {
  float v = a[i] * b[i] + c[i] + %d.25f;
  out[i] = 0.5f * v * (1 + metal::tanh(0.7978845f * (v + 0.044715f * v * v * v)));
}`, i+int(time.Now().UnixNano()%1000000))
		begun := time.Now()
		pipeline(t, d, "gelu", text)
		took = append(took, time.Since(begun))
	}
	t.Logf("text to loaded kernel: first %v, median %v", took[0], median(took))
	drv := d.Driver().(*Driver)
	p := pipeline(t, d, "gelu", "kernel void gelu(device float* a, uint i [[thread_position_in_grid]]) "+
		"{ a[i] = metal::tanh(a[i]) + metal::exp(a[i]); }")
	x := p.Library().Module().(*module).kernels[0].Load()
	source := (*x.entries.Load())[0].source
	require.NoError(t, drv.lib.Enter())
	defer drv.lib.Leave()
	for level := range 5 {
		took = took[:0]
		for i := range 5 {
			text := fmt.Sprintf("%s// %d %d\n", source, i, time.Now().UnixNano())
			begun := time.Now()
			prog, err := drv.lib.Load(text, level)
			require.NoError(t, err)
			took = append(took, time.Since(begun))
			require.NoError(t, drv.lib.Unload(prog))
		}
		t.Logf("%d bytes of PTX at level %d: %v", len(source), level, median(took))
	}
}

// figureSubmit: the host's time of a kernel, alone and among others, and how long until it is known to have run.
func figureSubmit(t *testing.T, d *metal.Device) {
	p := pipeline(t, d, "twice", twiceText)
	x, err := d.AllocCopy(bg, make([]byte, 1<<20), nil)
	require.NoError(t, err)
	defer x.Release()
	for _, n := range []int{1, 200} {
		var encode, commit, all []time.Duration
		for range 300 {
			begun := time.Now()
			cb := d.NewCommandBuffer(0, "figures")
			for range n {
				dispatch(t, cb, p, 64, func(e *metal.Encoder) {
					e.SetBuffer(0, x, 0)
					e.SetBytes(1, []byte{3, 0, 0, 0})
				})
			}
			encode = append(encode, time.Since(begun))
			begun = time.Now()
			require.NoError(t, cb.Commit())
			commit = append(commit, time.Since(begun))
			require.NoError(t, cb.Wait(bg))
			all = append(all, time.Since(begun))
		}
		t.Logf("%d kernels: recording %v each, submitting %v each, done after %v", n, median(encode)/time.Duration(n),
			median(commit)/time.Duration(n), median(all))
	}
	var reads []time.Duration
	for range 300 {
		begun := time.Now()
		require.NoError(t, x.ReadBytes(make([]byte, 4), 0))
		reads = append(reads, time.Since(begun))
	}
	t.Logf("4 bytes read: %v", median(reads))
	big := make([]byte, 256<<20)
	y, err := d.AllocCopy(bg, big, nil)
	require.NoError(t, err)
	defer y.Release()
	begun := time.Now()
	require.NoError(t, y.WriteBytes(0, big))
	write := time.Since(begun)
	begun = time.Now()
	require.NoError(t, y.ReadBytes(big, 0))
	t.Logf("256 MiB: written at %.1f GB/s, read at %.1f", 0.268/write.Seconds(), 0.268/time.Since(begun).Seconds())
}

// figureStep: a recorded step of 200 kernels, on the memory of the last time and on other memory.
func figureStep(t *testing.T, d *metal.Device) {
	const n = 200
	l, err := d.Library(bg, metal.Source{Label: "twice", Text: "#include <metal_stdlib>\n" + twiceText,
		Options: metal.Options{Portable: true}})
	require.NoError(t, err)
	p, err := l.Pipeline("twice")
	require.NoError(t, err)
	size := metal.Size{X: 64, Y: 1, Z: 1}
	step := &metal.Step{Slots: 1, Values: 1}
	for range n {
		step.Commands = append(step.Commands, metal.StepCommand{Kind: metal.CmdDispatch, Pipeline: p, Grid: size,
			Threadgroup: size, Args: []metal.StepArg{{Slot: 0, N: 256, Value: -1}, {Slot: -1, Value: 0}}})
	}
	kept := d.KeepStep(step)
	require.NotNil(t, kept)
	defer kept.Drop()
	x, err := d.AllocCopy(bg, make([]byte, 512), nil)
	require.NoError(t, err)
	defer x.Release()
	for _, moves := range []int64{0, 1} {
		var commit, all []time.Duration
		for round := range int64(200) {
			slot := metal.Range{Buf: x, Offset: 256 * (round & moves), Bytes: 256}
			cb := d.NewCommandBuffer(0, "figures")
			for range n {
				dispatch(t, cb, p, 64, func(e *metal.Encoder) {
					e.SetBufferRange(0, slot)
					e.SetBytes(1, []byte{3, 0, 0, 0})
				})
			}
			cb.Encoder().Replayed(kept, 0, []metal.Range{slot}, [][]byte{{3, 0, 0, 0}})
			begun := time.Now()
			require.NoError(t, cb.Commit())
			commit = append(commit, time.Since(begun))
			require.NoError(t, cb.Wait(bg))
			all = append(all, time.Since(begun))
		}
		t.Logf("a step of %d kernels, other memory %v: submitting %v, done after %v", n, moves == 1, median(commit),
			median(all))
	}
}

// figureStreams: bytes a second of kernels on 1 GiB, beside the card's own copy.
func figureStreams(t *testing.T, d *metal.Device) {
	const n = 1 << 28 // floats
	var bufs [4]*metal.Buffer
	for i := range bufs {
		b, err := d.Alloc(bg, 4*n)
		require.NoError(t, err)
		defer b.Release()
		bufs[i] = b
	}
	one := pipeline(t, d, "gelu1", `inline float gelu(float v) {
  return 0.5f * v * (1 + metal::tanh(0.7978845f * (v + 0.044715f * v * v * v)));
}
kernel void gelu1(device const float* a, device const float* b, device const float* c, device float* out,
                  constant uint& n, uint i [[thread_position_in_grid]]) {
  if (i < n) out[i] = gelu(a[i] * b[i] + c[i]);
}`)
	four := pipeline(t, d, "gelu4", `inline float gelu(float v) {
  return 0.5f * v * (1 + metal::tanh(0.7978845f * (v + 0.044715f * v * v * v)));
}
kernel void gelu4(device const float* a, device const float* b, device const float* c, device float* out,
                  constant uint& n, uint i [[thread_position_in_grid]]) {
  for (uint k = 4 * i; k < 4 * i + 4; k++) out[k] = gelu(a[k] * b[k] + c[k]);
}`)
	vec := pipeline(t, d, "gelu_vec", `inline float gelu(float v) {
  return 0.5f * v * (1 + metal::tanh(0.7978845f * (v + 0.044715f * v * v * v)));
}
kernel void gelu_vec(device const float4* a, device const float4* b, device const float4* c, device float4* out,
                  constant uint& n, uint i [[thread_position_in_grid]]) {
  float4 v = a[i] * b[i] + c[i];
  out[i] = float4(gelu(v.x), gelu(v.y), gelu(v.z), gelu(v.w));
}`)
	copy1 := pipeline(t, d, "copy1", `kernel void copy1(device const float* a, device float* out,
                  uint i [[thread_position_in_grid]]) {
  out[i] = a[i];
}`)
	run := func(name string, bytes float64, record func(cb *metal.CommandBuffer)) {
		var took []time.Duration
		for range 7 {
			cb := d.NewCommandBuffer(0, "figures")
			cb.Measure()
			record(cb)
			require.NoError(t, cb.Commit())
			require.NoError(t, cb.Wait(bg))
			took = append(took, cb.Took()[0].Took)
		}
		t.Logf("%-32s %7.0f GB/s", name, bytes*4*n/1e9/median(took).Seconds())
	}
	run("the card's copy", 2, func(cb *metal.CommandBuffer) {
		require.NoError(t, cb.Encoder().Copy(bufs[0].All(), bufs[1].All()))
	})
	for _, group := range []int{256, 1024} {
		kernels := []struct {
			name string
			p    *metal.Pipeline
			each int
		}{{"gelu, one float a thread", one, 1}, {"gelu, four in a loop", four, 4}, {"gelu, float4", vec, 4},
			{"copy, one float a thread", copy1, 1}}
		for _, k := range kernels {
			bytes := 4.0
			if k.p == copy1 {
				bytes = 2
			}
			run(fmt.Sprintf("%s, %d", k.name, group), bytes, func(cb *metal.CommandBuffer) {
				e := cb.Encoder()
				e.SetPipeline(k.p)
				for i, q := range k.p.Params() {
					if q.Constant {
						e.SetBytes(i, []byte{0, 0, 0, 16})
					} else {
						e.SetBuffer(i, bufs[i], 0)
					}
				}
				require.NoError(t, e.Dispatch(metal.Size{X: n / k.each, Y: 1, Z: 1}, metal.Size{X: group, Y: 1, Z: 1}))
			})
		}
	}
}

// TestCardMemory: more than the card has is an error with figures, after which there is memory again.
func TestCardMemory(t *testing.T) {
	d := openCard(t)
	defer func() { require.NoError(t, d.Close()) }()
	var held []metal.Memory
	for {
		m, err := d.Alloc(4 << 30)
		if err != nil {
			require.ErrorContains(t, err, "[alloc] 4294967296 bytes: the card has ")
			t.Log(err)
			break
		}
		held = append(held, m)
		require.Less(t, len(held), 1000)
	}
	d.Free(held[0])
	m, err := d.Alloc(4 << 30)
	require.NoError(t, err)
	b := make([]byte, 1000)
	require.NoError(t, d.Read(b, m, 1<<30))
	require.Equal(t, make([]byte, 1000), b)
	for _, m := range append(held[1:], m) {
		d.Free(m)
	}
}

// TestCardStops: how long an endless kernel on the whole card takes to end when it is stopped.
func TestCardStops(t *testing.T) {
	d, err := metal.NewDevice(openCard(t), metal.DeviceOptions{})
	require.NoError(t, err)
	defer func() { require.NoError(t, d.Close()) }()
	p := pipeline(t, d, "endless", `kernel void endless(device uint* x, uint i [[thread_position_in_grid]]) {
  uint v = 2 * x[i];
  while (v != 7) v = 6 * v + 2;
  x[i] = v;
}`)
	x, err := d.AllocCopy(bg, make([]byte, 4<<20), nil)
	require.NoError(t, err)
	var took []time.Duration
	for range 5 {
		cb := d.NewCommandBuffer(0, "endless")
		dispatch(t, cb, p, 1<<20, func(e *metal.Encoder) { e.SetBuffer(0, x, 0) })
		require.NoError(t, cb.Commit())
		time.Sleep(10 * time.Millisecond)
		begun := time.Now()
		cb.Cancel(nil)
		require.Error(t, cb.Wait(bg))
		took = append(took, time.Since(begun))
	}
	t.Logf("stopped after %v", median(took))
	x.Release()
}

// TestCardsArePeers: what one card has written the other one reads.
func TestCardsArePeers(t *testing.T) {
	second, err := Open(1)
	if err != nil {
		t.Skip(err)
	}
	devs := make([]*metal.Device, 2)
	for i, drv := range []*Driver{openCard(t), second} {
		devs[i], err = metal.NewDevice(drv, metal.DeviceOptions{})
		require.NoError(t, err)
		defer func() { require.NoError(t, devs[i].Close()) }()
	}
	const n = 1 << 30
	x, err := devs[0].Alloc(bg, n)
	require.NoError(t, err)
	y, err := devs[1].Alloc(bg, n)
	require.NoError(t, err)
	cb := devs[0].NewCommandBuffer(0, "fill")
	require.NoError(t, cb.Encoder().Fill(x.All(), []byte{1, 2, 3, 4}))
	require.NoError(t, cb.Commit())
	require.NoError(t, cb.Wait(bg))
	var took []time.Duration
	for range 5 {
		begun := time.Now()
		require.NoError(t, y.CopyFrom(0, x.All()))
		took = append(took, time.Since(begun))
	}
	got := make([]byte, 8)
	require.NoError(t, y.ReadBytes(got, n-8))
	require.Equal(t, []byte{1, 2, 3, 4, 1, 2, 3, 4}, got)
	t.Logf("1 GiB from card to card: %.0f GB/s", n/1e9/median(took).Seconds())
	x.Release()
	y.Release()
}
