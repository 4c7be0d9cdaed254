package format_test

import (
	"bytes"
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/metrics"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/format"
)

// mutations is how many damaged files TestDamagedFiles tries of each format: in all they and those of export take about
// a minute of processor time. With -short one in a hundred of them is tried.
//
//	go test ./tensor/format -run DamagedFiles -mutations 1000000 -timeout 2h
var mutations = flag.Int("mutations", 400_000, "damaged files to try of each format")

// readers are the formats by the ends of their seeds' names.
var readers = map[string]func(r io.Reader) (map[string]*tensor.Array, error){
	"npy": func(r io.Reader) (map[string]*tensor.Array, error) {
		spec, data, err := format.ReadNPY(r)
		if err != nil {
			return nil, err
		}
		return map[string]*tensor.Array{"": tensor.FromBytes(nil, spec, data)}, nil
	},
	"npz": func(r io.Reader) (map[string]*tensor.Array, error) { return format.ReadNPZ(r) },
	"safetensors": func(r io.Reader) (map[string]*tensor.Array, error) {
		arrays, _, err := format.ReadSafetensors(r)
		return arrays, err
	},
	"gguf": func(r io.Reader) (map[string]*tensor.Array, error) {
		arrays, _, err := format.ReadGGUF(r)
		return arrays, err
	},
}

// found are files that once were read wrongly.
var found = map[string][]string{
	"npy": {"\x93NUMPY\x02\x00t\x00\n\x00\x00\x00d-"}, // memory was made for all of a header of which two bytes are there
}

// seeds are the whole files of a format, after those that were found.
func seeds(t testing.TB, ext string) [][]byte {
	files, err := filepath.Glob("testdata/*." + ext)
	require.NoError(t, err)
	require.NotEmpty(t, files)
	var out [][]byte
	for _, s := range found[ext] {
		out = append(out, []byte(s))
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		require.NoError(t, err)
		if len(b) < 1<<13 {
			out = append(out, b)
		}
	}
	return out
}

// allocated is how many bytes the program has allocated so far.
func allocated() int64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64())
}

// What reading may allocate: for each byte of the file, for each byte of the elements that it really has, and at all,
// for what decompression needs and the runtime counts in advance.
const (
	perByte    = 100
	perElement = 4
	atLeast    = 512 << 10
)

// readDamaged reads a file that may be damaged: that is an error or gives arrays, and takes no more memory than the
// file has a right to.
func readDamaged(t testing.TB, ext string, b []byte) (ok bool) {
	var complaint string
	for range 3 { // others allocate too: what is there each time is the reader's
		if ok, complaint = readOnce(t, ext, b); complaint == "" {
			return ok
		}
	}
	t.Error(complaint)
	return ok
}

// readOnce is readDamaged, with what is to be said of memory.
func readOnce(t testing.TB, ext string, b []byte) (ok bool, complaint string) {
	before := allocated()
	device.ResetPeak()
	active := device.Memory().Active
	arrays, err := readers[ext](bytes.NewReader(b))
	total := int64(0)
	for name, x := range arrays {
		if x.Err() != nil {
			continue
		}
		got, err := x.Bytes(t.Context())
		require.NoError(t, err, name)
		require.Equal(t, x.Spec().NBytes(), int64(len(got)), name)
		total += int64(len(got))
		x.Free(nil)
	}
	most := perByte*int64(len(b)) + perElement*total + atLeast
	if n := allocated() - before; n > most {
		complaint = fmt.Sprintf("reading %d bytes with %d of elements allocated %d: %q", len(b), total, n, b)
	}
	if n := device.Memory().Peak - active; n > most {
		complaint = fmt.Sprintf("reading %d bytes with %d of elements took %d of the device: %q", len(b), total, n, b)
	}
	return err == nil, complaint
}

// numbersInFiles are what lies at the edges of what files count with.
var numbersInFiles = []uint64{0, 1, 2, 3, 7, 8, 9, 31, 32, 33, 127, 128, 255, 256, 1 << 15, 1 << 16, 1<<31 - 1, 1 << 31,
	1<<32 - 1, 1 << 32, 1 << 40, 1 << 61, 1 << 62, 1<<63 - 1, 1 << 63, 1<<64 - 1}

