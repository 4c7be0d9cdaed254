package soft

import "unsafe"

// addressOf returns where a slice's memory begins.
func addressOf(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }
