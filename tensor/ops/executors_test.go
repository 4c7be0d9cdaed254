package ops_test

import (
	"context"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal/soft"
	"github.com/mlxlua/mlxlua/tensor"
)

// sameNaNs writes one NaN over all that the elements of d in b are: kir leaves their sign and payload open.
func sameNaNs(d tensor.DType, b []byte) []byte {
	le := binary.LittleEndian
	switch d {
	case tensor.Float16, tensor.BFloat16:
		infinity := uint16(0x7c00)
		if d == tensor.BFloat16 {
			infinity = 0x7f80
		}
		for i := 0; i < len(b); i += 2 {
			if le.Uint16(b[i:])&0x7fff > infinity {
				le.PutUint16(b[i:], 0x7fff)
			}
		}
	case tensor.Float32, tensor.Complex64:
		for i := 0; i < len(b); i += 4 {
			if le.Uint32(b[i:])&(1<<31-1) > 0x7f800000 {
				le.PutUint32(b[i:], 1<<31-1)
			}
		}
	case tensor.Float64:
		for i := 0; i < len(b); i += 8 {
			if le.Uint64(b[i:])&(1<<63-1) > 0x7ff<<52 {
				le.PutUint64(b[i:], 1<<63-1)
			}
		}
	}
	return b
}

// TestExecutorsDoNotMatter: every op gives the same bytes on the interpreter and as machine code, with AVX2 and with
// AVX-512.
func TestExecutorsDoNotMatter(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes the interpreter long")
	}
	results := func(executor, name string) map[string][]byte {
		all := map[string][]byte{}
		onDevice(t, soft.Options{Executor: executor}, func(device string) {
			if !strings.Contains(device, name) {
				return // the interpreter would stand in
			}
			for op, x := range manyOps(t) {
				b, err := x.Bytes(context.Background())
				require.NoError(t, err, op)
				all[op] = sameNaNs(x.DType(), b)
			}
		})
		return all
	}
	want := results("interp", "interpreter")
	require.Greater(t, len(want), 150)
	for executor, name := range map[string]string{"avx2": "AVX2 machine code", "avx512": "AVX-512 machine code"} {
		t.Run(executor, func(t *testing.T) {
			got := results(executor, name)
			if len(got) == 0 {
				t.Skip("this processor has none")
			}
			require.Len(t, got, len(want))
			for op, b := range want {
				if string(b) != string(got[op]) {
					t.Errorf("%s: other bytes than on the interpreter", op)
				}
			}
		})
	}
}
