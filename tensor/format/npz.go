package format

import (
	"archive/zip"
	"compress/flate"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mlxlua/mlxlua/tensor"
)

// LoadNPZ is the arrays in a .npz file by their names: a ZIP archive of .npy files, stored or compressed. It fails if
// the archive is damaged, or holds anything else. An array's elements are read when they are needed: only then it is an
// error that they are damaged.
func LoadNPZ(path string, ctx ...*tensor.Ctx) (map[string]*tensor.Array, error) {
	c := tensor.Call(ctx)
	f, err := openFile(path)
	if err != nil {
		return nil, c.Errorf("load", "%w", err)
	}
	defer f.close()
	return npz(c, f)
}

// ReadNPZ is LoadNPZ of a stream, all of which it reads.
func ReadNPZ(r io.Reader, ctx ...*tensor.Ctx) (map[string]*tensor.Array, error) {
	c := tensor.Call(ctx)
	f, err := readStream(r, "the stream")
	if err != nil {
		return nil, c.Errorf("load", "%w", err)
	}
	return npz(c, f)
}

// npz lists the arrays of an archive.
func npz(c *tensor.Ctx, f *contents) (map[string]*tensor.Array, error) {
	z, err := zip.NewReader(f, f.size())
	if err != nil {
		return nil, c.Errorf("load", "%s: no .npz file, which is a ZIP archive of .npy files: %w", f.name, err)
	}
	out := make(map[string]*tensor.Array, len(z.File))
	for _, entry := range z.File {
		name := strings.TrimSuffix(entry.Name, ".npy")
		if out[name] != nil {
			return nil, c.Errorf("load", "%s: two entries are named %.99q", f.name, name)
		}
		if out[name], err = npzEntry(c, f, entry); err != nil {
			return nil, c.Errorf("load", "%s: entry %.99q: %w", f.name, entry.Name, err)
		}
	}
	return out, nil
}

// A byte of a compressed entry may stand for at most inflation bytes. Entries that say they stand for more than
// usualInflation are read to see whether they do, before memory is made for them.
const (
	inflation      = 1040
	usualInflation = 16
)

// npzEntry is the array of an entry, of which it reads the header.
func npzEntry(c *tensor.Ctx, f *contents, entry *zip.File) (*tensor.Array, error) {
	if size := entry.CompressedSize64; size > uint64(f.size()) {
		return nil, fmt.Errorf("it has %d bytes, the file %d", size, f.size())
	}
	r, err := entry.Open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	h, err := readNPYHeader(r)
	if err != nil {
		return nil, err
	}
	if err := fits(c, h.spec); err != nil {
		return nil, err
	}
	n := h.spec.NBytes()
	most := entry.CompressedSize64
	if entry.Method != zip.Store {
		most *= inflation
	}
	if uint64(n) > most {
		return nil, fmt.Errorf("%v takes %d bytes, and no more than %d can be there", h.spec, n, most)
	}
	if uint64(n) > usualInflation*entry.CompressedSize64 {
		if got, err := io.CopyN(io.Discard, r, n); err != nil {
			if err == io.EOF {
				return nil, shortElements(got, n)
			}
			return nil, err
		}
	}
	read := func(_ []byte, out []tensor.HostOperand) error {
		if err := readEntry(entry, h, out[0].Bytes); err != nil {
			return fmt.Errorf("%s: entry %.99q: %w", f.name, entry.Name, err)
		}
		return nil
	}
	return f.lazy(c, []tensor.Spec{h.spec}, read)[0], nil
}

// readEntry reads an entry's elements, and to its end, where its checksum is looked at.
func readEntry(entry *zip.File, h npyHeader, out []byte) error {
	r, err := entry.Open()
	if err != nil {
		return err
	}
	defer r.Close()
	if _, err := readNPYHeader(r); err != nil {
		return err
	}
	data := out
	if h.fortran {
		data = make([]byte, len(out))
	}
	if n, err := io.ReadFull(r, data); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return shortElements(int64(n), int64(len(data)))
		}
		return err
	}
	var rest [1]byte
	if _, err := io.ReadFull(r, rest[:]); err != io.EOF {
		if err == nil {
			return fmt.Errorf("it goes on after its %d bytes of elements", len(data))
		}
		return err
	}
	h.decode(out, data)
	return nil
}

// SaveNPZ evaluates arrays and writes them to a .npz file by their names, as NumPy's savez does, or its
// savez_compressed. The file appears, or is replaced, when all of it has been written.
func SaveNPZ(ctx context.Context, path string, arrays map[string]*tensor.Array, compressed bool) error {
	if err := Evaluate(ctx, arrays); err != nil {
		return err
	}
	return WriteFile("savez", path, func(w io.Writer) error { return WriteNPZ(ctx, w, arrays, compressed) })
}

// oldest is the time of entries, the first that ZIP archives know: the same arrays make the same file.
var oldest = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)

// WriteNPZ is SaveNPZ to a stream.
func WriteNPZ(ctx context.Context, w io.Writer, arrays map[string]*tensor.Array, compressed bool) error {
	z := zip.NewWriter(w)
	z.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) {
		return flate.NewWriter(w, flate.DefaultCompression)
	})
	for _, name := range slices.Sorted(maps.Keys(arrays)) {
		h := &zip.FileHeader{Name: name + ".npy", Modified: oldest}
		if compressed {
			h.Method = zip.Deflate
		}
		entry, err := z.CreateHeader(h)
		if err == nil {
			err = WriteNPY(ctx, entry, arrays[name])
		}
		if err != nil {
			return fmt.Errorf("array %.99q: %w", name, err)
		}
	}
	return z.Close()
}

// Evaluate computes arrays, all at once.
func Evaluate(ctx context.Context, arrays map[string]*tensor.Array) error {
	var all []*tensor.Array
	for _, name := range slices.Sorted(maps.Keys(arrays)) {
		all = append(all, arrays[name])
	}
	return tensor.Eval(ctx, all...)
}
