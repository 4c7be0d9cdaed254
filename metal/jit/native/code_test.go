//go:build (amd64 || arm64) && (linux || darwin)

package native

import (
	"errors"
	"runtime"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// TestCodeIsGivenBack: the pages of code that nobody holds are unmapped.
func TestCodeIsGivenBack(t *testing.T) {
	unmapped := make(chan []byte, 2)
	unmap := func(pages []byte) {
		Unmap(pages)
		unmapped <- pages
	}
	var entry uintptr
	func() {
		c, err := put(Return, makeExecutable, unmap)
		if err != nil {
			t.Skip("pages of machine code are refused: ", err)
		}
		entry = c.entry
		c.Call(0, nil)
		runtime.GC()
		require.Empty(t, unmapped, "it is in use")
		runtime.KeepAlive(c)
	}()
	runtime.GC()
	pages := <-unmapped
	require.Equal(t, entry, uintptr(unsafe.Pointer(unsafe.SliceData(pages))))
	require.ErrorIs(t, syscall.Munmap(pages), syscall.EINVAL, "they are the system's again")

	refused := errors.New("refused")
	_, err := put(Return, func([]byte) error { return refused }, unmap)
	require.ErrorIs(t, err, refused)
	require.ErrorIs(t, syscall.Munmap(<-unmapped), syscall.EINVAL)
	require.Empty(t, unmapped, "each is given back once")
}
