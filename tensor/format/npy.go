package format

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/mlxlua/mlxlua/tensor"
)

// npyMagic starts a .npy file; two bytes of version and the header's length follow.
const npyMagic = "\x93NUMPY"

// maxHeader bounds the header, so that a damaged length allocates nothing. NumPy reads at most 10000 bytes itself.
const maxHeader = 1 << 20

// npyTypes are the dtypes of .npy files by kind and size. NumPy has no bfloat16: MLX and ml_dtypes write it as raw
// bytes.
var npyTypes = map[string]tensor.DType{
	"b1": tensor.Bool, "u1": tensor.Uint8, "u2": tensor.Uint16, "u4": tensor.Uint32, "u8": tensor.Uint64,
	"i1": tensor.Int8, "i2": tensor.Int16, "i4": tensor.Int32, "i8": tensor.Int64,
	"f2": tensor.Float16, "f4": tensor.Float32, "f8": tensor.Float64, "c8": tensor.Complex64, "V2": tensor.BFloat16,
}

// LoadNPY is the array in a .npy file, of any version, element order and byte order. It fails if the file cannot be
// opened, or holds a dtype that arrays do not have. The elements are read when they are needed: only then is it an
// error that the file is too short for them.
func LoadNPY(path string, ctx ...*tensor.Ctx) *tensor.Array {
	const op = "load"
	c := tensor.Call(ctx)
	f, err := openFile(path)
	if err != nil {
		return tensor.Fail(c, op, "%w", err)
	}
	defer f.close()
	var x *tensor.Array
	err = f.guard(func(b []byte) error {
		r := bytes.NewReader(b)
		h, err := readNPYHeader(r)
		if err != nil {
			return err
		}
		if err := fits(c, h.spec); err != nil {
			return err
		}
		at := len(b) - r.Len()
		x = f.lazy(c, []tensor.Spec{h.spec}, func(b []byte, out []tensor.HostOperand) error {
			if n := h.spec.NBytes(); int64(len(b)-at) < n {
				return fmt.Errorf("%s: %w", f.name, shortElements(int64(len(b)-at), n))
			}
			h.decode(out[0].Bytes, b[at:])
			return nil
		})[0]
		return nil
	})
	if err != nil {
		return tensor.Fail(c, op, "%s: %w", path, err)
	}
	return x
}

// SaveNPY evaluates an array and writes it to a .npy file as NumPy does, in row-major order. A cancelled ctx stops the
// work. The file appears, or is replaced, when all of it has been written.
func SaveNPY(ctx context.Context, path string, x *tensor.Array) error {
	if err := tensor.Eval(ctx, x); err != nil {
		return err
	}
	return WriteFile("save", path, func(w io.Writer) error { return WriteNPY(ctx, w, x) })
}

// WriteNPY evaluates an array and writes it as a .npy stream.
func WriteNPY(ctx context.Context, w io.Writer, x *tensor.Array) error {
	if err := x.Err(); err != nil {
		return err
	}
	if _, err := w.Write(npyHeaderOf(x.Spec())); err != nil {
		return err
	}
	return writeElements(ctx, w, x)
}

// npyHeaderOf is all of a .npy file before the elements, which begin at a multiple of 64 bytes.
func npyHeaderOf(spec tensor.Spec) []byte {
	var kind string
	for name, d := range npyTypes {
		if d == spec.DType {
			kind = name
		}
	}
	order := "<"
	if spec.DType.Size() == 1 {
		order = "|"
	}
	dict := fmt.Sprintf("{'descr': '%s%s', 'fortran_order': False, 'shape': %v, }", order, kind, spec.Shape)
	const prefix = len(npyMagic) + 4
	length := (prefix+len(dict)+1+63)/64*64 - prefix
	b := append([]byte(npyMagic+"\x01\x00"), byte(length), byte(length>>8))
	return fmt.Appendf(b, "%-*s\n", length-1, dict)
}

