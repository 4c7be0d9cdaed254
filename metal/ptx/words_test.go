package ptx_test

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal/ptx"
	"github.com/mlxlua/mlxlua/metal/ptx/machine"
)

// TestWords: what a launch is told by words of memory, and what it tells by them.
func TestWords(t *testing.T) {
	t.Parallel()
	const control, words, data = 1 << 40, 2 << 40, 3 << 40
	const stop, skip, other, fault, notice = words, words + 8, words + 12, words + 16, words + 20
	k := compile(t, `kernel void f(device uint *p, uint i [[thread_position_in_grid]]) {
  uint x = p[i];
  while (x % 2 != 0) x = x * 5;
  p[i + x] = 9;
}`)
	text, err := ptx.Print(k, ptx.Options{SM: 80})
	require.NoError(t, err)
	require.True(t, text.Asks)
	for _, c := range []struct {
		name                    string
		value                   uint32 // of p[0]
		skip, other, stop       uint32
		stopped, faulted, wrote bool
		halts                   bool // it would not end by itself
	}{
		{name: "runs", wrote: true},
		{name: "skipped", skip: 1},
		{name: "skipped by the other word", other: 7},
		{name: "a stop that nobody asks for", stop: 1, wrote: true},
		{name: "stopped", value: 1, stop: 1, stopped: true},
		{name: "stopped late", value: 1, stopped: true, halts: true},
		{name: "faults", value: 100, faulted: true},
	} {
		memory := map[uint64][]byte{control >> 40: make([]byte, ptx.ControlBytes), words >> 40: make([]byte, 24),
			data >> 40: make([]byte, 64)}
		put := func(at uint64, v uint32) { binary.LittleEndian.PutUint32(memory[at>>40][uint32(at):], v) }
		get := func(at uint64) uint32 { return binary.LittleEndian.Uint32(memory[at>>40][uint32(at):]) }
		put(data, c.value)
		put(stop, c.stop)
		put(skip, c.skip)
		put(other, c.other)
		a := ptx.Arguments{Control: control, Stop: stop, Skips: [2]uint64{skip, other}, FaultWord: fault, Notice: notice,
			Tag: 5, Grid: [3]int{1, 1, 1}, Threadgroup: [3]int{1, 1, 1}, Addresses: []uint64{data}, Lengths: []uint64{64},
			Inline: make([][]byte, 1)}
		args, err := a.Bytes(&text.Layout)
		require.NoError(t, err)
		m, err := machine.New(text.String())
		require.NoError(t, err)
		rests := 0
		require.NoError(t, m.Run(machine.Launch{Args: args, Blocks: [3]int{1, 1, 1}, Block: 32,
			Memory: func(at uint64, n int) []byte { return memory[at>>40][uint32(at):][:n] },
			Rest: func() error {
				if rests++; rests == 5 && c.halts {
					put(stop, 1)
				}
				if rests > 100 {
					return errors.New("it does not end")
				}
				return nil
			}}), c.name)
		want := map[bool]uint32{true: 1}
		require.Equal(t, 5*want[c.stopped], get(stop+4), "%s: the tag", c.name)
		require.Equal(t, want[c.faulted], get(fault), "%s: the fault's word", c.name)
		require.Equal(t, want[c.stopped || c.faulted], get(notice), "%s: the notice", c.name)
		require.Equal(t, c.wrote, get(data) == 9, c.name)
		f, ok := ptx.FaultIn(memory[control>>40])
		require.Equal(t, c.faulted, ok, c.name)
		if ok {
			require.Equal(t, ptx.Fault{Tag: 5, Site: 1, Pointer: 1<<48 | 400}, f)
		}
	}
}
