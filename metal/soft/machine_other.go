//go:build !linux && !darwin && !windows

package soft

import "runtime"

func physicalMemory() int64 { return 0 }

func processorName() string { return runtime.GOARCH }