// damage changes a copy of b in a few places, or puts a part of other into it.
func damage(r *rand.Rand, b, other []byte) []byte {
	b = bytes.Clone(b)
	for range 1 + r.IntN(4) {
		if len(b) == 0 {
			return b
		}
		at := r.IntN(len(b))
		if r.IntN(2) == 0 { // the headers are what is read
			at = r.IntN(min(len(b), 64))
		}
		end := min(len(b), at+1+r.IntN(16))
		switch r.IntN(9) {
		case 0:
			b[at] ^= 1 << r.IntN(8)
		case 1:
			b[at] = byte(r.Uint32())
		case 2:
			b = b[:at]
		case 3:
			b = append(b[:at:at], b[end:]...)
		case 4:
			b = append(b[:end:end], b[at:]...)
		case 5:
			from := r.IntN(len(other))
			b = append(append(b[:at:at], other[from:min(len(other), from+1+r.IntN(64))]...), b[end:]...)
		case 6: // a digit of a header's text
			b[at] = "0123456789-,[]{}\"':x"[r.IntN(20)]
		default:
			n := numbersInFiles[r.IntN(len(numbersInFiles))] + uint64(r.IntN(3)) - 1
			copy(b[at:], binary.LittleEndian.AppendUint64(nil, n)[:1<<r.IntN(4)])
		}
	}
	return b
}

// TestDamagedFiles reads files that are damaged at random, the same ones each time.
func TestDamagedFiles(t *testing.T) {
	count := *mutations
	if testing.Short() {
		count /= 100
	}
	for ext := range readers {
		t.Run(ext, func(t *testing.T) {
			files := seeds(t, ext)
			r := rand.New(rand.NewPCG(1, uint64(len(ext))))
			read := 0
			for i := range count {
				b := files[i%len(files)]
				if i >= len(files) {
					b = damage(r, b, files[r.IntN(len(files))])
				}
				if readDamaged(t, ext, b) {
					read++
				}
				if t.Failed() {
					return
				}
			}
			t.Logf("%d files, %d of them whole enough", count, read)
			require.Greater(t, read, len(files)/2)
			require.Greater(t, count-read, count/10)
		})
	}
}

// TestCutFiles reads beginnings of files from disk, of the first bytes every one: each is an error, at once or where
// the elements are read.
func TestCutFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cut")
	for _, file := range []string{"int16.npy", "stored.npz", "shapes.safetensors", "mlx.safetensors", "triples.gguf"} {
		whole, err := os.ReadFile("testdata/" + file)
		require.NoError(t, err)
		for n := 0; n < len(whole); n += 1 + n/64 {
			if filepath.Ext(file) == ".gguf" && len(whole)-n <= 20 {
				break // the padding after the last tensor may be missing
			}
			require.NoError(t, os.WriteFile(path, whole[:n], 0o600))
			arrays, err := map[string]*tensor.Array{}, error(nil)
			switch filepath.Ext(file) {
			case ".npy":
				arrays[""] = format.LoadNPY(path)
			case ".npz":
				arrays, err = format.LoadNPZ(path)
			case ".safetensors":
				arrays, _, err = format.LoadSafetensors(path)
			case ".gguf":
				arrays, _, err = format.LoadGGUF(path)
			}
			for _, x := range arrays {
				if _, failed := x.Bytes(t.Context()); err == nil {
					err = failed
				}
			}
			require.ErrorContains(t, err, path, "%d bytes of %s", n, file)
		}
	}
}

func FuzzNPY(f *testing.F)         { fuzz(f, "npy") }
func FuzzNPZ(f *testing.F)         { fuzz(f, "npz") }
func FuzzSafetensors(f *testing.F) { fuzz(f, "safetensors") }
func FuzzGGUF(f *testing.F)        { fuzz(f, "gguf") }

func fuzz(f *testing.F, ext string) {
	for _, b := range seeds(f, ext) {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) { readDamaged(t, ext, b) })
}
