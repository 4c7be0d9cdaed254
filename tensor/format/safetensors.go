package format

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mlxlua/mlxlua/internal/jsonfault"
	"github.com/mlxlua/mlxlua/tensor"
)

// A .safetensors file is 8 bytes of length, so many bytes of JSON, and the tensors' bytes. The JSON is an object that
// gives each tensor's dtype, shape, and place in those bytes; its entry __metadata__ maps strings to strings. The
// format has no version.

// maxSafetensorsHeader bounds the JSON, as the format does.
const maxSafetensorsHeader = 100_000_000

// metadataKey is the name of the metadata among the tensors.
const metadataKey = "__metadata__"

// safetensorsType is a dtype of .safetensors files.
type safetensorsType struct {
	dtype tensor.DType
	pack  int // elements of the file in one of the array's
}

// safetensorsTypes are the dtypes by name. Those that arrays do not have come as their bytes, as in MLX: mx.from_fp8
// reads F8_E4M3; F4 has two elements in each.
var safetensorsTypes = map[string]safetensorsType{
	"BOOL": {tensor.Bool, 1},
	"U8":   {tensor.Uint8, 1}, "U16": {tensor.Uint16, 1}, "U32": {tensor.Uint32, 1}, "U64": {tensor.Uint64, 1},
	"I8": {tensor.Int8, 1}, "I16": {tensor.Int16, 1}, "I32": {tensor.Int32, 1}, "I64": {tensor.Int64, 1},
	"F16": {tensor.Float16, 1}, "BF16": {tensor.BFloat16, 1}, "F32": {tensor.Float32, 1}, "F64": {tensor.Float64, 1},
	"C64":     {tensor.Complex64, 1},
	"F8_E4M3": {tensor.Uint8, 1}, "F8_E5M2": {tensor.Uint8, 1}, "F8_E8M0": {tensor.Uint8, 1},
	"F8_E4M3FNUZ": {tensor.Uint8, 1}, "F8_E5M2FNUZ": {tensor.Uint8, 1},
	"F4": {tensor.Uint8, 2},
}

// safetensorsNames are the names under which dtypes are written.
var safetensorsNames = map[tensor.DType]string{
	tensor.Bool: "BOOL", tensor.Uint8: "U8", tensor.Uint16: "U16", tensor.Uint32: "U32", tensor.Uint64: "U64",
	tensor.Int8: "I8", tensor.Int16: "I16", tensor.Int32: "I32", tensor.Int64: "I64", tensor.Float16: "F16",
	tensor.BFloat16: "BF16", tensor.Float32: "F32", tensor.Float64: "F64", tensor.Complex64: "C64",
}

// LoadSafetensors is the arrays in a .safetensors file by their names, and the file's metadata. The file is mapped: an
// array's bytes are read when it is used, and cost no memory that the system could not take back. It fails if the file
// is cut short, or says of itself what cannot be.
func LoadSafetensors(path string, ctx ...*tensor.Ctx) (map[string]*tensor.Array, map[string]string, error) {
	c := tensor.Call(ctx)
	f, err := openFile(path)
	if err != nil {
		return nil, nil, c.Errorf("load", "%w", err)
	}
	defer f.close()
	return safetensors(c, f)
}

// ReadSafetensors is LoadSafetensors of a stream, all of which it reads.
func ReadSafetensors(r io.Reader, ctx ...*tensor.Ctx) (map[string]*tensor.Array, map[string]string, error) {
	c := tensor.Call(ctx)
	f, err := readStream(r, "the stream")
	if err != nil {
		return nil, nil, c.Errorf("load", "%w", err)
	}
	return safetensors(c, f)
}

