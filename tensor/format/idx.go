package format

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/mlxlua/mlxlua/tensor"
)

// idxTypes are the dtypes of IDX files: http://yann.lecun.com/exdb/mnist describes the format.
var idxTypes = map[byte]tensor.DType{0x08: tensor.Uint8, 0x09: tensor.Int8, 0x0B: tensor.Int16, 0x0C: tensor.Int32,
	0x0D: tensor.Float32, 0x0E: tensor.Float64}

// LoadIDX is the array in an IDX file, the format of MNIST's digits, or in such a file that gzip has compressed. The
// elements are read when they are needed: only then is it an error that there are fewer, or more, than the header says.
func LoadIDX(path string, ctx ...*tensor.Ctx) *tensor.Array {
	const op = "load_idx"
	c := tensor.Call(ctx)
	f, err := openFile(path)
	if err != nil {
		return tensor.Fail(c, op, "%w", err)
	}
	defer f.close()
	var x *tensor.Array
	err = f.guard(func(b []byte) error {
		r, err := unzipped(b)
		if err != nil {
			return err
		}
		spec, err := readIDXHeader(r)
		if err != nil {
			return err
		}
		if err := fits(c, spec); err != nil {
			return err
		}
		x = f.lazy(c, []tensor.Spec{spec}, func(b []byte, out []tensor.HostOperand) error {
			if err := readIDX(b, out[0].Bytes); err != nil {
				return fmt.Errorf("%s: %w", f.name, err)
			}
			swapBytes(out[0].Bytes, spec.DType.Size())
			return nil
		})[0]
		return nil
	})
	if err != nil {
		return tensor.Fail(c, op, "%s: %w", path, err)
	}
	return x
}

// unzipped reads what b is, or what gzip has made b of.
func unzipped(b []byte) (io.Reader, error) {
	if !bytes.HasPrefix(b, []byte{0x1f, 0x8b}) {
		return bytes.NewReader(b), nil
	}
	r, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, fmt.Errorf("the file is no gzip file: %w", err)
	}
	return bufio.NewReader(r), nil
}

// readIDXHeader reads two zeros, a type, the number of dimensions, and these, of 4 bytes each.
func readIDXHeader(r io.Reader) (tensor.Spec, error) {
	var spec tensor.Spec
	var magic [4]byte
	if _, err := io.ReadFull(r, magic[:]); err != nil || magic[0] != 0 || magic[1] != 0 {
		return spec, errors.New("not an IDX file: it does not begin with two zeros, a type, and a number of dimensions")
	}
	d, ok := idxTypes[magic[2]]
	if !ok {
		return spec, fmt.Errorf("not an IDX file, or of an unknown type: %#02x", magic[2])
	}
	sizes := make([]uint32, magic[3])
	if err := binary.Read(r, binary.BigEndian, sizes); err != nil {
		return spec, errors.New("the file ends within its header")
	}
	spec = tensor.Spec{Shape: tensor.Shape{}, DType: d}
	for _, n := range sizes {
		spec.Shape = append(spec.Shape, int(n))
	}
	return spec, nil
}

// readIDX reads the elements of a file's bytes, which are big-endian.
func readIDX(b, out []byte) error {
	r, err := unzipped(b)
	if err != nil {
		return err
	}
	if _, err := readIDXHeader(r); err != nil {
		return err
	}
	if n, err := io.ReadFull(r, out); errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return shortElements(int64(n), int64(len(out)))
	} else if err != nil {
		return err
	}
	var more [1]byte
	switch n, err := r.Read(more[:]); {
	case n > 0:
		return fmt.Errorf("there are more than the %d bytes of elements that the header says", len(out))
	case err != io.EOF:
		return err // gzip's checksum is wrong
	}
	return nil
}
