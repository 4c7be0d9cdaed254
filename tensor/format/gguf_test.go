package format_test

import (
	"bytes"
	"encoding/binary"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/format"
)

func loadGGUF(t *testing.T, file string) (map[string]*tensor.Array, map[string]any) {
	t.Helper()
	got, metadata, err := format.LoadGGUF("testdata/" + file)
	require.NoError(t, err)
	b, err := os.ReadFile("testdata/" + file)
	require.NoError(t, err)
	read, _, err := format.ReadGGUF(bytes.NewReader(b))
	require.NoError(t, err)
	same(t, got, read)
	return got, metadata
}

// TestGGUFBlocks: each quantised type decodes to what the gguf package makes of it, rounded to float16.
func TestGGUFBlocks(t *testing.T) {
	got, _ := loadGGUF(t, "blocks.gguf")
	want, err := format.LoadNPZ("testdata/blocks.npz")
	require.NoError(t, err)
	require.Len(t, want, 23)
	packed := 0
	for _, name := range slices.Sorted(maps.Keys(want)) {
		w := numbers(t, want[name])
		if got[name+".scales"] != nil {
			require.Equal(t, w, unpack(t, got, name), name)
			packed++
			continue
		}
		x := got[name+".weight"]
		require.NotNil(t, x, name)
		require.Equal(t, tensor.Spec{Shape: want[name].Spec().Shape, DType: tensor.Float16}, x.Spec(), name)
		for i, v := range w {
			w[i] = float64(tensor.Float16Value(tensor.Float16Bits(float32(v))))
		}
		b, err := x.Bytes(t.Context())
		require.NoError(t, err)
		for i, v := range w {
			require.Equal(t, v, float64(tensor.Float16Value(binary.LittleEndian.Uint16(b[2*i:]))), "%s %d", name, i)
		}
	}
	require.Equal(t, 4, packed)
}

// unpack is the elements of a packed matrix, by the definition of MLX's modes.
func unpack(t *testing.T, arrays map[string]*tensor.Array, name string) []float64 {
	bytesOf := func(suffix string) []byte {
		b, err := arrays[name+suffix].Bytes(t.Context())
		require.NoError(t, err)
		return b
	}
	codes, scales := bytesOf(".weight"), bytesOf(".scales")
	biases := []byte(nil)
	if arrays[name+".biases"] != nil {
		biases = bytesOf(".biases")
	}
	half := func(b []byte, i int) float64 {
		return float64(tensor.Float16Value(binary.LittleEndian.Uint16(b[2*i:])))
	}
	n := arrays[name+".scales"].Spec().Shape.Size() * 32
	bits := len(codes) * 8 / n
	out := []float64{}
	for i := range n {
		q := int(codes[i*bits/8]) >> (i * bits % 8) & (1<<bits - 1)
		if biases != nil {
			out = append(out, float64(float32(half(scales, i/32)*float64(q)+half(biases, i/32))))
			continue
		}
		v := []float64{0, 0.5, 1, 1.5, 2, 3, 4, 6}[q&7]
		if q >= 8 {
			v = -v
		}
		for e := int(scales[i/32]); e != 127; {
			if e < 127 {
				v, e = v/2, e+1
			} else {
				v, e = v*2, e-1
			}
		}
		out = append(out, v)
	}
	return out
}

// TestGGUFTriples: the arrays of a packed matrix are MLX's, bit for bit.
func TestGGUFTriples(t *testing.T) {
	got, _ := loadGGUF(t, "triples.gguf")
	want, err := format.LoadNPZ("testdata/triples.npz")
	require.NoError(t, err)
	require.Len(t, want, 9)
	same(t, want, got)
}

