package fake_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal/apple"
	"github.com/mlxlua/mlxlua/metal/apple/fake"
	"github.com/mlxlua/mlxlua/metal/apple/objc"
)

// mac is a runtime that somebody misuses.
type mac struct {
	t   *testing.T
	rt  *fake.Runtime
	c   *objc.Caller
	gpu objc.Object
}

func newMac(t *testing.T) *mac {
	rt := fake.New(fake.M1)
	return &mac{t, rt, &objc.Caller{Runtime: rt}, rt.DefaultDevice()}
}

// pipeline makes a pipeline of a kernel.
func (m *mac) pipeline(text, name string) objc.Object {
	c := m.c
	options, whole, named, order := c.New("MTLCompileOptions"), c.String(apple.Preamble()+text), c.String(name),
		c.New("MTLComputePipelineDescriptor")
	c.Send(options, objc.SetLanguageVersion, objc.Num(3<<16|1))
	c.Send(options, objc.SetFastMathEnabled, objc.Yes(false))
	var problem objc.Object
	library := c.Object(m.gpu, objc.NewLibraryWithSource, objc.Obj(whole), objc.Obj(options), objc.Out(&problem))
	require.NotZero(m.t, library, "%s", c.Text(c.Object(problem, objc.LocalizedDescription)))
	require.NotZero(m.t, problem, "a good library has warnings")
	function := c.Object(library, objc.NewFunctionWithName, objc.Obj(named))
	c.Send(order, objc.SetComputeFunction, objc.Obj(function))
	problem = 0
	p := c.Object(m.gpu, objc.NewComputePipelineState, objc.Obj(order), objc.Num(0), objc.Nothing(), objc.Out(&problem))
	require.NotZero(m.t, p)
	c.Release(options, whole, named, order, library, function)
	return p
}

// encoder begins a command buffer.
func (m *mac) encoder() (queue, buffer, encoder objc.Object) {
	queue = m.c.Object(m.gpu, objc.NewCommandQueue, objc.Num(2))
	buffer = m.c.Object(queue, objc.CommandBuffer)
	return queue, buffer, m.c.Object(buffer, objc.ComputeCommandEncoder, objc.Num(1))
}

const set = `kernel void set(device uint* x [[buffer(0)]], threadgroup uint* s [[threadgroup(0)]]) { x[0] = 1; }`

// TestProblems: what a Mac ends a program for, or passes over, is a problem here.
func TestProblems(t *testing.T) {
	bytes := make([]byte, 64)
	for says, misuse := range map[string]func(m *mac){
		"is no object":             func(m *mac) { m.c.Send(12345, objc.Retain) },
		"MTLDevice 0x10010 was de": func(m *mac) { m.c.Release(m.gpu); m.c.Send(m.gpu, objc.Retain) },
		"does not understand":      func(m *mac) { m.c.Send(m.gpu, objc.Commit) },
		"takes 1 arguments, and got 0": func(m *mac) {
			m.c.Send(m.gpu, objc.NewCommandQueue)
		},
		"argument 0 of supportsFamily: is of kind 'Q', and the type is q": func(m *mac) {
			m.c.Send(m.gpu, objc.SupportsFamily, objc.Num(1007))
		},
		"leads nowhere": func(m *mac) {
			m.c.Send(m.gpu, objc.NewBufferWithBytes, objc.Bytes(nil), objc.Num(1), objc.Num(0))
		},
		"a place that holds something": func(m *mac) {
			x := objc.Object(1)
			s := m.c.String("")
			m.c.Send(m.gpu, objc.NewLibraryWithSource, objc.Obj(s), objc.Obj(s), objc.Out(&x))
		},
		"it has to be whole pages": func(m *mac) {
			m.c.Send(m.gpu, objc.NewBufferWithBytesNoCopy, objc.Bytes(bytes), objc.Num(64), objc.Num(0), objc.Obj(0))
		},
		"commit with an open encoder": func(m *mac) { _, b, _ := m.encoder(); m.c.Send(b, objc.Commit) },
		"waits for ever":              func(m *mac) { _, b, _ := m.encoder(); m.c.Send(b, objc.WaitUntilCompleted) },
		"while another is open": func(m *mac) {
			_, b, _ := m.encoder()
			m.c.Send(b, objc.ComputeCommandEncoder, objc.Num(1))
		},
		"endEncoding after endEncoding": func(m *mac) {
			_, _, e := m.encoder()
			m.c.Send(e, objc.EndEncoding)
			m.c.Send(e, objc.EndEncoding)
		},
		"a dispatch without a pipeline": func(m *mac) {
			_, _, e := m.encoder()
			m.c.Send(e, objc.DispatchThreads, objc.Size(1, 1, 1), objc.Size(1, 1, 1))
		},
		"nothing is bound to x": func(m *mac) {
			_, _, e := m.encoder()
			m.c.Send(e, objc.SetComputePipelineState, objc.Obj(m.pipeline(set, "set")))
			m.c.Send(e, objc.DispatchThreads, objc.Size(1, 1, 1), objc.Size(1, 1, 1))
		},
		"nobody set the length of s": func(m *mac) {
			_, _, e := m.encoder()
			m.c.Send(e, objc.SetComputePipelineState, objc.Obj(m.pipeline(set, "set")))
			b := m.c.Object(m.gpu, objc.NewBufferWithBytes, objc.Bytes(bytes), objc.Num(64), objc.Num(0))
			m.c.Send(e, objc.SetBuffer, objc.Obj(b), objc.Num(0), objc.Num(0))
			m.c.Send(e, objc.DispatchThreads, objc.Size(1, 1, 1), objc.Size(1, 1, 1))
		},
		"x is bound at 2, no multiple of 4": func(m *mac) {
			_, _, e := m.encoder()
			m.c.Send(e, objc.SetComputePipelineState, objc.Obj(m.pipeline(set, "set")))
			b := m.c.Object(m.gpu, objc.NewBufferWithBytes, objc.Bytes(bytes), objc.Num(64), objc.Num(0))
			m.c.Send(e, objc.SetBuffer, objc.Obj(b), objc.Num(2), objc.Num(0))
			m.c.Send(e, objc.DispatchThreads, objc.Size(1, 1, 1), objc.Size(1, 1, 1))
		},
		"1025 threads of a threadgroup": func(m *mac) {
			_, _, e := m.encoder()
			m.c.Send(e, objc.SetComputePipelineState, objc.Obj(m.pipeline(set, "set")))
			m.c.Send(e, objc.DispatchThreads, objc.Size(1, 1, 1), objc.Size(1025, 1, 1))
		},
		"setBuffer:offset:atIndex: at index 31": func(m *mac) {
			_, _, e := m.encoder()
			b := m.c.Object(m.gpu, objc.NewBufferWithBytes, objc.Bytes(bytes), objc.Num(64), objc.Num(0))
			m.c.Send(e, objc.SetBuffer, objc.Obj(b), objc.Num(0), objc.Num(31))
		},
		"there have to be fewer than 4096": func(m *mac) {
			_, _, e := m.encoder()
			m.c.Send(e, objc.SetBytes, objc.Bytes(make([]byte, 4096)), objc.Num(4096), objc.Num(0))
		},
		"no command buffer left": func(m *mac) {
			q, _, _ := m.encoder()
			m.c.Send(q, objc.CommandBuffer)
			m.c.Send(q, objc.CommandBuffer)
		},
		"NSRangeException": func(m *mac) { m.c.Send(m.rt.AllDevices(), objc.ObjectAtIndex, objc.Num(1)) },
		"for another language": func(m *mac) {
			var x objc.Object
			s := m.c.String(apple.Preamble())
			m.c.Send(m.gpu, objc.NewLibraryWithSource, objc.Obj(s), objc.Obj(m.c.New("MTLCompileOptions")), objc.Out(&x))
		},
		"with fast math": func(m *mac) {
			var x objc.Object
			s, o := m.c.String(apple.Preamble()), m.c.New("MTLCompileOptions")
			m.c.Send(o, objc.SetLanguageVersion, objc.Num(3<<16|1))
			m.c.Send(m.gpu, objc.NewLibraryWithSource, objc.Obj(s), objc.Obj(o), objc.Out(&x))
		},
	} {
		m := newMac(t)
		require.Panics(t, func() { m.c.Pooled(func() { misuse(m) }) }, says)
		require.NotEmpty(t, m.rt.Problems(), says)
		require.Contains(t, m.rt.Problems()[0], says)
	}
}

