//go:build !(syslibs && linux && (amd64 || arm64))

package cuda

import (
	"errors"
	"runtime"
)

// Open makes a driver of a card, numbered from 0, in programs that were built with the tag syslibs, for Linux.
func Open(int) (*Driver, error) {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
		return nil, errors.New("NVIDIA's GPUs are used on Linux only, on amd64 and arm64")
	}
	return nil, errors.New("this program opens no system libraries; one built with -tags syslibs does: " +
		"go run -tags syslibs ./cmd/mlxlua --device cuda")
}
