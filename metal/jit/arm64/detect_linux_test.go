package arm64

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAuxv reads auxiliary vectors with the words that Linux has on an Apple M1, a Neoverse V1, a Neoverse N1 and a
// Cortex-A72 (bits of asm/hwcap.h).
func TestAuxv(t *testing.T) {
	const caps, caps2 = 16, 26
	for _, c := range []struct {
		caps, caps2 uintptr
		want        features
	}{
		{1<<10 | 1<<20 | 1<<23, 0, features{fp16: true, fhm: true}},
		{1<<10 | 1<<20 | 1<<23, 1<<13 | 1<<14, features{fp16: true, fhm: true, bf16: true}},
		{1<<9 | 1<<10 | 1<<20, 0, features{fp16: true}},
		{0xff, 0, features{}},
	} {
		require.Equal(t, c.want, ofAuxv([][2]uintptr{{6, 4096}, {caps, c.caps}, {25, 1}, {caps2, c.caps2}, {0, 0}}))
	}
	require.Equal(t, features{}, ofAuxv(nil))
}
