package format_test

import (
	"context"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/format"
)

// element is the i-th element as NumPy's make.py gave it, by its dtype: the imaginary part only of complex64.
func element(t *testing.T, d tensor.DType, b []byte, i int) (re, im float64) {
	b = b[i*d.Size():]
	le := binary.LittleEndian
	switch d {
	case tensor.Bool, tensor.Uint8:
		return float64(b[0]), 0
	case tensor.Int8:
		return float64(int8(b[0])), 0
	case tensor.Uint16:
		return float64(le.Uint16(b)), 0
	case tensor.Int16:
		return float64(int16(le.Uint16(b))), 0
	case tensor.Uint32:
		return float64(le.Uint32(b)), 0
	case tensor.Int32:
		return float64(int32(le.Uint32(b))), 0
	case tensor.Uint64:
		return float64(le.Uint64(b)), 0
	case tensor.Int64:
		return float64(int64(le.Uint64(b))), 0
	case tensor.Float32:
		return float64(math.Float32frombits(le.Uint32(b))), 0
	case tensor.Float64:
		return math.Float64frombits(le.Uint64(b)), 0
	case tensor.Complex64:
		return float64(math.Float32frombits(le.Uint32(b))), float64(math.Float32frombits(le.Uint32(b[4:])))
	case tensor.Float16:
		return half(le.Uint16(b)), 0
	}
	require.Fail(t, "no such dtype", d)
	return 0, 0
}

// half is the value of a normal float16, or of zero.
func half(bits uint16) float64 {
	v := math.Ldexp(1+float64(bits&0x3FF)/1024, int(bits>>10&31)-15)
	if bits&0x7FFF == 0 {
		v = 0
	}
	if bits>>15 == 1 {
		v = -v
	}
	return v
}

func read(t *testing.T, file string) (tensor.Spec, []byte) {
	t.Helper()
	f, err := os.Open("testdata/" + file)
	require.NoError(t, err)
	defer f.Close()
	spec, data, err := format.ReadNPY(f)
	require.NoError(t, err, file)
	require.Equal(t, spec.NBytes(), int64(len(data)))
	return spec, data
}

func TestReadNPYDTypesAndOrders(t *testing.T) {
	files := 0
	for _, d := range tensor.DTypes() {
		for _, suffix := range []string{"", "_big", "_fortran"} {
			file := d.String() + suffix + ".npy"
			if _, err := os.Stat("testdata/" + file); err != nil || d == tensor.BFloat16 {
				continue
			}
			files++
			spec, data := read(t, file)
			require.Equal(t, d, spec.DType, file)
			require.Equal(t, tensor.Shape{2, 3}, spec.Shape, file)
			for i := range 6 {
				want, wantIm := float64(i), 0.0
				switch {
				case d == tensor.Bool:
					want = float64(min(i, 1))
				case i == 5 && d.IsComplex():
					wantIm = -0.5
				case i == 5 && !d.IsUnsigned():
					want = -5
				}
				re, im := element(t, d, data, i)
				require.Equal(t, []float64{want, wantIm}, []float64{re, im}, "%s element %d", file, i)
			}
		}
	}
	require.Equal(t, 13+10+2, files)
}

func TestReadNPYShapesAndVersions(t *testing.T) {
	spec, data := read(t, "fortran3d.npy")
	require.Equal(t, tensor.Shape{2, 3, 4}, spec.Shape)
	for i := range 24 {
		re, _ := element(t, spec.DType, data, i)
		require.Equal(t, float64(i), re)
	}
	spec, data = read(t, "scalar.npy")
	require.Equal(t, tensor.Shape{}, spec.Shape)
	require.Equal(t, []byte{7, 0, 0, 0}, data)
	spec, _ = read(t, "empty.npy")
	require.Equal(t, tensor.Shape{0, 3}, spec.Shape)
	for _, file := range []string{"version2.npy", "version3.npy"} {
		spec, data = read(t, file)
		require.Equal(t, tensor.Shape{3}, spec.Shape)
		require.Equal(t, []byte{0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0}, data)
	}
	spec, data = read(t, "bfloat16.npy")
	require.Equal(t, tensor.BFloat16, spec.DType)
	require.Equal(t, []byte{0x80, 0x3F, 0xA0, 0xC0}, data)
}

// stream is a .npy stream of version 1 with that header and data.
func stream(header, data string) string {
	return "\x93NUMPY\x01\x00" + string(binary.LittleEndian.AppendUint16(nil, uint16(len(header)))) + header + data
}

