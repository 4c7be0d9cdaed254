package ptx_test

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal/ptx"
	"github.com/mlxlua/mlxlua/metal/ptx/machine"
)

// TestNeighbours: loads and stores of neighbours that are known to be aligned are one access, checked once.
func TestNeighbours(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		params, body string
		want         []string
		checks       int
	}{
		{"device const float4 *a, device float4 *b", "b[i] = a[i] + 1.0f;",
			[]string{"ld.global.v4.b32", "st.global.v4.b32"}, 2},
		{"device const half4 *a, device half4 *b", "b[i] = a[i] + 1.0h;",
			[]string{"ld.global.v4.b16", "st.global.v4.b16"}, 2},
		{"device const uchar4 *a, device uchar4 *b", "b[i] = a[i] + uchar(1);",
			[]string{"ld.global.v4.u8", "st.global.v4.u8"}, 2},
		{"device const ushort2 *a, device ushort2 *b", "b[i] = a[i] + ushort(1);",
			[]string{"ld.global.v2.u16", "st.global.v2.u16"}, 2},
		{"device const ulong2 *a, device ulong2 *b", "b[i] = a[i] + 1ul;",
			[]string{"ld.global.v2.b64", "st.global.v2.b64"}, 2},
		{"device const float *a, device float *b", // eight loads, each its own; one check
			"float s = 0; for (uint k = 0; k < 8; k++) s += a[i + 32 * k]; b[i] = s;", []string{"ld.global.b32"}, 2},
		{"device const float4 *a, device float *b", // all that the sum needs are two accesses
			"float4 x = a[2 * i], y = a[2 * i + 1]; b[i] = x.x + x.y + x.z + x.w + y.x + y.y + y.z + y.w;",
			[]string{"ld.global.v4.b32"}, 2},
	} {
		k := compile(t, "kernel void f("+c.params+", uint i [[thread_position_in_grid]]) { "+c.body+" }")
		text, err := ptx.Print(k, ptx.Options{SM: 80})
		require.NoError(t, err, c.body)
		s := text.String()
		for _, w := range c.want {
			require.Contains(t, s, w, c.body)
		}
		body, _, _ := strings.Cut(s, "st.global")
		body = body[strings.LastIndex(body, "cvta.to.global.u64"):]
		require.Equal(t, c.checks, strings.Count(body, "bra L"), "%s\n%s", c.body, body)
		assemble(t, s, 80)
	}
	// What is bound to where floats may begin is not joined.
	k := compile(t, "kernel void f(device const float4 *a, device float4 *b) { b[0] = a[0]; }")
	text, err := ptx.Print(k, ptx.Options{SM: 80, Align: []int{4, 4}})
	require.NoError(t, err)
	require.NotContains(t, text.String(), ".v4")
	require.NotContains(t, text.String(), ".v2")
}

// TestJoinedFaults: of accesses that are checked together the first one that is outside is the one that is told, what
// is stored before it is stored, and nothing behind it. Lengths cut the objects at each of them.
func TestJoinedFaults(t *testing.T) {
	t.Parallel()
	k := compile(t, `kernel void f(device const int *a, device int4 *b, device int *c,
                   uint i [[thread_position_in_grid]]) {
  int x = a[0], y = a[1], z = a[i + 4], w = a[2 * i + 9];
  b[0] = int4(x, y, z, w);
  c[0] = x + y;
  c[3] = z + w;
}`)
	text, err := ptx.Print(k, ptx.Options{SM: 80})
	require.NoError(t, err)
	require.Contains(t, text.String(), "st.global.v4.b32")
	m, err := machine.New(text.String())
	require.NoError(t, err)
	reads := []int{0, 1, 4, 9}
	for cut := range 3 {
		for n := range 12 {
			lengths := []uint64{40, 16, 16}
			if lengths[cut] = min(lengths[cut], uint64(4*n)); cut == 1 && n > 4 {
				continue
			}
			a, b, c, control := make([]byte, 40), make([]byte, 16), make([]byte, 16), make([]byte, ptx.ControlBytes)
			for i := range 10 {
				binary.LittleEndian.PutUint32(a[4*i:], uint32(100+i))
			}
			// What the text does, one access after the other.
			want := [][]byte{make([]byte, 16), make([]byte, 16)}
			fault := -1
			var object uint64
			for _, r := range reads {
				if fault < 0 && uint64(4*r+4) > lengths[0] {
					object, fault = 1, 4*r
				}
			}
			store := func(ob, at, v int) {
				switch {
				case fault >= 0:
				case uint64(4*at+4) > lengths[ob-1]:
					object, fault = uint64(ob), 4*at
				default:
					binary.LittleEndian.PutUint32(want[ob-2][4*at:], uint32(v))
				}
			}
			for i, v := range []int{100, 101, 104, 109} {
				store(2, i, v)
			}
			store(3, 0, 201)
			store(3, 3, 213)
			args := ptx.Arguments{Control: 100 << 32, Grid: [3]int{1, 1, 1}, Threadgroup: [3]int{1, 1, 1},
				Addresses: []uint64{1 << 32, 2 << 32, 3 << 32}, Lengths: lengths, Inline: make([][]byte, 3)}
			bytes, err := args.Bytes(&text.Layout)
			require.NoError(t, err)
			memory := map[uint64][]byte{1: a, 2: b, 3: c, 100: control}
			require.NoError(t, m.Run(machine.Launch{Args: bytes, Blocks: [3]int{1, 1, 1}, Block: 32,
				Memory: func(at uint64, n int) []byte { return memory[at>>32][uint32(at):][:n] }}))
			require.Equal(t, want, [][]byte{b, c}, "%v", lengths)
			f, ok := ptx.FaultIn(control)
			require.Equal(t, fault >= 0, ok, "%v", lengths)
			if ok {
				require.Equal(t, object<<48|uint64(fault), f.Pointer, "%v", lengths)
				require.Equal(t, object > 1, text.Sites[f.Site].Op.String() == "store", "%v", lengths)
			}
		}
	}
}