// ReadNPY reads a .npy stream: the array's dtype and shape, and its elements in row-major order and this machine's byte
// order. It reads no further than the elements, and not those of an array that would pass the memory limit.
func ReadNPY(r io.Reader) (tensor.Spec, []byte, error) {
	h, err := readNPYHeader(r)
	if err != nil {
		return tensor.Spec{}, nil, err
	}
	if err := fits(nil, h.spec); err != nil {
		return tensor.Spec{}, nil, err
	}
	data, err := readExactly(r, h.spec.NBytes())
	if err != nil {
		return tensor.Spec{}, nil, err
	}
	out := data
	if h.fortran {
		out = make([]byte, len(data))
	}
	h.decode(out, data)
	return h.spec, out, nil
}

// decode writes the elements that lie in src as the header says to dst, in row-major order and this machine's byte
// order. They may be the same memory where the order of elements is.
func (h npyHeader) decode(dst, src []byte) {
	if src = src[:len(dst)]; h.fortran && len(h.spec.Shape) > 1 {
		rowMajor(dst, src, h.spec)
	} else {
		copy(dst, src)
	}
	if h.bigEndian {
		swapBytes(dst, h.word)
	}
	if h.spec.DType == tensor.Bool {
		normalizeBools(dst)
	}
}

// normalizeBools makes 1 of every byte but 0: any such is true in files, and kernels know 0 and 1 only.
func normalizeBools(b []byte) {
	for i, v := range b {
		if v > 1 {
			b[i] = 1
		}
	}
}

// readExactly reads n bytes. A stream that is shorter than its header says costs no more memory than it holds.
func readExactly(r io.Reader, n int64) ([]byte, error) {
	var buf bytes.Buffer
	if f, ok := r.(*os.File); ok {
		if st, err := f.Stat(); err == nil && st.Mode().IsRegular() && st.Size() >= n {
			buf.Grow(int(n) + bytes.MinRead) // the spare room keeps ReadFrom from growing it at the end
		}
	}
	got, err := buf.ReadFrom(io.LimitReader(r, n))
	if err != nil {
		return nil, err
	}
	if got < n {
		return nil, shortElements(got, n)
	}
	return buf.Bytes(), nil
}

// shortElements is the error of a file or stream that ends within its elements.
func shortElements(got, want int64) error {
	return fmt.Errorf("the file ends after %d of %d bytes of elements", got, want)
}

// swapBytes reverses each run of word bytes.
func swapBytes(data []byte, word int) {
	for i := 0; i+word <= len(data); i += word {
		slices.Reverse(data[i : i+word])
	}
}

// rowMajor writes elements that lie in column-major order to dst.
func rowMajor(dst, data []byte, spec tensor.Spec) {
	rank, size := len(spec.Shape), spec.DType.Size()
	if len(data) == 0 {
		return
	}
	strides := make([]int, rank) // of the source, in bytes
	stride := size
	for i, n := range spec.Shape {
		strides[i] = stride
		stride *= n
	}
	out := dst[:0]
	index := make([]int, rank)
	for at := 0; len(out) < len(data); {
		out = append(out, data[at:at+size]...)
		for d := rank - 1; d >= 0; d-- {
			index[d]++
			at += strides[d]
			if index[d] < spec.Shape[d] {
				break
			}
			at -= index[d] * strides[d]
			index[d] = 0
		}
	}
}

// npyHeader is what a .npy file says of its elements.
type npyHeader struct {
	spec      tensor.Spec
	fortran   bool
	bigEndian bool
	word      int // bytes that are swapped together in big-endian files
}

func readNPYHeader(r io.Reader) (npyHeader, error) {
	var h npyHeader
	var start [8]byte
	if _, err := io.ReadFull(r, start[:]); err != nil || string(start[:6]) != npyMagic {
		if err == nil || err == io.EOF || err == io.ErrUnexpectedEOF {
			return h, errors.New("not a .npy file: it does not start with \\x93NUMPY and a version")
		}
		return h, err
	}
	var length [4]byte
	field := length[:2]
	switch {
	case start[6] == 2 || start[6] == 3:
		field = length[:]
	case start[6] != 1:
		return h, fmt.Errorf(".npy version %d.%d is not 1, 2 or 3", start[6], start[7])
	}
	if _, err := io.ReadFull(r, field); err != nil {
		return h, errors.New("the file ends within its header")
	}
	n := binary.LittleEndian.Uint32(length[:])
	if n > maxHeader {
		return h, fmt.Errorf("the header's length is %d, at most %d is accepted", n, maxHeader)
	}
	text, err := io.ReadAll(io.LimitReader(r, int64(n))) // it makes memory for what is there
	if err == nil && len(text) < int(n) {
		err = fmt.Errorf("the file ends within its header: %d of %d bytes are there", len(text), n)
	}
	if err != nil {
		return h, err
	}
	p := headerParser{rest: string(text)}
	if err := p.dict(&h); err != nil {
		return h, fmt.Errorf("bad .npy header: %w", err)
	}
	return h, nil
}

