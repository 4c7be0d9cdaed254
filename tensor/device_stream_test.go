package tensor_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/metal/soft"
	"github.com/mlxlua/mlxlua/tensor"
)

// gated is a driver that holds the command buffers of the queues that the test has closed.
type gated struct {
	metal.Driver
	mu     sync.Mutex
	closed map[int]bool
	held   map[int][]func()
}

func (g *gated) Submit(queue int, cb *metal.CommandBuffer, done func(metal.Result)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	run := func() { g.Driver.Submit(queue, cb, done) }
	if g.closed[queue] {
		g.held[queue] = append(g.held[queue], run)
		return
	}
	run()
}

// open lets the queue's command buffers go.
func (g *gated) open(s *tensor.Stream) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, run := range g.held[s.Index()] {
		run()
	}
	delete(g.closed, s.Index())
	delete(g.held, s.Index())
}

// waiting says how many command buffers of a stream are held.
func (g *gated) waiting(s *tensor.Stream) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.held[s.Index()])
}

func withGate(t *testing.T) (g *gated, a, b *tensor.Stream) {
	t.Helper()
	g = &gated{Driver: soft.New(soft.Options{}), closed: map[int]bool{}, held: map[int][]func(){}}
	useDevice(t, g, metal.DeviceOptions{Validate: true})
	a, b = newStream(t), newStream(t)
	g.closed[a.Index()] = true
	return g, a, b
}

// TestDefaults: calls without a stream run on the default stream of the default device, which further streams leave as
// it is.
func TestDefaults(t *testing.T) {
	withDevice(t, metal.DeviceOptions{})
	d := tensor.DefaultDevice()
	before, err := tensor.DefaultStream(d)
	require.NoError(t, err)
	require.NotEqual(t, before, newStream(t))
	now, err := tensor.DefaultStream(d)
	require.NoError(t, err)
	require.Same(t, before, now, "it stays")
	y := neg(iota(10))
	require.Equal(t, float32(-9), floats(t, y)[9])
	require.Same(t, before, y.Value().Node.Stream())
	none := tensor.DeviceID{Kind: tensor.GPU, Index: 100}
	_, err = tensor.DefaultStream(none)
	require.ErrorContains(t, err, "no device Device(gpu, 100) is open")
}

// TestEventsAcrossStreams: what depends on another stream's work waits for it, and nothing else does.
func TestEventsAcrossStreams(t *testing.T) {
	g, a, b := withGate(t)
	x := iota(1000)
	first := addOp.One(on(a), tensor.None{}, x, x)
	free := negOp.One(on(b), tensor.None{}, x)
	require.NoError(t, tensor.AsyncEval(first))
	for g.waiting(a) == 0 {
		runtime.Gosched()
	}
	eval(t, free)
	second := negOp.One(on(b), tensor.None{}, first)
	third := mulOp.One(on(a), tensor.None{}, second, first)
	require.NoError(t, tensor.AsyncEval(third))
	require.Equal(t, tensor.Scheduled, second.State())
	require.Equal(t, 1, g.waiting(a), "the rest of a waits for b, which waits for the first of a")
	over, cancel := context.WithCancel(background)
	cancel()
	require.ErrorIs(t, tensor.Synchronize(over, a), context.Canceled)
	require.ErrorIs(t, tensor.Synchronize(over), context.Canceled)
	require.ErrorIs(t, first.Wait(over), context.Canceled)
	g.open(a)
	require.NoError(t, tensor.Synchronize(background, a, b))
	require.Equal(t, []tensor.State{tensor.Ready, tensor.Ready, tensor.Ready},
		[]tensor.State{first.State(), second.State(), third.State()}, "synchronize waits for all that was handed over")
	require.Equal(t, float32(-4*999*999), floats(t, third)[999])
	require.NoError(t, tensor.Synchronize(over), "nothing is left to wait for")
}

// TestFailuresCrossStreams: an error goes where its array is used, with its first text, and nowhere else.
func TestFailuresCrossStreams(t *testing.T) {
	g, a, b := withGate(t)
	boom := errors.New("boom")
	x := iota(100)
	body := func(*tensor.Run) error { return boom }
	bad := runOp.One(on(a), runAttrs{&body}, x)
	good := negOp.One(on(a), tensor.None{}, x)
	dependent := addOp.One(on(b), tensor.None{}, bad, good)
	independent := addOp.One(on(b), tensor.None{}, good, good)
	later := negOp.One(on(a), tensor.None{}, dependent)
	require.NoError(t, tensor.AsyncEval(later, independent))
	g.open(a)
	require.ErrorIs(t, later.Wait(background), boom)
	require.Equal(t, bad.Err(), later.Err())
	require.Equal(t, bad.Err(), dependent.Err())
	require.Equal(t, float32(-198), floats(t, independent)[99])
}