// safetensors lists a file's arrays.
func safetensors(c *tensor.Ctx, f *contents) (map[string]*tensor.Array, map[string]string, error) {
	var h *safetensorsHeader
	err := f.guard(func(b []byte) (err error) {
		h, err = parseSafetensors(b)
		return err
	})
	if err != nil {
		return nil, nil, c.Errorf("load", "%s: %w", f.name, err)
	}
	out := make(map[string]*tensor.Array, len(h.tensors))
	for _, t := range h.tensors {
		if out[t.name], err = f.array(c, t.spec, h.data+t.begin); err != nil {
			return nil, nil, c.Errorf("load", "%s: tensor %.99q: %w", f.name, t.name, err)
		}
	}
	return out, h.metadata, nil
}

// safetensorsHeader is what a file says of itself, checked against its size.
type safetensorsHeader struct {
	metadata map[string]string
	tensors  []placed
	data     int64 // where the tensors' bytes begin
}

// placed is a tensor's place among the tensors' bytes.
type placed struct {
	name       string
	spec       tensor.Spec
	begin, end int64
}

// sortByPlace sorts tensors as they lie in a file.
func sortByPlace(tensors []placed) {
	slices.SortFunc(tensors, func(a, b placed) int {
		return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(a.end, b.end), strings.Compare(a.name, b.name))
	})
}

func parseSafetensors(b []byte) (*safetensorsHeader, error) {
	if len(b) < 8 {
		return nil, fmt.Errorf("no .safetensors file: it has %d bytes, and begins with 8 of the header's length", len(b))
	}
	n := binary.LittleEndian.Uint64(b)
	switch {
	case n > maxSafetensorsHeader:
		return nil, fmt.Errorf("no .safetensors file: the header's length is %d, at most %d is accepted", n,
			maxSafetensorsHeader)
	case n > uint64(len(b)-8):
		return nil, fmt.Errorf("the file ends within its header: it has %d bytes, the header %d", len(b), n)
	}
	text := b[8 : 8+n]
	if !bytes.HasPrefix(text, []byte("{")) || !utf8.Valid(text) {
		return nil, errors.New("no .safetensors file: the header at byte 8 is no JSON object")
	}
	h := &safetensorsHeader{data: 8 + int64(n), metadata: map[string]string{}}
	if err := h.parse(text); err != nil {
		return nil, err
	}
	return h, h.checkPlaces(int64(len(b)) - h.data)
}

// parse reads the JSON. Each name may come once: a decoder that makes a map of it would keep the last.
func (h *safetensorsHeader) parse(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	bad := func(err error) error {
		at := d.InputOffset()
		err = jsonfault.Explain(string(text), err)
		if f, ok := err.(*jsonfault.Fault); ok {
			at, err = int64(f.At), errors.New(f.What)
		}
		return fmt.Errorf("bad header at byte %d: %w", 8+at, err)
	}
	if _, err := d.Token(); err != nil { // {
		return bad(err)
	}
	seen := map[string]bool{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return bad(err)
		}
		name := key.(string) // of an object, they all are
		if seen[name] {
			return bad(fmt.Errorf("two tensors are named %.99q", name))
		}
		seen[name] = true
		if name == metadataKey {
			if err := d.Decode(&h.metadata); err != nil {
				return bad(fmt.Errorf("%s maps strings to strings: %w", metadataKey, jsonfault.Kind(err)))
			}
			continue
		}
		t, err := parseTensor(d)
		if err != nil {
			return bad(fmt.Errorf("tensor %.99q: %w", name, err))
		}
		t.name = name
		h.tensors = append(h.tensors, t)
	}
	if _, err := d.Token(); err != nil { // }
		return bad(err)
	}
	if rest := strings.Trim(string(text[d.InputOffset():]), " \t\r\n"); rest != "" {
		return bad(errors.New("the JSON goes on after its end"))
	}
	return nil
}

