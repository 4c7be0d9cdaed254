package kit

import (
	"fmt"
	"math"

	"github.com/mlxlua/mlxlua/tensor"
)

// CheckIndexDTypes says what is wrong with the dtypes of indices.
func CheckIndexDTypes(index []tensor.Spec) error {
	for _, x := range index {
		if !x.DType.IsInteger() {
			return fmt.Errorf("indices have dtype %v, want integers", x.DType)
		}
	}
	return nil
}

// IndexText is an index as a kernel noted it.
func IndexText(noted uint32) string {
	switch v := int64(noted) - 1<<31; v {
	case math.MaxInt32:
		return "2147483647 or more"
	case -math.MaxInt32:
		return "-2147483647 or less"
	default:
		return fmt.Sprint(v)
	}
}

// CheckIndex refuses indices that are no integers.
func CheckIndex(c *tensor.Ctx, op string, index *tensor.Array) *tensor.Array {
	if d := index.DType(); !d.IsInteger() {
		return tensor.Fail(c, op, "indices have dtype %v, want integers", d)
	}
	return nil
}