// TestCheckNaN: the first op that makes a NaN or an infinity is the error, with the index; those that only pass one
// on are not.
func TestCheckNaN(t *testing.T) {
	require.False(t, tensor.CheckNaN(true))
	defer tensor.CheckNaN(false)
	inf := float32(math.Inf(1))
	x := array([]float32{1, 2, 3, 4e38 / 2, 5, -6}, 2, 3)
	good := add(x, x) // 4e38 is an infinity
	err := tensor.Eval(background, sum(neg(good)))
	require.EqualError(t, err,
		"[test_add] the output has an infinity at index (1, 0), and its inputs have none (test.lua:7)")
	given := array([]float32{inf, 1})
	eval(t, neg(add(given, given)))
	err = tensor.Eval(background, add(given, neg(given)))
	require.EqualError(t, err,
		"[test_add] the output has a NaN at index (0,), and its inputs have none (test.lua:7)", "but an infinity")
	low := array([]float32{float32(math.Inf(-1)), 1, inf})
	err = tensor.Eval(background, add(low, array([]float32{1, 1, float32(math.Inf(-1))})))
	require.ErrorContains(t, err, "a NaN at index (2,)", "the infinity before it is an input's")
	bad := array([]float32{float32(math.NaN()), 3e38})
	eval(t, add(bad, bad))
	for _, d := range []tensor.DType{tensor.Float16, tensor.BFloat16} {
		big := cast(array([]float32{1, 60000}), d)
		if d == tensor.BFloat16 {
			big = cast(array([]float32{1, 3e38}), d)
		}
		err = tensor.Eval(background, mul(big, cast(array([]float32{1, -30}), d)))
		require.EqualError(t, err,
			"[test_mul] the output has a negative infinity at index (1,), and its inputs have none (test.lua:7)")
	}
	ints := cast(array([]float32{1, 2}), tensor.Int32)
	eval(t, mul(ints, ints))
	held := neg(add(iota(5000), iota(5000)))
	eval(t, neg(held))
	require.Equal(t, float32(-9998), floats(t, held)[4999])
	require.True(t, tensor.CheckNaN(false))
	eval(t, neg(add(x, x)))
}

// TestTimeline: the stages of an evaluation, in their order, on tracks that have names.
func TestTimeline(t *testing.T) {
	withDevice(t, metal.DeviceOptions{})
	line, err := tensor.StartTimeline()
	require.NoError(t, err)
	_, err = tensor.StartTimeline()
	require.EqualError(t, err, "[timeline] another timeline is being recorded")
	x := iota(100)
	eval(t, neg(sum(add(x, x))))
	require.NoError(t, tensor.Synchronize(background))
	line.Stop()
	eval(t, neg(neg(x)))
	path := filepath.Join(t.TempDir(), "trace.json")
	require.NoError(t, line.Save(path))
	written, err := os.ReadFile(path)
	require.NoError(t, err)
	var again bytes.Buffer
	require.NoError(t, line.Write(&again))
	require.Equal(t, again.Bytes(), written)
	var file struct {
		TraceEvents []struct {
			Name, Cat, Ph string
			TS, Dur       float64
			TID           int
			Args          map[string]string
		}
	}
	require.NoError(t, json.Unmarshal(written, &file))
	tracks := map[int]string{}
	first := map[string]float64{}
	count := map[string]int{}
	for _, e := range file.TraceEvents {
		if e.Ph == "M" {
			tracks[e.TID] = e.Args["name"]
			continue
		}
		require.Equal(t, "X", e.Ph)
		require.NotEmpty(t, tracks[e.TID])
		require.GreaterOrEqual(t, e.Dur, 0.0)
		if count[e.Cat]++; count[e.Cat] == 1 {
			first[e.Cat] = e.TS
		}
		switch e.Cat {
		case "build":
			require.Equal(t, "test.lua:7", e.Args["line"])
			require.Contains(t, []string{"test_add", "test_sum", "test_neg"}, e.Name)
			require.Contains(t, tracks[e.TID], "goroutine ")
		case "claim": // whoever is first goes over the graph
			require.Equal(t, "graph", e.Name)
			require.Regexp(t, `^goroutine \d+$|^Stream\(Device\(cpu, 0\), \d+\) planning$`, tracks[e.TID])
		case "plan", "record", "compile":
			require.Regexp(t, `^Stream\(Device\(cpu, 0\), \d+\) planning$`, tracks[e.TID])
		case "run":
			require.Regexp(t, `^Stream\(Device\(cpu, 0\), \d+\) device$`, tracks[e.TID])
			require.Regexp(t, `^\d+ commands, \d+ calls$`, e.Args["detail"])
		case "wait":
			require.Equal(t, "eval", e.Name)
		default:
			t.Errorf("category %q", e.Cat)
		}
	}
	require.Equal(t, 3, count["build"])
	require.Equal(t, []int{1, 1, 1, 1}, []int{count["claim"], count["plan"], count["run"], count["wait"]})
	require.Positive(t, count["record"])
	require.Positive(t, count["compile"], "a new device has nothing compiled")
	require.Less(t, first["build"], first["claim"])
	require.Less(t, first["claim"], first["plan"])
	require.Less(t, first["plan"], first["record"])
	require.Less(t, first["record"], first["run"])
	require.ErrorContains(t, line.Save(filepath.Join(t.TempDir(), "none", "trace.json")), "[timeline] ")
	require.EqualError(t, line.Save(""), `[timeline] "" is no name of a file`)
	dir := t.TempDir()
	require.EqualError(t, line.Save(dir), fmt.Sprintf("[timeline] %q is no name of a file", dir))
}