func TestReadNPYErrors(t *testing.T) {
	header := func(descr, shape string) string {
		return "{'descr': " + descr + ", 'fortran_order': False, 'shape': " + shape + "}"
	}
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "not a .npy file"},
		{"other", "PK\x03\x04 and more", "not a .npy file"},
		{"version", "\x93NUMPY\x09\x00xx", ".npy version 9.0 is not 1, 2 or 3"},
		{"cut in the length", "\x93NUMPY\x01\x00", "ends within its header"},
		{"cut in the header", stream(header("'<f4'", "(2,)"), "")[:30], "ends within its header"},
		{"long header", "\x93NUMPY\x02\x00\xff\xff\xff\xff", "the header's length is 4294967295"},
		{"cut in the data", stream(header("'<f4'", "(2,)"), "1234567"), "the file ends after 7 of 8 bytes of elements"},
		{"huge", stream(header("'<f4'", "(4000000000,)"), "12"), "2"},
		{"overflow", stream(header("'<f4'", "(4000000000, 4000000000, 4000000000)"), ""), "4000000000"},
		{"no number", stream(header("'<f4'", "(99999999999999999999,)"), ""), "a size expected"},
		{"negative", stream(header("'<f4'", "(-1,)"), ""), "a size expected at \"-1"},
		{"dtype", stream(header("'<f16'", "(1,)"), ""), `dtype "<f16" has no counterpart`},
		{"no dtype", stream(header("''", "(1,)"), ""), `dtype "" has no counterpart`},
		{"record", stream(header("[('a', '<f4')]", "(1,)"), ""), "structured dtypes are not supported"},
		{"unclosed", stream("{'descr': '<f4", ""), "the end of a string expected"},
		{"missing key", stream("{'descr': '<f4', 'shape': (1,)}", "1234"), `"fortran_order" is missing`},
		{"twice", stream("{'descr': '<f4', 'descr': '<f4'}", ""), `"descr" comes twice`},
		{"unknown key", stream("{'order': 'C'}", ""), `unknown key "order"`},
		{"no dict", stream("[]", ""), `{ expected at "[]"`},
		{"rest", stream(header("'<f4'", "(1,)")+" x", "1234"), "the header's end expected"},
	} {
		_, _, err := format.ReadNPY(strings.NewReader(c.text))
		require.ErrorContains(t, err, c.want, c.name)
	}
	for file, want := range map[string]string{"double_complex.npy": `"<c16"`, "record.npy": "structured dtypes",
		"absent.npy": "[load] cannot open testdata/absent.npy: no such file", "make.py": "not a .npy file"} {
		_, err := format.LoadNPY("testdata/" + file).Bytes(context.Background())
		require.ErrorContains(t, err, want, file)
	}
}

func TestLoadNPY(t *testing.T) {
	x := format.LoadNPY("testdata/int32.npy")
	b, err := x.Bytes(context.Background())
	require.NoError(t, err)
	require.Equal(t, []byte{0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0, 0xfb, 0xff, 0xff, 0xff}, b)
}

// What was loaded from NumPy's files is written as the same bytes: those in row-major order and little-endian, whose
// header is of version 1.
func TestSaveNPY(t *testing.T) {
	files, err := filepath.Glob("testdata/*.npy")
	require.NoError(t, err)
	ctx, same := t.Context(), 0
	for _, file := range files {
		x := format.LoadNPY(file)
		if x.Err() != nil {
			continue // a dtype that arrays do not have
		}
		want, err := os.ReadFile(file)
		require.NoError(t, err)
		path := filepath.Join(t.TempDir(), "a.npy")
		require.NoError(t, format.SaveNPY(ctx, path, x))
		got, err := os.ReadFile(path)
		require.NoError(t, err)
		if strings.Contains(string(want), "'>") || strings.Contains(string(want), "'fortran_order': True") ||
			want[6] != 1 || strings.Contains(string(want), "V2") {
			again, err := format.LoadNPY(path).Bytes(ctx)
			require.NoError(t, err)
			first, err := x.Bytes(ctx)
			require.NoError(t, err)
			require.Equal(t, first, again, file)
			continue
		}
		require.Equal(t, string(want), string(got), file)
		same++
	}
	require.Greater(t, same, 12)
	x := format.LoadNPY("testdata/int16.npy")
	require.ErrorContains(t, format.SaveNPY(ctx, filepath.Join(t.TempDir(), "absent", "a.npy"), x), "no such file")
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "a.npy"), 0o755))
	require.ErrorContains(t, format.SaveNPY(ctx, filepath.Join(dir, "a.npy"), x), "[save] ")
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 1, "what could not be renamed is removed")
}
