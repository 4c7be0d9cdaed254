package amd64

import (
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDetect compares with what the Linux kernel says of the processor.
func TestDetect(t *testing.T) {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil || runtime.GOARCH != "amd64" {
		t.Skip("no /proc/cpuinfo of an amd64 processor")
	}
	have := map[string]bool{}
	for _, line := range strings.Split(string(text), "\n") {
		if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == "flags" {
			for _, f := range strings.Fields(v) {
				have[f] = true
			}
		}
	}
	all := func(names string) bool {
		for _, n := range strings.Fields(names) {
			if !have[n] {
				return false
			}
		}
		return true
	}
	want := NoLevel
	if all("avx2 fma f16c bmi1 bmi2 abm movbe popcnt") {
		want = AVX2
		if all("avx512f avx512bw avx512cd avx512dq avx512vl") {
			want = AVX512
			if all("avx512_bf16") {
				want = AVX512BF16
			}
		}
	}
	require.Equal(t, want, Detect())
}
