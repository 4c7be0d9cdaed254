package ptx_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal/interp"
	"github.com/mlxlua/mlxlua/metal/kerneltest"
	"github.com/mlxlua/mlxlua/metal/ptx"
	"github.com/mlxlua/mlxlua/metal/ptx/machine"
)

// TestMasks executes texts on the machine: lanes that meet where they must, with the masks that they must
// have, and write what the interpreter writes.
func TestMasks(t *testing.T) {
	t.Parallel()
	n, ran := 0, 0
	for _, c := range slices.Concat(groupCases(), matrixCases(), endingCases(), atomicCases(), builtinCases()) {
		if c.name == "atomic f32" { // the machine has no atomic operations on floats
			continue
		}
		if n++; !*all && strings.HasPrefix(c.name, "group") && n%5 != 0 {
			continue
		}
		ran++
		for _, sm := range []int{75, 90} {
			text, err := ptx.Print(c.k, ptx.Options{SM: sm})
			require.NoError(t, err)
			l := c.launch
			l.Buffers = [][]byte{l.Buffers[0], bytes.Clone(l.Buffers[1])}
			a := ptx.Arguments{Control: 100 << 32, Grid: l.Grid, Threadgroup: l.Threadgroup,
				Addresses: []uint64{3 << 32, 4 << 32},
				Lengths:   []uint64{uint64(len(l.Buffers[0])), uint64(len(l.Buffers[1]))}, Inline: make([][]byte, 2)}
			args, err := a.Bytes(&text.Layout)
			require.NoError(t, err)
			got := bytes.Clone(l.Buffers[1])
			m, err := machine.New(text.String())
			require.NoError(t, err)
			memory := map[uint64][]byte{3: l.Buffers[0], 4: got, 100: make([]byte, ptx.ControlBytes)}
			err = m.Run(machine.Launch{Args: args, Blocks: ptx.Blocks(l.Grid, l.Threadgroup),
				Block: ptx.Block(l.Threadgroup), Shared: text.Layout.Shared(&a),
				Memory: func(at uint64, n int) []byte { return memory[at>>32][uint32(at):][:n] }})
			require.NoError(t, err, "%s\n%s", c.name, text)
			p, err := interp.Prepare(c.k, nil)
			require.NoError(t, err)
			require.NoError(t, kerneltest.Run(p.NewRun, l, 1))
			for at := 0; at < len(got); at += 8 {
				if !bytes.Equal(l.Buffers[1][at:at+8], got[at:at+8]) {
					t.Fatalf("%s for sm_%d: thread %d writes %x as word %d, the interpreter %x", c.name, sm, at/8%threads,
						got[at:at+8], at/8/threads, l.Buffers[1][at:at+8])
				}
			}
		}
	}
	require.Greater(t, ran, 30)
}
