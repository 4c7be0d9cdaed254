package kit

import (
	_ "embed"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/mlxlua/mlxlua/tensor"
)

// IndicesMSL is checked_index in MSL, for kernels that read indices.
//
//go:embed indices.metal
var IndicesMSL string

// CheckIndex refuses a dtype of indices that is not an integer one.
func CheckIndex(d tensor.DType) error {
	if !d.IsInteger() {
		return fmt.Errorf("indices have dtype %v, want integers", d)
	}
	return nil
}

// CheckIndices refuses indices of such dtypes.
func CheckIndices(index []tensor.Spec) error {
	for _, x := range index {
		if err := CheckIndex(x.DType); err != nil {
			return err
		}
	}
	return nil
}

// Notes are words in which kernels note indices that are out of range, one for each kind of index.
type Notes struct {
	words tensor.Operand
	run   *tensor.Run
}

// NewNotes makes n words, in which no index is noted yet.
func NewNotes(r *tensor.Run, n int) (Notes, error) {
	words, err := r.Temp(tensor.Spec{Shape: tensor.Shape{n}, DType: tensor.Uint32})
	if err == nil {
		err = r.Fill(words, zeroWord[:])
	}
	return Notes{words, r}, err
}

// zeroWord is a word without a note.
var zeroWord [4]byte

// Arg binds word i and those after it.
func (n Notes) Arg(i int) tensor.Arg {
	o := n.words
	o.OffsetBytes += int64(4 * i)
	return o.Arg()
}

// Check fails the node, in the name of op, if an index is noted when the kernels that were launched before have run:
// wrong returns the message for an index of kind i.
func (n Notes) Check(op string, wrong func(i int, index string) string) {
	c := &tensor.Ctx{Place: n.run.Place()}
	n.run.Check(n.words, func(b []byte) error {
		for i := range len(b) / 4 {
			if v := binary.LittleEndian.Uint32(b[4*i:]); v != 0 {
				return c.Errorf(op, "%s", wrong(i, noted(v)))
			}
		}
		return nil
	})
}

// noted is an index as a kernel noted it.
func noted(word uint32) string {
	switch v := int64(word) - 1<<31; v {
	case math.MaxInt32:
		return "2147483647 or more"
	case -math.MaxInt32:
		return "-2147483647 or less"
	default:
		return fmt.Sprint(v)
	}
}
