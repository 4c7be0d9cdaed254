//go:build amd64 || arm64

package jit

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/mlxlua/mlxlua/metal/jit/native"
	"github.com/mlxlua/mlxlua/metal/launch"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal/kerneltest"
	"github.com/mlxlua/mlxlua/metal/kir"
	"github.com/mlxlua/mlxlua/metal/msl"
)

const squaresText = `
kernel void squares(device T* out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    out[i] = T(i) * T(i);
}
kernel void runs(device T* out [[buffer(0)]], uint sg [[thread_position_in_grid]],
                 uint lane [[thread_index_in_simdgroup]]) {
    for (uint k = 0; k < 4; k++) {
        uint i = sg / 32 * 128 + 32 * k + lane;
        out[i] = T(i) * T(i);
    }
}`

// TestPastTheCache writes squares past the cache: to places that are and are not multiples of a vector, by kernels
// whose threads write one element or a run, where the last threadgroup is not whole, and nothing beside them.
func TestPastTheCache(t *testing.T) {
	t.Parallel()
	_, err := Best()
	if err != nil {
		t.Skip(err)
	}
	for name, size := range map[string]int{"uint": 4, "ulong": 8, "ushort": 2} {
		m, err := msl.Compile(msl.Source{Name: "k", Text: "typedef " + name + " T;\n" + squaresText}, msl.Options{})
		require.NoError(t, err)
		for _, k := range m.Kernels {
			for _, level := range Levels() {
				p, err := Prepare(k, m.Files, Options{Level: level, PastAlways: true})
				require.NoError(t, err)
				for _, offset := range []int{0, 8, 32, 64} {
					threads, each := 1000, 1
					if k.Name == "runs" {
						threads, each = 1024, 4
					}
					n := threads * each
					mem, err := native.Map(offset + n*size + 64)
					require.NoError(t, err)
					require.NoError(t, kerneltest.Run(p.NewRun,
						launch.Launch{Grid: [3]int{threads, 1, 1}, Threadgroup: [3]int{128, 1, 1},
							Buffers: [][]byte{mem[offset : offset+n*size]}}, 0))
					for i := range n {
						var word [8]byte
						copy(word[:size], mem[offset+i*size:])
						want := uint64(i) * uint64(i) & (1<<(8*size) - 1)
						require.Equal(t, want, binary.LittleEndian.Uint64(word[:]), "%s %s %v %d: %d", name, k.Name, level,
							offset, i)
					}
					require.Equal(t, make([]byte, offset), mem[:offset])
					require.Equal(t, make([]byte, 64), mem[offset+n*size:offset+n*size+64])
					native.Unmap(mem)
				}
			}
		}
	}
}

// TestWritesMuch: only what is written and not read counts, and no more than the threads can write.
func TestWritesMuch(t *testing.T) {
	t.Parallel()
	big := make([]byte, 8<<20)
	out := kir.Param{Space: kir.Device, Write: true}
	read := kir.Param{Space: kir.Device, Write: true, Read: true}
	for i, c := range []struct {
		params  []kir.Param
		buffers [][]byte
		grid    [3]int
		want    bool
	}{
		{[]kir.Param{out}, [][]byte{big}, [3]int{1 << 21, 1, 1}, true},
		{[]kir.Param{out}, [][]byte{big}, [3]int{1 << 8, 1 << 8, 1}, true},
		{[]kir.Param{out}, [][]byte{big[1:]}, [3]int{1 << 21, 1, 1}, false},
		{[]kir.Param{out, out}, [][]byte{big[:4<<20], big[:4<<20]}, [3]int{1 << 20, 1, 1}, true},
		{[]kir.Param{out}, [][]byte{big}, [3]int{1 << 10, 1, 1}, false},
		{[]kir.Param{read}, [][]byte{big}, [3]int{1 << 21, 1, 1}, false},
		{[]kir.Param{out}, [][]byte{big}, [3]int{1 << 31, 1 << 31, 1 << 31}, true},
		{[]kir.Param{out}, [][]byte{big}, [3]int{0, 1, 1}, false},
	} {
		l := launch.Launch{Grid: c.grid, Buffers: c.buffers}
		require.Equal(t, c.want, writesMuch(&kir.Kernel{Params: c.params}, &l), fmt.Sprint(i))
	}
}
