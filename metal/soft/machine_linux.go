package soft

import (
	"os"
	"runtime"
	"strconv"
	"strings"
)

func physicalMemory() int64 {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	n, err := strconv.ParseInt(strings.TrimSuffix(field(string(text), "MemTotal"), " kB"), 10, 64)
	if err != nil {
		return 0
	}
	return n << 10
}

func processorName() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	if name := field(string(text), "model name"); name != "" {
		return name
	}
	return runtime.GOARCH
}