// TestPools: objects that are not new want a pool, of the thread that they are made on, and last as long as that.
func TestPools(t *testing.T) {
	m := newMac(t)
	require.Panics(t, func() { m.c.Object(m.gpu, objc.DeviceName) })
	require.Contains(t, m.rt.Problems()[0], "no pool in place")
	m = newMac(t)
	outer, inner := m.rt.Push(), m.rt.Push()
	name := m.c.Object(m.gpu, objc.DeviceName)
	require.Equal(t, "Apple M1", m.c.Text(name))
	require.Panics(t, func() { m.rt.Pop(outer) }, "it is not the last")
	done := make(chan bool)
	go func() {
		defer close(done)
		require.Panics(t, func() { m.rt.Pop(inner) }, "it is another thread's")
	}()
	<-done
	m.rt.Pop(inner)
	require.Panics(t, func() { m.c.Text(name) }, "it went with its pool")
	m.rt.Pop(outer)
}

// TestLeaks: what nobody releases is a leak, and what is released twice a problem.
func TestLeaks(t *testing.T) {
	m := newMac(t)
	s := m.c.String("x")
	require.Len(t, m.rt.Leaks(), 2)
	m.c.Release(s, m.gpu)
	require.Empty(t, m.rt.Leaks())
	require.Panics(t, func() { m.c.Release(s) })
}

// TestReleasedTooEarly: a command buffer keeps nothing alive, and says so when it runs.
func TestReleasedTooEarly(t *testing.T) {
	m := newMac(t)
	c := m.c
	c.Pooled(func() {
		_, b, e := m.encoder()
		p := m.pipeline(`kernel void set(device uint* x [[buffer(0)]]) { x[0] = 1; }`, "set")
		buffer := c.Object(m.gpu, objc.NewBufferWithBytes, objc.Bytes(make([]byte, 4)), objc.Num(4), objc.Num(0))
		c.Send(e, objc.SetComputePipelineState, objc.Obj(p))
		c.Send(e, objc.SetBuffer, objc.Obj(buffer), objc.Num(0), objc.Num(0))
		c.Send(e, objc.DispatchThreads, objc.Size(1, 1, 1), objc.Size(1, 1, 1))
		c.Send(e, objc.EndEncoding)
		c.Release(buffer)
		c.Send(b, objc.Commit)
		c.Send(b, objc.WaitUntilCompleted)
		require.Equal(t, uint64(5), c.Send(b, objc.Status))
		require.Contains(t, c.Text(c.Object(c.Object(b, objc.ErrorOf), objc.LocalizedDescription)), "Invalid Resource")
	})
	require.Contains(t, m.rt.Problems()[0], "runs with what was released")
}
