package format_test

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/metal/soft"
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/format"
)

var device *metal.Device

func TestMain(m *testing.M) {
	var err error
	if device, err = metal.NewDevice(soft.New(soft.Options{}), metal.DeviceOptions{}); err != nil {
		panic(err)
	}
	tensor.SetDevice(device)
	os.Exit(m.Run())
}

// newDevice opens a device that is the one of the test: what other tests leave counts elsewhere.
func newDevice(t *testing.T) *metal.Device {
	t.Helper()
	dev, err := metal.NewDevice(soft.New(soft.Options{}), metal.DeviceOptions{})
	require.NoError(t, err)
	tensor.SetDevice(dev)
	t.Cleanup(func() {
		tensor.SetDevice(device)
		require.NoError(t, dev.Close())
	})
	return dev
}

// numbers are the elements of an array.
func numbers(t *testing.T, x *tensor.Array) []float64 {
	t.Helper()
	b, err := x.Bytes(t.Context())
	require.NoError(t, err)
	out := []float64{}
	for i := range x.Spec().Shape.Size() {
		if d := x.DType(); d == tensor.BFloat16 {
			out = append(out, float64(tensor.BFloat16Value(binary.LittleEndian.Uint16(b[2*i:]))))
		} else {
			re, _ := element(t, d, b, i)
			out = append(out, re)
		}
	}
	return out
}

// counted is n numbers from first on.
func counted(first, n int) []float64 {
	out := []float64{}
	for i := range n {
		out = append(out, float64(first+i))
	}
	return out
}

// checkArchive wants what make_archives.py put into an archive.
func checkArchive(t *testing.T, got map[string]*tensor.Array) {
	t.Helper()
	require.Equal(t, tensor.Spec{Shape: tensor.Shape{2, 3}, DType: tensor.Float32}, got["matrix"].Spec())
	require.Equal(t, counted(0, 6), numbers(t, got["matrix"]))
	require.Equal(t, tensor.Int16, got["fortran"].DType())
	require.Equal(t, counted(1, 6), numbers(t, got["fortran"]))
	require.Equal(t, counted(2, 6), numbers(t, got["big"]))
	require.Equal(t, tensor.Spec{Shape: tensor.Shape{}, DType: tensor.Uint8}, got["scalar"].Spec())
	require.Equal(t, counted(3, 1), numbers(t, got["scalar"]))
	require.Equal(t, tensor.Spec{Shape: tensor.Shape{0, 3}, DType: tensor.Float64}, got["empty"].Spec())
	require.Empty(t, numbers(t, got["empty"]))
}

func TestLoadNPZ(t *testing.T) {
	for _, file := range []string{"stored.npz", "compressed.npz"} {
		got, err := format.LoadNPZ("testdata/" + file)
		require.NoError(t, err)
		checkArchive(t, got)
		b, err := os.ReadFile("testdata/" + file)
		require.NoError(t, err)
		got, err = format.ReadNPZ(bytes.NewReader(b))
		require.NoError(t, err)
		checkArchive(t, got)
		if file == "stored.npz" {
			require.Equal(t, counted(0, 6), numbers(t, got["arr_0"]))
		}
	}
	got, err := format.LoadNPZ("testdata/mlx.npz")
	require.NoError(t, err)
	require.Equal(t, counted(0, 4), numbers(t, got["a"]))
	require.Equal(t, tensor.BFloat16, got["b"].DType())
	require.Equal(t, []float64{1, 1, 1, 1}, numbers(t, got["b"]))
}

// zipped is a ZIP archive of entries.
func zipped(t *testing.T, method uint16, entries ...string) []byte {
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for i := 0; i < len(entries); i += 2 {
		w, err := z.CreateHeader(&zip.FileHeader{Name: entries[i], Method: method})
		require.NoError(t, err)
		_, err = io.WriteString(w, entries[i+1])
		require.NoError(t, err)
	}
	require.NoError(t, z.Close())
	return out.Bytes()
}

