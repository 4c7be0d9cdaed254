package apple

import (
	"fmt"

	"github.com/mlxlua/mlxlua/metal/apple/objc"
)

// Open makes a driver of this Mac's GPU.
func Open() (*Driver, error) {
	rt, err := objc.Open()
	if err != nil {
		return nil, fmt.Errorf("[metal] %w", err)
	}
	return New(rt)
}
