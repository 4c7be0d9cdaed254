package soft

import (
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/windows"
)

// memoryStatus is Windows's MEMORYSTATUSEX.
type memoryStatus struct {
	length, load                                                       uint32
	total, avail, totalPage, availPage, totalVirt, availVirt, extended uint64
}

func physicalMemory() int64 {
	s := memoryStatus{}
	s.length = uint32(unsafe.Sizeof(s))
	proc := windows.NewLazySystemDLL("kernel32.dll").NewProc("GlobalMemoryStatusEx")
	if proc.Find() != nil {
		return 0
	}
	if ok, _, _ := proc.Call(uintptr(unsafe.Pointer(&s))); ok == 0 {
		return 0
	}
	return int64(s.total)
}

func processorName() string {
	if name := os.Getenv("PROCESSOR_IDENTIFIER"); name != "" {
		return name
	}
	return runtime.GOARCH
}
