package format

import "github.com/mlxlua/mlxlua/tensor"

// Deferred is an array of that spec, whose elements fill writes in row-major order when they are needed: on the
// goroutine of the array's stream, so fill may hold no array and no value of a script. Without a device fill is called
// at once. The array fails if there can be none of that spec, or with fill's error.
func Deferred(c *tensor.Ctx, spec tensor.Spec, fill func(dst []byte) error) *tensor.Array {
	if err := fits(c, spec); err != nil {
		return tensor.Fail(c, load.Op().Name(), "%w", err)
	}
	if _, err := tensor.MetalDevice(tensor.DefaultDevice()); err != nil {
		dst := make([]byte, spec.NBytes())
		if err := fill(dst); err != nil {
			return tensor.Fail(c, load.Op().Name(), "%w", err)
		}
		return tensor.FromBytes(c, spec, dst)
	}
	return load.Call(c, loadAttrs{&source{&contents{}, []tensor.Spec{spec},
		func(_ []byte, out []tensor.HostOperand) error { return fill(out[0].Bytes) }}})[0]
}
