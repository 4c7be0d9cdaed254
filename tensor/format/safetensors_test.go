package format_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/format"
)

// checkEvery wants what make_archives.py put into every.safetensors.
func checkEvery(t *testing.T, got map[string]*tensor.Array, metadata map[string]string) {
	t.Helper()
	require.Equal(t, map[string]string{"format": "np", "who": "Grüße"}, metadata)
	for k, name := range []string{"float64", "int64", "uint64", "complex64", "float32", "int32", "uint32", "float16",
		"int16", "uint16", "int8", "uint8", "bool"} {
		x := got[name]
		require.NotNil(t, x, name)
		require.Equal(t, name, x.DType().String())
		require.Equal(t, tensor.Shape{2, 3}, x.Spec().Shape)
		want := counted(k, 6)
		if name == "bool" {
			want = []float64{1, 1, 1, 1, 1, 1}
		}
		require.Equal(t, want, numbers(t, x), name)
	}
	require.Equal(t, []float64{1, -5}, numbers(t, got["bfloat16"]))
	for _, name := range []string{"float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "float4_e2m1fn_x2"} {
		require.Equal(t, tensor.Spec{Shape: tensor.Shape{4}, DType: tensor.Uint8}, got[name].Spec(), name)
		require.Equal(t, []float64{0, 0x7E, 0xFE, 0xB6}, numbers(t, got[name]), name)
	}
	require.Len(t, got, 18)
}

func TestLoadSafetensors(t *testing.T) {
	got, metadata, err := format.LoadSafetensors("testdata/every.safetensors")
	require.NoError(t, err)
	checkEvery(t, got, metadata)
	b, err := os.ReadFile("testdata/every.safetensors")
	require.NoError(t, err)
	got, metadata, err = format.ReadSafetensors(bytes.NewReader(b))
	require.NoError(t, err)
	checkEvery(t, got, metadata)

	got, metadata, err = format.LoadSafetensors("testdata/mlx.safetensors")
	require.NoError(t, err)
	require.Empty(t, metadata)
	require.Equal(t, counted(7, 1), numbers(t, got["a"]))
	require.Equal(t, counted(0, 40), numbers(t, got["b"]))

	got, _, err = format.LoadSafetensors("testdata/shapes.safetensors")
	require.NoError(t, err)
	require.Equal(t, tensor.Spec{Shape: tensor.Shape{0, 2}, DType: tensor.Float32}, got["zero"].Spec())
	require.Equal(t, []float64{2.5}, numbers(t, got["scalar"]))
	require.Equal(t, tensor.Shape{}, got["scalar"].Spec().Shape)
}

// safetensor is a file of that header and data.
func safetensor(header, data string) string {
	return string(binary.LittleEndian.AppendUint64(nil, uint64(len(header)))) + header + data
}

