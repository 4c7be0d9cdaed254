package tokenizer

import (
	"runtime"
	"testing"

	"github.com/mlxlua/mlxlua/internal/serial"
	"github.com/stretchr/testify/require"
)

// TestBytes: Bytes is what Go's heap grows by, within a factor of two.
func TestBytes(t *testing.T) {
	serial.Because(t, "it measures the process's memory")
	heap := func() int64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	for _, kind := range []string{"gpt2", "llama3", "llama2", "gemma", "xlmr", "albert", "bert", "wordlevel", "tekken"} {
		var kept [8]*Tokenizer
		kept[0] = load(t, kind)
		before := heap()
		for i := range kept {
			kept[i] = load(t, kind)
		}
		took := (heap() - before) / (int64(len(kept)) - 1) // the first took the place of another one
		weighed := kept[0].Bytes()
		runtime.KeepAlive(&kept)
		t.Logf("%-10s %6d tokens take %8d bytes, measured %8d", kind, kept[0].Size(), took, weighed)
		require.Less(t, took, 2*weighed, kind)
		require.Less(t, weighed, 2*took, kind)
	}
}