func TestGGUFPlainAndMetadata(t *testing.T) {
	got, metadata := loadGGUF(t, "plain.gguf")
	for k, name := range []string{"F32 float32", "F16 float16", "I8 int8", "I16 int16", "I32 int32", "I64 int64",
		"F64 float64"} {
		name, dtype, _ := strings.Cut(name, " ")
		require.Equal(t, dtype, got[name].DType().String())
		require.Equal(t, tensor.Shape{2, 3}, got[name].Spec().Shape)
		require.Equal(t, counted(k, 6), numbers(t, got[name]), name)
	}
	require.Equal(t, []float64{1, -5}, numbers(t, got["BF16"]))

	for _, name := range []string{"uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float32",
		"float64"} {
		x := metadata["a."+name].(*tensor.Array)
		require.Equal(t, tensor.Shape{}, x.Spec().Shape)
		want := -7.0
		if name[0] == 'u' {
			want = 7
		}
		if name == "float64" {
			name = "float32"
		}
		require.Equal(t, name, x.DType().String())
		require.Equal(t, []float64{want}, numbers(t, x))
	}
	require.Equal(t, []float64{1}, numbers(t, metadata["a.bool"].(*tensor.Array)))
	require.Equal(t, "Grüße", metadata["a.string"])
	require.Equal(t, []string{"x", "", "Grüße"}, metadata["a.strings"])
	require.Equal(t, []float64{1, 2, -3}, numbers(t, metadata["a.ints"].(*tensor.Array)))
	require.Equal(t, []float64{1.5, -2.5}, numbers(t, metadata["a.floats"].(*tensor.Array)))
	require.Equal(t, []float64{1, 0}, numbers(t, metadata["a.bools"].(*tensor.Array)))
}

func TestSaveGGUF(t *testing.T) {
	arrays, metadata := loadGGUF(t, "plain.gguf")
	path := filepath.Join(t.TempDir(), "a.gguf")
	for _, align := range []uint32{0, 1, 4096} {
		if align != 0 {
			metadata["general.alignment"] = tensor.FromBytes(nil, tensor.Spec{Shape: tensor.Shape{}, DType: tensor.Uint32},
				binary.LittleEndian.AppendUint32(nil, align))
		}
		require.NoError(t, format.SaveGGUF(t.Context(), path, arrays, metadata, nil))
		got, about, err := format.LoadGGUF(path)
		require.NoError(t, err)
		same(t, arrays, got)
		require.Equal(t, slices.Sorted(maps.Keys(metadata)), slices.Sorted(maps.Keys(about)))
		for key, v := range metadata {
			if x, ok := v.(*tensor.Array); ok {
				require.Equal(t, x.Spec(), about[key].(*tensor.Array).Spec(), key)
				require.Equal(t, numbers(t, x), numbers(t, about[key].(*tensor.Array)), key)
			} else {
				require.Equal(t, v, about[key], key)
			}
		}
	}
	all := every(t)
	for _, name := range []string{"bool", "uint8", "complex64"} {
		err := format.SaveGGUF(t.Context(), path, map[string]*tensor.Array{"a": all[name]}, nil, nil)
		require.EqualError(t, err, "[save_gguf] "+path+`: tensor "a": the format has no type for `+name)
	}
	for want, v := range map[string]any{
		`the metadata "k": it is an array float16 (2, 3), want at most one dimension`: all["float16"],
		`the metadata "k": it is an array int8 (2, 3), want at most one dimension`:    all["int8"],
		`the metadata "k": it is a int, want an array, a string or strings`:           1,
	} {
		require.ErrorContains(t, format.WriteGGUF(t.Context(), &bytes.Buffer{}, nil, map[string]any{"k": v}, nil), want)
	}
}

// ggufFile puts numbers together: uint32 as 4 bytes, int as 8, a string as it is, and one in a slice with its length.
func ggufFile(parts ...any) string {
	var b []byte
	for _, p := range parts {
		switch p := p.(type) {
		case uint32:
			b = binary.LittleEndian.AppendUint32(b, p)
		case int:
			b = binary.LittleEndian.AppendUint64(b, uint64(p))
		case string:
			b = append(b, p...)
		case []string:
			b = binary.LittleEndian.AppendUint64(b, uint64(len(p[0])))
			b = append(b, p[0]...)
		}
	}
	return string(b)
}

