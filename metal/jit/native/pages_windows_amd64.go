package native

import (
	"os"
	"unsafe"

	"golang.org/x/sys/windows"
)

// Map returns zeroed pages outside the Go heap, for at least n bytes.
func Map(n int) ([]byte, error) {
	page := os.Getpagesize()
	n = max(n+page-1, page) &^ (page - 1)
	p, err := windows.VirtualAlloc(0, uintptr(n), windows.MEM_RESERVE|windows.MEM_COMMIT, windows.PAGE_READWRITE)
	if err != nil {
		return nil, err
	}
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&p)), n), nil // p is no Go pointer: the detour tells vet so
}

// makeExecutable lets pages be executed, and never be written again.
func makeExecutable(pages []byte) error {
	var before uint32
	return windows.VirtualProtect(address(pages), uintptr(len(pages)), windows.PAGE_EXECUTE_READ, &before)
}

// Unmap gives back pages of Map.
func Unmap(pages []byte) {
	_ = windows.VirtualFree(address(pages), 0, windows.MEM_RELEASE) // it fails for nothing that Map gave
}

func address(pages []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(pages))) }