func TestSafetensorsErrors(t *testing.T) {
	f4 := func(name, shape, offsets string) string {
		return `"` + name + `":{"dtype":"F32","shape":` + shape + `,"data_offsets":` + offsets + `}`
	}
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "no .safetensors file: it has 0 bytes"},
		{"no length", "1234567", "it has 7 bytes"},
		{"huge header", "\xff\xff\xff\xff\xff\xff\xff\xff{}", "the header's length is 18446744073709551615"},
		{"cut in the header", safetensor("{}", "")[:9], "the file ends within its header: it has 9 bytes, the header 2"},
		{"no object", safetensor("[]", ""), "the header at byte 8 is no JSON object"},
		{"no UTF-8", safetensor("{\"\xff\":1}", ""), "is no JSON object"},
		{"no JSON", safetensor(`{"a"`, ""), "byte 12: a colon after the key is wanted, not the end of the text"},
		{"unclosed", safetensor(`{`, ""), "bad header at byte 9: a key in double quotes is wanted"},
		{"rest", safetensor(`{} {}`, ""), "the JSON goes on after its end"},
		{"twice", safetensor("{"+f4("a", "[1]", "[0,4]")+","+f4("a", "[1]", "[4,8]")+"}", "12345678"),
			`two tensors are named "a"`},
		{"metadata", safetensor(`{"__metadata__":{"a":1}}`, ""), "maps strings to strings: it is a number, want a text"},
		{"no dtype", safetensor(`{"a":{"shape":[],"data_offsets":[0,0]}}`, ""), `tensor "a": dtype is missing`},
		{"no shape", safetensor(`{"a":{"dtype":"F32","data_offsets":[0,0]}}`, ""), "shape is missing"},
		{"offsets", safetensor("{"+f4("a", "[1]", "[0]")+"}", "1234"), "data_offsets has 1 numbers"},
		{"negative", safetensor("{"+f4("a", "[-1]", "[0,4]")+"}", "1234"), `shape is the number -1, want a whole number`},
		{"backwards", safetensor("{"+f4("a", "[1]", "[4,0]")+"}", "1234"), "data_offsets are 4 and 0"},
		{"unknown", safetensor(`{"a":{"dtype":"F6_E2M3","shape":[4],"data_offsets":[0,3]}}`, "123"),
			`dtype "F6_E2M3" has no counterpart here`},
		{"odd", safetensor(`{"a":{"dtype":"F4","shape":[3],"data_offsets":[0,1]}}`, "1"), "F4 has shape (3,)"},
		{"size", safetensor("{"+f4("a", "[2]", "[0,4]")+"}", "1234"), "4 bytes apart, and float32 (2,) takes 8"},
		{"overflow", safetensor("{"+f4("a", "[4294967296,4294967296,4]", "[0,0]")+"}", ""), `tensor "a": `},
		{"huge size", safetensor("{"+f4("a", "[9223372036854775808]", "[0,0]")+"}", ""),
			"dimension 0 has size 9223372036854775808"},
		{"cut short", safetensor("{"+f4("a", "[2]", "[0,8]")+"}", "1234"),
			`tensor "a": data_offsets are 0 and 8, and the file has 4 ` + "bytes after its header: is it cut short?"},
		{"overlap", safetensor("{"+f4("a", "[2]", "[0,8]")+","+f4("b", "[1]", "[4,8]")+"}", "12345678"),
			`tensor "b" begins at byte 4 of the data, within tensor "a"`},
		{"hole", safetensor("{"+f4("a", "[1]", "[4,8]")+"}", "12345678"),
			"bytes 0 to 4 of the data belong to no tensor"},
		{"left over", safetensor("{"+f4("a", "[1]", "[0,4]")+"}", "12345678"),
			"bytes 4 to 8 of the data belong to no tensor"},
	} {
		_, _, err := format.ReadSafetensors(strings.NewReader(c.text))
		require.ErrorContains(t, err, c.want, c.name)
		require.ErrorContains(t, err, "[load] the stream: ", c.name)
	}
	_, _, err := format.LoadSafetensors("testdata/int16.npy")
	require.ErrorContains(t, err, "[load] testdata/int16.npy: ")
	_, _, err = format.LoadSafetensors("testdata")
	require.ErrorContains(t, err, "[load] cannot read testdata: it is a directory")
}

// A file that the safetensors package made is written again: with the same header but for its order.
func TestSaveSafetensors(t *testing.T) {
	arrays := every(t)
	metadata := map[string]string{"format": "np", "who": "Grüße", "html": "<&>"}
	path := filepath.Join(t.TempDir(), "a.safetensors")
	require.NoError(t, format.SaveSafetensors(t.Context(), path, arrays, metadata))
	got, texts, err := format.LoadSafetensors(path)
	require.NoError(t, err)
	require.Equal(t, metadata, texts)
	same(t, arrays, got)
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Zero(t, binary.LittleEndian.Uint64(b)%8, "the data are aligned")
	require.Contains(t, string(b), `"html":"<&>"`)

	var out bytes.Buffer
	require.NoError(t, format.WriteSafetensors(t.Context(), &out, nil, nil))
	require.Equal(t, safetensor("{}      ", ""), out.String())
	err = format.WriteSafetensors(t.Context(), &out, map[string]*tensor.Array{"__metadata__": arrays["bool"]}, nil)
	require.ErrorContains(t, err, "a tensor is named __metadata__")
	err = format.WriteSafetensors(t.Context(), &out, nil, map[string]string{"a": "\xff"})
	require.ErrorContains(t, err, "metadata is not UTF-8")
}