// parseTensor reads what the header says of a tensor.
func parseTensor(d *json.Decoder) (placed, error) {
	var j struct {
		DType   *string  `json:"dtype"`
		Shape   []uint64 `json:"shape"`
		Offsets []uint64 `json:"data_offsets"`
	}
	var t placed
	if err := d.Decode(&j); err != nil {
		return t, jsonfault.Kind(err)
	}
	switch {
	case j.DType == nil:
		return t, errors.New("dtype is missing")
	case j.Shape == nil:
		return t, errors.New("shape is missing")
	case len(j.Offsets) != 2:
		return t, fmt.Errorf("data_offsets has %d numbers, want begin and end", len(j.Offsets))
	}
	kind, ok := safetensorsTypes[*j.DType]
	if !ok {
		return t, fmt.Errorf("dtype %.99q has no counterpart here", *j.DType)
	}
	begin, end := j.Offsets[0], j.Offsets[1]
	if begin > end || end > 1<<62 {
		return t, fmt.Errorf("data_offsets are %d and %d", begin, end)
	}
	shape, err := dims(j.Shape)
	if err != nil {
		return t, err
	}
	if last := len(shape) - 1; kind.pack > 1 {
		if last < 0 || shape[last]%kind.pack != 0 {
			return t, fmt.Errorf("%s has shape %v, want a last dimension of whole bytes", *j.DType, shape)
		}
		shape[last] /= kind.pack
	}
	t.spec = tensor.Spec{Shape: shape, DType: kind.dtype}
	if err := shape.Check(kind.dtype); err != nil {
		return t, err
	}
	t.begin, t.end = int64(begin), int64(end)
	if n := t.spec.NBytes(); n != t.end-t.begin {
		return t, fmt.Errorf("data_offsets are %d and %d, %d bytes apart, and %v takes %d", begin, end, end-begin, t.spec, n)
	}
	return t, nil
}

// dims is a shape of sizes that a file gives.
func dims(sizes []uint64) (tensor.Shape, error) {
	shape := make(tensor.Shape, len(sizes))
	for i, n := range sizes {
		if n > math.MaxInt {
			return nil, fmt.Errorf("dimension %d has size %d", i, n)
		}
		shape[i] = int(n)
	}
	return shape, nil
}

// checkPlaces wants each of the n bytes after the header to belong to one tensor, as the format does.
func (h *safetensorsHeader) checkPlaces(n int64) error {
	byPlace := slices.Clone(h.tensors)
	sortByPlace(byPlace)
	at, before := int64(0), ""
	for _, t := range byPlace {
		switch {
		case t.end > n:
			return fmt.Errorf("tensor %.99q: data_offsets are %d and %d, and the file has %d bytes after its header: is it "+
				"cut short?", t.name, t.begin, t.end, n)
		case t.begin < at:
			return fmt.Errorf("tensor %.99q begins at byte %d of the data, within tensor %.99q", t.name, t.begin, before)
		case t.begin > at:
			return fmt.Errorf("bytes %d to %d of the data belong to no tensor", at, t.begin)
		}
		at, before = t.end, t.name
	}
	if at != n {
		return fmt.Errorf("bytes %d to %d of the data belong to no tensor", at, n)
	}
	return nil
}

// SaveSafetensors evaluates arrays and writes them to a .safetensors file by their names, with metadata, which may be
// nil. The file appears, or is replaced, when all of it has been written.
func SaveSafetensors(ctx context.Context, path string, arrays map[string]*tensor.Array, metadata map[string]string,
) error {
	if err := Evaluate(ctx, arrays); err != nil {
		return err
	}
	return WriteFile("save_safetensors", path, func(w io.Writer) error {
		return WriteSafetensors(ctx, w, arrays, metadata)
	})
}

// WriteSafetensors is SaveSafetensors to a stream.
func WriteSafetensors(ctx context.Context, w io.Writer, arrays map[string]*tensor.Array, metadata map[string]string,
) error {
	return StreamSafetensors(ctx, w, arrays, metadata, nil)
}