func TestNPZErrors(t *testing.T) {
	npy := func(shape, data string) string {
		return stream("{'descr': '<f4', 'fortran_order': False, 'shape': "+shape+"}", data)
	}
	whole := zipped(t, zip.Store, "a.npy", npy("(2,)", "12345678"))
	damaged := bytes.Replace(whole, []byte("12345678"), []byte("12345679"), 1)
	for _, c := range []struct {
		name, want string
		data       []byte
	}{
		{"no archive", "the stream: no .npz file, which is a ZIP archive of .npy files: zip: not a valid zip file",
			[]byte("PK")},
		{"cut short", "not a valid zip file", whole[:len(whole)-10]},
		{"text", `entry "a.txt": not a .npy file`, zipped(t, zip.Store, "a.txt", "hello you there")},
		{"twice", `two entries are named "a"`, zipped(t, zip.Store, "a.npy", npy("(0,)", ""), "a", npy("(0,)", ""))},
		{"lying", `entry "a": float32 (4000,) takes 16000 bytes, and no more than`,
			zipped(t, zip.Store, "a", npy("(4000,)", "1234"))},
		{"lying, compressed", "takes 4000000000 bytes, and no more than",
			zipped(t, zip.Deflate, "a", npy("(1000, 1000, 1000)", "1234"))},
		{"short", "the file ends after 4 of 8 bytes of elements", zipped(t, zip.Store, "a", npy("(2,)", "1234"))},
		{"long", "it goes on after its 4 bytes of elements", zipped(t, zip.Store, "a", npy("(1,)", "12345"))},
		{"damaged", "checksum error", damaged},
	} {
		read, err := format.ReadNPZ(bytes.NewReader(c.data))
		for _, x := range read {
			err = errors.Join(err, x.Err())
		}
		require.ErrorContains(t, err, c.want, c.name)
		path := filepath.Join(t.TempDir(), "a.npz")
		require.NoError(t, os.WriteFile(path, c.data, 0o600))
		loaded, err := format.LoadNPZ(path)
		for _, x := range loaded {
			_, failed := x.Bytes(t.Context())
			err = errors.Join(err, failed)
		}
		require.ErrorContains(t, err, strings.Replace(c.want, "the stream", path, 1), c.name)
	}
	_, err := format.LoadNPZ("absent.npz")
	require.ErrorContains(t, err, "[load] cannot open absent.npz: no such file")
}

// every is an array of each dtype.
func every(t *testing.T) map[string]*tensor.Array {
	got, _, err := format.LoadSafetensors("testdata/every.safetensors")
	require.NoError(t, err)
	return got
}

// What is written is read again as it was, and the same arrays make the same file.
func TestSaveNPZ(t *testing.T) {
	arrays := every(t)
	var sizes []int
	for _, compressed := range []bool{false, true} {
		path := filepath.Join(t.TempDir(), "a.npz")
		require.NoError(t, format.SaveNPZ(t.Context(), path, arrays, compressed))
		got, err := format.LoadNPZ(path)
		require.NoError(t, err)
		same(t, arrays, got)
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		var again bytes.Buffer
		require.NoError(t, format.WriteNPZ(t.Context(), &again, arrays, compressed))
		require.Equal(t, b, again.Bytes())
		sizes = append(sizes, len(b))
	}
	require.Less(t, sizes[1], sizes[0])
}

// same wants equal arrays by equal names.
func same(t *testing.T, want, got map[string]*tensor.Array) {
	t.Helper()
	require.Equal(t, slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got)))
	for name, x := range want {
		require.Equal(t, x.Spec(), got[name].Spec(), name)
		a, err := x.Bytes(t.Context())
		require.NoError(t, err)
		b, err := got[name].Bytes(t.Context())
		require.NoError(t, err)
		require.Equal(t, a, b, name)
	}
}

// TestWritingIsAtomic: a failure leaves what was there, and nothing else; a success replaces it, with its permissions
// and through a link; and what was loaded before keeps its values.
func TestWritingIsAtomic(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.safetensors")
	first := every(t)
	require.NoError(t, format.SaveSafetensors(t.Context(), path, first, nil))
	require.NoError(t, os.Chmod(path, 0o640))
	old, _, err := format.LoadSafetensors(path)
	require.NoError(t, err)

	cancelled, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	require.ErrorContains(t, format.SaveSafetensors(cancelled, path, first, nil), "enough")
	bad := tensor.Fail(nil, "bad", "it never was")
	for _, err := range []error{
		format.SaveSafetensors(t.Context(), path, map[string]*tensor.Array{"a": bad}, nil),
		format.SaveNPZ(t.Context(), path, map[string]*tensor.Array{"a": bad}, false),
		format.SaveNPY(t.Context(), path, bad),
	} {
		require.ErrorContains(t, err, "[bad] it never was")
	}
	err = format.SaveSafetensors(t.Context(), path, map[string]*tensor.Array{"\xff": first["int32"]}, nil)
	require.ErrorContains(t, err, `[save_safetensors] `+path+`: the name of a tensor is not UTF-8: "\xff"`)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 1)
	got, _, err := format.LoadSafetensors(path)
	require.NoError(t, err)
	same(t, first, got)

	link := filepath.Join(dir, "link.safetensors")
	if runtime.GOOS != "windows" {
		require.NoError(t, os.Symlink(path, link))
	} else {
		link = path
	}
	require.NoError(t, format.SaveSafetensors(t.Context(), link, map[string]*tensor.Array{"x": first["int32"]}, nil))
	got, _, err = format.LoadSafetensors(path)
	require.NoError(t, err)
	require.Len(t, got, 1)
	st, err := os.Stat(path)
	require.NoError(t, err)
	if runtime.GOOS != "windows" {
		require.Equal(t, os.FileMode(0o640), st.Mode().Perm())
	}
	same(t, first, old)
}
