package soft

import (
	"runtime"

	"golang.org/x/sys/unix"
)

func physicalMemory() int64 {
	n, err := unix.SysctlUint64("hw.memsize")
	if err != nil {
		return 0
	}
	return int64(n)
}

func processorName() string {
	if name, err := unix.Sysctl("machdep.cpu.brand_string"); err == nil && name != "" {
		return name
	}
	return runtime.GOARCH
}