func TestGGUFErrors(t *testing.T) {
	type u = uint32
	one := func(parts ...any) string { // a file of one tensor
		return ggufFile(append([]any{"GGUF", u(3), 1, 0, []string{"a"}}, parts...)...)
	}
	meta := func(parts ...any) string { // and one of one entry
		return ggufFile(append([]any{"GGUF", u(3), 0, 1, []string{"k"}}, parts...)...)
	}
	padded := func(s string, more int) string { return s + strings.Repeat("\x00", -len(s)&31+more) }
	two := func(parts ...any) string { return padded(ggufFile(append([]any{"GGUF", u(3), 2, 0}, parts...)...), 99) }
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "no .gguf file: it does not start with GGUF"},
		{"cut in the version", "GGUF\x03",
			"the file ends within its header: at byte 4, 4 bytes are to follow, and 1 are there"},
		{"version", ggufFile("GGUF", u(1), 0, 0), ".gguf version 1 is not 2 or 3"},
		{"later version", ggufFile("GGUF", u(4), 0, 0), ".gguf version 4 is not 2 or 3"},
		{"big-endian", "GGUF\x00\x00\x00\x03", "it is a big-endian .gguf file"},
		{"counts", ggufFile("GGUF", u(3), -1, -1), "within a key of the metadata"},
		{"tensors", ggufFile("GGUF", u(3), 1<<40, 0), "within the name of tensor 0"},
		{"key", ggufFile("GGUF", u(3), 0, 1, 1<<62), "within a key of the metadata: at byte 32, 4611686018427387904 bytes"},
		{"value", meta(u(6), "12"), `within the metadata "k": at byte 37, 4 bytes are to follow, and 2 are there`},
		{"type", meta(u(13), 0), `the metadata "k": its type is 13, which is none`},
		{"array", meta(u(9), u(4), 1<<61, 0), `within the metadata "k"`},
		{"array's type", meta(u(9), u(99), 0), "its type is 99"},
		{"strings", meta(u(9), u(8), 1<<40, []string{"x"}), `within the metadata "k"`},
		{"nested", meta(u(9), u(9), 0), `the metadata "k": an array of arrays is not supported`},
		{"twice", ggufFile("GGUF", u(3), 0, 2, []string{"k"}, u(4), u(1), []string{"k"}), `the metadata have "k" twice`},
		{"alignment", ggufFile("GGUF", u(3), 0, 1, []string{"general.alignment"}, u(4), u(3)),
			"it is 3, want a power of two"},
		{"no alignment", ggufFile("GGUF", u(3), 0, 1, []string{"general.alignment"}, u(8), []string{"8"}),
			"is no number"},
		{"rank", one(u(9)), `tensor "a" has 9 dimensions, at most 8 are accepted`},
		{"tensor's type", one(u(1), 4, u(9), 0), `tensor "a": its type is 9, which is unknown here`},
		{"block", one(u(1), 33, u(2), 0), `tensor "a": Q4_0 has shape (33,), want a last dimension of whole blocks of 32`},
		{"no block", one(u(0), u(12), 0), "Q4_K has shape (), want"},
		{"size", one(u(1), -1, u(0), 0), "dimension 0 has size 18446744073709551615"},
		{"overflow", one(u(3), 1<<30, 1<<30, 1<<30, u(0), 0), `tensor "a": `},
		{"offset", one(u(1), 1, u(0), -1), "it begins at byte 18446744073709551615 of the data"},
		{"cut short", padded(one(u(1), 2, u(0), 0), 7),
			`tensor "a" lies at bytes 0 to 8 of the data, of which the file has 7`},
		{"overlap", two([]string{"a"}, u(1), 2, u(0), 0, []string{"b"}, u(1), 1, u(0), 4),
			`tensor "b" begins at byte 4 of the data, within tensor "a"`},
		{"same name", two([]string{"a"}, u(1), 1, u(0), 0, []string{"a"}, u(1), 1, u(0), 4),
			`two arrays are named "a"`},
		{"scales", two([]string{"a.scales"}, u(1), 1, u(0), 0, []string{"a.weight"}, u(1), 32, u(8), 32),
			`tensor "a.weight": two arrays are named "a.scales"`},
	} {
		_, _, err := format.ReadGGUF(strings.NewReader(c.text))
		require.ErrorContains(t, err, c.want, c.name)
		require.ErrorContains(t, err, "[load] the stream: ", c.name)
	}
	long := ggufFile("GGUF", u(3), 1, 0, []string{strings.Repeat("x", 1<<20)}, u(9))
	_, _, err := format.ReadGGUF(strings.NewReader(long))
	require.EqualError(t, err, `[load] the stream: tensor "`+strings.Repeat("x", 99)+`" has 9 dimensions, at most 8 are `+
		"accepted"+place(err), "a name may be as long as the file")
	_, _, err = format.LoadGGUF("testdata/int16.npy")
	require.EqualError(t, err, "[load] testdata/int16.npy: no .gguf file: it does not start with GGUF"+place(err))
}

// place is the line that an error names.
func place(err error) string {
	s := err.Error()
	return s[strings.LastIndex(s, " ("):]
}
