package metal

import (
	"os"
	"syscall"
	"unsafe"
)

// mapFile maps the first n bytes of a file, which is at least so long; what is written goes to pages of its own.
func mapFile(f *os.File, n int) ([]byte, func() error, error) {
	size := uint64(n)
	h, err := syscall.CreateFileMapping(syscall.Handle(f.Fd()), nil, syscall.PAGE_WRITECOPY, uint32(size>>32),
		uint32(size), nil)
	if err != nil {
		return nil, nil, os.NewSyscallError("CreateFileMapping", err)
	}
	defer syscall.CloseHandle(h) // the view keeps it
	at, err := syscall.MapViewOfFile(h, syscall.FILE_MAP_COPY, 0, 0, uintptr(n))
	if err != nil {
		return nil, nil, os.NewSyscallError("MapViewOfFile", err)
	}
	// The address is no Go pointer: it is read through a pointer to it, as go vet asks.
	b := unsafe.Slice(*(**byte)(unsafe.Pointer(&at)), n)
	return b, func() error { return syscall.UnmapViewOfFile(at) }, nil
}