// setType reads a dtype as NumPy writes it: the byte order, the kind, the size.
func (h *npyHeader) setType(descr string) error {
	order, name := byte('|'), descr
	if descr != "" && strings.IndexByte("<>|=", descr[0]) >= 0 {
		order, name = descr[0], descr[1:]
	}
	d, ok := npyTypes[name]
	if !ok {
		return fmt.Errorf("dtype %.99q has no counterpart here", descr)
	}
	h.spec.DType = d
	h.bigEndian = order == '>' && name[0] != 'V'
	h.word = d.Size()
	if d == tensor.Complex64 {
		h.word /= 2
	}
	return nil
}

// headerParser reads the part of Python's literals that .npy headers are made of.
type headerParser struct{ rest string }

func (p *headerParser) space() { p.rest = strings.TrimLeft(p.rest, " \t\r\n") }

// accept consumes s if it comes next.
func (p *headerParser) accept(s string) bool {
	p.space()
	rest, ok := strings.CutPrefix(p.rest, s)
	if ok {
		p.rest = rest
	}
	return ok
}

func (p *headerParser) expected(what string) error {
	near := p.rest
	if len(near) > 24 {
		near = near[:24]
	}
	return fmt.Errorf("%s expected at %.99q", what, near)
}

func (p *headerParser) str() (string, error) {
	for _, quote := range []string{"'", `"`} {
		if p.accept(quote) {
			s, rest, ok := strings.Cut(p.rest, quote)
			if !ok {
				return "", p.expected("the end of a string")
			}
			p.rest = rest
			return s, nil
		}
	}
	return "", p.expected("a string")
}

// dict reads the whole header: each of its three keys once, and nothing after it.
func (p *headerParser) dict(h *npyHeader) error {
	if !p.accept("{") {
		return p.expected("{")
	}
	seen := map[string]bool{}
	for !p.accept("}") {
		key, err := p.str()
		if err != nil {
			return err
		}
		if !p.accept(":") {
			return p.expected(":")
		}
		if seen[key] {
			return fmt.Errorf("%.99q comes twice", key)
		}
		seen[key] = true
		if err := p.value(key, h); err != nil {
			return err
		}
		if !p.accept(",") {
			if !p.accept("}") {
				return p.expected(", or }")
			}
			break
		}
	}
	for _, key := range []string{"descr", "fortran_order", "shape"} {
		if !seen[key] {
			return fmt.Errorf("%.99q is missing", key)
		}
	}
	if p.space(); p.rest != "" {
		return p.expected("the header's end")
	}
	return nil
}

func (p *headerParser) value(key string, h *npyHeader) error {
	switch key {
	case "descr":
		if p.accept("[") {
			return errors.New("structured dtypes are not supported")
		}
		descr, err := p.str()
		if err != nil {
			return err
		}
		return h.setType(descr)
	case "fortran_order":
		h.fortran = p.accept("True")
		if !h.fortran && !p.accept("False") {
			return p.expected("True or False")
		}
		return nil
	case "shape":
		shape, err := p.tuple()
		h.spec.Shape = shape
		return err
	}
	return fmt.Errorf("unknown key %.99q", key)
}

func (p *headerParser) tuple() (tensor.Shape, error) {
	if !p.accept("(") {
		return nil, p.expected("(")
	}
	shape := tensor.Shape{}
	for !p.accept(")") {
		p.space()
		n := len(p.rest) - len(strings.TrimLeft(p.rest, "0123456789"))
		v, err := strconv.Atoi(p.rest[:n])
		if err != nil {
			return nil, p.expected("a size")
		}
		p.rest = strings.TrimPrefix(p.rest[n:], "L") // Python 2 wrote long integers so
		shape = append(shape, v)
		if !p.accept(",") {
			if !p.accept(")") {
				return nil, p.expected(", or )")
			}
			break
		}
	}
	return shape, nil
}
