package format

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/tensor"
)

// contents is all of a file's bytes: mapped, or read from a stream.
type contents struct {
	name  string         // for messages
	m     *metal.Mapping // nil: bytes
	bytes []byte
}

// openFile maps a file. What is no regular file, such as a pipe, is read.
func openFile(path string) (*contents, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("cannot open %s: %w", path, cause(err))
	}
	defer file.Close()
	st, err := file.Stat()
	if err == nil && !st.IsDir() && !st.Mode().IsRegular() {
		return readStream(file, path)
	}
	m, err := metal.MapFile(file)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", path, cause(err))
	}
	return &contents{name: path, m: m}, nil
}

// readStream reads all of a stream.
func readStream(r io.Reader, name string) (*contents, error) {
	b, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", name, cause(err))
	}
	return &contents{name: name, bytes: b}, nil
}

// close ends the use of the contents but by the arrays that were made.
func (f *contents) close() {
	if f.m != nil {
		f.m.Release()
	}
}

// size is the number of bytes.
func (f *contents) size() int64 {
	if f.m != nil {
		return f.m.Len()
	}
	return int64(len(f.bytes))
}

// guard calls read with the bytes, which must not be changed or kept. It is an error if they cannot be read.
func (f *contents) guard(read func(b []byte) error) error {
	if f.m != nil {
		return f.m.Guard(read)
	}
	return read(f.bytes)
}

// ReadAt reads from the contents, as an io.ReaderAt.
func (f *contents) ReadAt(p []byte, off int64) (n int, err error) {
	if off < 0 {
		return 0, fmt.Errorf("the offset is negative: %d", off)
	}
	err = f.guard(func(b []byte) error {
		if off < int64(len(b)) {
			n = copy(p, b[off:])
		}
		if n < len(p) {
			return io.EOF
		}
		return nil
	})
	return n, err
}

// array is an array whose elements lie in the contents from a place on, in row-major order. The caller has checked that
// they are all there.
func (f *contents) array(c *tensor.Ctx, spec tensor.Spec, at int64) (*tensor.Array, error) {
	if f.m != nil && spec.DType != tensor.Bool { // a byte of a bool may be neither 0 nor 1
		x, err := tensor.FromMapping(c, spec, f.m, at)
		if !errors.Is(err, metal.ErrNotMapped) {
			return x, err
		}
	}
	if err := fits(c, spec); err != nil {
		return nil, err
	}
	return f.lazy(c, []tensor.Spec{spec}, func(b []byte, out []tensor.HostOperand) error {
		copy(out[0].Bytes, b[at:])
		if spec.DType == tensor.Bool {
			normalizeBools(out[0].Bytes)
		}
		return nil
	})[0], nil
}

// lazy is arrays of those specs, which read fills when one of them is needed. What was read from a stream is not kept:
// then read is called at once, and so it is where there is no device that could compute anything later.
func (f *contents) lazy(c *tensor.Ctx, specs []tensor.Spec, read reader) []*tensor.Array {
	if _, err := tensor.MetalDevice(tensor.DefaultDevice()); f.m != nil && err == nil {
		s := &source{f, specs, read}
		f.m.Retain()
		runtime.AddCleanup(s, (*metal.Mapping).Release, f.m)
		return load.Call(c, loadAttrs{s})
	}
	out := make([]tensor.HostOperand, len(specs))
	for i, spec := range specs {
		out[i] = tensor.HostOperand{Spec: spec, Bytes: make([]byte, spec.NBytes())}
	}
	arrays := make([]*tensor.Array, len(specs))
	err := f.guard(func(b []byte) error { return read(b, out) })
	for i := range arrays {
		if err != nil {
			arrays[i] = tensor.Fail(c, load.Op().Name(), "%w", err)
		} else {
			arrays[i] = tensor.FromBytes(c, specs[i], out[i].Bytes)
		}
	}
	return arrays
}

// reader fills the elements of a file's arrays, in row-major order, from the file's bytes.
type reader func(b []byte, out []tensor.HostOperand) error

// source is where the arrays of a call of load come from. It keeps the mapping.
type source struct {
	file  *contents
	specs []tensor.Spec
	read  reader
}

type loadAttrs struct{ From *source }

// load reads arrays that cannot lie in a file's pages: those in another form, or of a device that has no use for them.
var load = tensor.Declare[loadAttrs]("load")

func init() {
	load.Define(tensor.Rules[loadAttrs]{
		Shape: func(_ []tensor.Spec, a loadAttrs, outs []tensor.Shape) ([]tensor.Shape, error) {
			for _, spec := range a.From.specs {
				outs = append(outs, spec.Shape)
			}
			return outs, nil
		},
		DType: func(_ []tensor.Spec, a loadAttrs, outs []tensor.DType) ([]tensor.DType, error) {
			for _, spec := range a.From.specs {
				outs = append(outs, spec.DType)
			}
			return outs, nil
		},
		Host: func(h *tensor.HostCall, a loadAttrs) error {
			err := a.From.file.guard(func(b []byte) error { return a.From.read(b, h.Out) })
			runtime.KeepAlive(a.From)
			return err
		},
	})
}

// fits says why there can be no array of that spec: its shape is none, or it would pass the memory limit.
func fits(c *tensor.Ctx, spec tensor.Spec) error {
	if err := spec.Shape.Check(spec.DType); err != nil {
		return err
	}
	return tensor.Fits(c, spec)
}

// cause is an error of the file system without its operation and path, which the caller names.
func cause(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}