// TestSafetensorsAreMapped: a file larger than the memory limit loads, costs nothing, and is read where it is used; the
// file may be deleted meanwhile.
func TestSafetensorsAreMapped(t *testing.T) {
	const n = 64 << 20
	path := filepath.Join(t.TempDir(), "large.safetensors")
	header := `{"a":{"dtype":"U8","shape":[67108864],"data_offsets":[0,67108864]},` +
		`"b":{"dtype":"F32","shape":[32],"data_offsets":[67108864,67108992]}}`
	require.NoError(t, os.WriteFile(path, []byte(safetensor(header, "")), 0o600))
	require.NoError(t, os.Truncate(path, int64(8+len(header)+n+128))) // a hole: it reads as zeros
	dev := newDevice(t)
	dev.SetMemoryLimit(16 << 20)
	got, _, err := format.LoadSafetensors(path)
	require.NoError(t, err)
	require.Zero(t, dev.Memory().Active)
	if runtime.GOOS != "windows" {
		require.NoError(t, os.Remove(path))
	}
	require.Equal(t, make([]float64, 32), numbers(t, got["b"]))
	spec, v, release, err := got["a"].HostView(t.Context())
	require.NoError(t, err)
	require.Equal(t, int64(n), spec.NBytes())
	require.Zero(t, v.Bytes[v.OffsetBytes+n-1])
	release()
	require.Zero(t, dev.Memory().Active)
	got["a"].Free(nil)
	_, err = got["a"].Bytes(t.Context())
	require.ErrorContains(t, err, "was freed")
}

// A file that becomes shorter while arrays lie in it is an error of those who read it.
func TestShortenedSafetensors(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a file that is mapped cannot become shorter")
	}
	path := filepath.Join(t.TempDir(), "a.safetensors")
	header := `{"a":{"dtype":"F32","shape":[65536],"data_offsets":[0,262144]}}`
	require.NoError(t, os.WriteFile(path, []byte(safetensor(header, string(make([]byte, 262144)))), 0o600))
	got, _, err := format.LoadSafetensors(path)
	require.NoError(t, err)
	require.NoError(t, os.Truncate(path, 100))
	_, err = got["a"].Bytes(t.Context())
	require.ErrorContains(t, err, path+" cannot be read at byte ")
}

// Arrays that are written one after the other are all there, in the order of their names, each aligned; the next one is
// made no sooner than its predecessor is written, but for one.
func TestStreamSafetensors(t *testing.T) {
	arrays, made := map[string]*tensor.Array{}, map[string]*atomic.Bool{}
	want := map[string][]byte{}
	for i, spec := range []tensor.Spec{
		{Shape: tensor.Shape{3}, DType: tensor.Uint8}, {Shape: tensor.Shape{4}, DType: tensor.Float16},
		{Shape: tensor.Shape{3}, DType: tensor.Float32}, {Shape: tensor.Shape{2}, DType: tensor.Float32},
		{Shape: tensor.Shape{5}, DType: tensor.Float16}, {Shape: tensor.Shape{}, DType: tensor.Float64},
		{Shape: tensor.Shape{0, 2}, DType: tensor.Bool}, {Shape: tensor.Shape{8}, DType: tensor.Int8},
	} {
		name, flag := string(rune('a'+i)), &atomic.Bool{}
		want[name] = bytes.Repeat([]byte{byte(i + 1)}, int(spec.NBytes()))
		made[name] = flag
		arrays[name] = format.Deferred(&tensor.Ctx{}, spec, func(dst []byte) error {
			flag.Store(true)
			for k := range dst {
				dst[k] = byte(i + 1)
			}
			return nil
		})
	}
	var b bytes.Buffer
	var order string
	err := format.StreamSafetensors(t.Context(), &b, arrays, map[string]string{"format": "mlx"}, func(name string) error {
		if order += name; order == "b" {
			require.False(t, made["f"].Load() || made["h"].Load())
		}
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, "bdfghcea", order) // at last those of 12, 10 and 3 bytes

	got, metadata, err := format.ReadSafetensors(bytes.NewReader(b.Bytes()))
	require.NoError(t, err)
	require.Equal(t, map[string]string{"format": "mlx"}, metadata)
	require.Len(t, got, len(want))
	for name, x := range got {
		raw, err := x.Bytes(t.Context())
		require.NoError(t, err)
		require.True(t, bytes.Equal(want[name], raw), name)
	}
	header := b.Bytes()[8 : 8+binary.LittleEndian.Uint64(b.Bytes())]
	var places map[string]struct {
		DataOffsets [2]int `json:"data_offsets"`
	}
	require.NoError(t, json.Unmarshal(bytes.Replace(header, []byte(`"__metadata__":{"format":"mlx"},`), nil, 1), &places))
	for name, p := range places {
		require.Zero(t, p.DataOffsets[0]%max(arrays[name].DType().Size(), 1), name)
	}

	var plain bytes.Buffer
	require.NoError(t, format.WriteSafetensors(t.Context(), &plain, arrays, map[string]string{"format": "mlx"}))
	require.True(t, bytes.Equal(b.Bytes(), plain.Bytes()), "one order of tensors")

	stop := errors.New("stop")
	err = format.StreamSafetensors(t.Context(), &b, arrays, nil, func(string) error { return stop })
	require.ErrorIs(t, err, stop)
}
