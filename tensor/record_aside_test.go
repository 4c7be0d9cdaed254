package tensor_test

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/tensor"
)

// stubborn is a call on the host that makes ones, ends when gate is closed and looks at no context.
type stubborn struct {
	gate   chan struct{}
	begun  atomic.Int32
	ended  atomic.Int32
	least  time.Duration
	holder *tensor.Holder
}

func (s *stubborn) call() *tensor.Array {
	body := func(h *tensor.HostCall) error {
		return h.Aside(s.least, func() error {
			s.begun.Add(1)
			<-s.gate
			for b := h.Out[0].Bytes; len(b) > 0; b = b[4:] {
				binary.LittleEndian.PutUint32(b, math.Float32bits(1))
			}
			s.ended.Add(1)
			return nil
		})
	}
	c := ctx()
	c.Holder = s.holder
	return hostOp.One(c, hostAttrs{&body}, neg(iota(1<<16)))
}

// stopMidway evaluates x and gives up when the call has begun.
func (s *stubborn) stopMidway(t *testing.T, x *tensor.Array) {
	before := s.begun.Load()
	late, cancel := context.WithCancelCause(background)
	stop := errors.New("enough")
	stopped := make(chan error)
	go func() { stopped <- tensor.Eval(late, x) }()
	require.Eventually(t, func() bool { return s.begun.Load() > before }, 10*time.Second, time.Millisecond)
	cancel(stop)
	require.ErrorIs(t, <-stopped, stop)
}

// TestAsideIsAbandoned: an evaluation that is stopped does not wait for a function aside, whose memory is nobody else's
// until it returns; and whoever reads the array has it computed.
func TestAsideIsAbandoned(t *testing.T) {
	_, dev := withDevice(t, metal.DeviceOptions{})
	s := &stubborn{gate: make(chan struct{})}
	y := s.call()
	s.stopMidway(t, y)
	require.NoError(t, tensor.Synchronize(background), "the stream is free")
	require.Equal(t, []float32{0, -1, -2}, floats(t, neg(iota(3))))
	require.Equal(t, tensor.Lazy, y.State())
	require.GreaterOrEqual(t, dev.Memory().Active, int64(2<<18), "what it reads and writes stays")
	zeros := make([]*tensor.Array, 8)
	for i := range zeros {
		zeros[i] = mul(iota(1<<16), number(0))
		eval(t, zeros[i])
	}
	close(s.gate)
	require.Eventually(t, func() bool { return s.ended.Load() == 1 }, 10*time.Second, time.Millisecond)
	for _, z := range zeros {
		require.Equal(t, make([]float32, 1<<16), floats(t, z))
	}
	require.Equal(t, float32(1), floats(t, y)[1<<16-1])
	require.Equal(t, int32(2), s.begun.Load())
}

// TestAsidesAreBounded: as many as there are processors for are at work, abandoned or not; a further one waits, until
// one of them returns or it is stopped itself.
func TestAsidesAreBounded(t *testing.T) {
	withDevice(t, metal.DeviceOptions{})
	s := &stubborn{gate: make(chan struct{})}
	most := int32(2 * runtime.GOMAXPROCS(0))
	for range most {
		s.stopMidway(t, s.call())
	}
	late, cancel := context.WithTimeout(background, 20*time.Millisecond)
	defer cancel()
	y := s.call()
	require.ErrorIs(t, tensor.Eval(late, y), context.DeadlineExceeded)
	require.Equal(t, most, s.begun.Load())
	s.gate <- struct{}{} // one of them returns
	done := make(chan error)
	go func() { done <- tensor.Eval(background, y) }()
	require.Eventually(t, func() bool { return s.begun.Load() == most+1 }, 10*time.Second, time.Millisecond)
	close(s.gate)
	require.NoError(t, <-done)
	require.Equal(t, float32(1), floats(t, y)[0])
}

// TestAsideIsNotBegunInVain: what takes longer than there is time is not begun. Where nobody ends the evaluation then,
// it is.
func TestAsideIsNotBegunInVain(t *testing.T) {
	withDevice(t, metal.DeviceOptions{})
	refusal := errors.New("too long")
	s := &stubborn{gate: make(chan struct{}), least: time.Hour}
	close(s.gate)
	limit := tensor.NewKernelTime(20*time.Millisecond, refusal, func() {})
	s.holder = tensor.NewHolder(tensor.HolderLimits{Kernels: limit})
	y := s.call()
	require.ErrorIs(t, tensor.Eval(background, y), refusal)
	require.Zero(t, s.begun.Load())

	limit = tensor.NewKernelTime(0, refusal, func() {})
	limit.Reset(time.Now().Add(20 * time.Millisecond))
	s.holder = tensor.NewHolder(tensor.HolderLimits{Kernels: limit})
	require.NoError(t, tensor.Eval(background, s.call()))
	require.Equal(t, int32(1), s.begun.Load())
}
