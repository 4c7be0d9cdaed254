package arm64

import (
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLevels: a level takes all that those before it have.
func TestLevels(t *testing.T) {
	for _, c := range []struct {
		f    features
		want Level
	}{
		{features{}, NEON}, {features{fhm: true, bf16: true}, NEON}, {features{fp16: true}, FP16},
		{features{fp16: true, bf16: true}, FP16}, {features{fp16: true, fhm: true}, FP16FML},
		{features{fp16: true, fhm: true, bf16: true}, BF16},
	} {
		require.Equal(t, c.want, c.f.level(), "%+v", c.f)
	}
}

// TestDetect compares with what the Linux kernel says of the processor in another place.
func TestDetect(t *testing.T) {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil || runtime.GOARCH != "arm64" {
		t.Skip("no /proc/cpuinfo of an arm64 processor")
	}
	for line := range strings.Lines(string(text)) {
		if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == "Features" {
			has := func(f string) bool { return strings.Contains(" "+strings.TrimSpace(v)+" ", " "+f+" ") }
			require.Equal(t, features{fp16: has("asimdhp"), fhm: has("asimdfhm"), bf16: has("bf16")}.level(), Detect())
			return
		}
	}
	t.Skip("no features in /proc/cpuinfo")
}
