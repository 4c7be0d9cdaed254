package soft

import (
	"unsafe"

	"golang.org/x/sys/windows"
)

func mapMemory(n int) ([]byte, error) {
	p, err := windows.VirtualAlloc(0, uintptr(n), windows.MEM_RESERVE|windows.MEM_COMMIT, windows.PAGE_READWRITE)
	if err != nil {
		return nil, err
	}
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&p)), n), nil // p is no Go pointer: the detour tells vet so
}

func unmapMemory(b []byte) error { return windows.VirtualFree(addressOf(b), 0, windows.MEM_RELEASE) }