// StreamSafetensors is WriteSafetensors of arrays that need not fit into memory together: it evaluates one after the
// other, and the next one while it writes. written, which may be nil, is called after each array, and can free it. They
// lie in the file in the order of their names, but for those whose bytes are no multiple of 8, which come last, large
// elements first; the header's length is a multiple of 8, so that all elements are aligned.
func StreamSafetensors(ctx context.Context, w io.Writer, arrays map[string]*tensor.Array, metadata map[string]string,
	written func(name string) error) error {
	names := slices.Sorted(maps.Keys(arrays))
	alignment := func(name string) int {
		if x := arrays[name]; x.Spec().NBytes()%8 != 0 {
			return x.DType().Size()
		}
		return 8
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(alignment(b), alignment(a)) })
	header, err := safetensorsHeaderOf(names, arrays, metadata)
	if err != nil {
		return err
	}
	if _, err := w.Write(header); err != nil {
		return err
	}
	for i, name := range names {
		if err := tensor.Eval(ctx, arrays[name]); err != nil {
			return fmt.Errorf("tensor %.99q: %w", name, err)
		}
		if i+1 < len(names) { // its error is told in its turn
			_ = tensor.AsyncEval(arrays[names[i+1]])
		}
		if err := writeElements(ctx, w, arrays[name]); err != nil {
			return fmt.Errorf("tensor %.99q: %w", name, err)
		}
		if written != nil {
			if err := written(name); err != nil {
				return err
			}
		}
	}
	return nil
}

// safetensorsHeaderOf is all of a file before the elements.
func safetensorsHeaderOf(names []string, arrays map[string]*tensor.Array, metadata map[string]string) ([]byte, error) {
	out := bytes.NewBuffer(make([]byte, 8)) // the length is filled in at the end
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	entry := func(name string, value any) error {
		if err := checkText("the name of a tensor", name); err != nil {
			return err
		}
		if out.Len() == 8 {
			out.WriteByte('{')
		} else {
			out.WriteByte(',')
		}
		if err := e.Encode(name); err != nil {
			return err
		}
		out.Truncate(out.Len() - 1) // the encoder's line end
		out.WriteByte(':')
		err := e.Encode(value)
		out.Truncate(out.Len() - 1)
		return err
	}
	if len(metadata) > 0 {
		for _, key := range slices.Sorted(maps.Keys(metadata)) {
			if err := errors.Join(checkText("a key of the metadata", key), checkText("metadata", metadata[key])); err != nil {
				return nil, err
			}
		}
		if err := entry(metadataKey, metadata); err != nil {
			return nil, err
		}
	}
	at := int64(0)
	for _, name := range names {
		spec := arrays[name].Spec()
		if name == metadataKey {
			return nil, fmt.Errorf("a tensor is named %s, which is the metadata's name", name)
		}
		err := entry(name, struct {
			DType   string   `json:"dtype"`
			Shape   []int    `json:"shape"`
			Offsets [2]int64 `json:"data_offsets"`
		}{safetensorsNames[spec.DType], append([]int{}, spec.Shape...), [2]int64{at, at + spec.NBytes()}})
		if err != nil {
			return nil, err
		}
		at += spec.NBytes()
	}
	if out.Len() == 8 {
		out.WriteByte('{')
	}
	out.WriteByte('}')
	out.Write(bytes.Repeat([]byte(" "), -out.Len()&7))
	b := out.Bytes()
	if n := len(b) - 8; n > maxSafetensorsHeader {
		return nil, fmt.Errorf("names and metadata take %d bytes, the format has room for %d", n, maxSafetensorsHeader)
	}
	binary.LittleEndian.PutUint64(b, uint64(len(b)-8))
	return b, nil
}

// checkText refuses what is no text: JSON could not give it back.
func checkText(what, text string) error {
	if !utf8.ValidString(text) {
		return fmt.Errorf("%s is not UTF-8: %.99q", what, text)
	}
	return nil
}
