package soft

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSecondLevel reads folders as Linux writes them, and such as it does not.
func TestSecondLevel(t *testing.T) {
	for _, c := range []struct {
		level, kind, size string
		want              int64
	}{
		{"2", "Unified", "2048K", 2 << 20}, {"2", "Data", "512K", 512 << 10}, {"2", "Instruction", "64K", fallbackCache},
		{"3", "Unified", "32768K", fallbackCache}, {"2", "Unified", "2M", fallbackCache}, {"2", "Unified", "", fallbackCache},
	} {
		folder := t.TempDir()
		for i, text := range [][3]string{{"1", "Data", "32K"}, {c.level, c.kind, c.size}} {
			cache := filepath.Join(folder, "index"+string(rune('0'+i)))
			require.NoError(t, os.Mkdir(cache, 0o700))
			for k, name := range []string{"level", "type", "size"} {
				require.NoError(t, os.WriteFile(filepath.Join(cache, name), []byte(text[k]+"\n"), 0o600))
			}
		}
		require.Equal(t, c.want, secondLevel(folder), "%+v", c)
	}
	require.Equal(t, int64(fallbackCache), secondLevel(filepath.Join(t.TempDir(), "none")))
	d := New(Options{Workers: 1})
	require.GreaterOrEqual(t, d.Info().Cache, int64(64<<10))
	require.NoError(t, d.Close())
}
