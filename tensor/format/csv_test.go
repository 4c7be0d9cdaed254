package format_test

import (
	"encoding/hex"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/format"
)

var usual = format.CSVOptions{Header: true, Delimiter: ',', Missing: []string{"", "NA"}}

// What Python reads of the file that make_csv.py wrote.
func TestLoadCSVAsPython(t *testing.T) {
	var want struct {
		Names   []string
		Texts   map[string][]string
		Numbers map[string][2]string
	}
	text, err := os.ReadFile("testdata/table.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &want))
	columns, err := format.LoadCSV("testdata/table.csv", usual)
	require.NoError(t, err)
	require.Len(t, columns, len(want.Names))
	for i, c := range columns {
		require.Equal(t, want.Names[i], c.Name)
		if c.Bytes == nil {
			require.Equal(t, want.Texts[c.Name], c.Texts)
			continue
		}
		require.Equal(t, want.Numbers[c.Name], [2]string{c.DType.String(), hex.EncodeToString(c.Bytes)}, c.Name)
	}
}

func TestReadCSVTypes(t *testing.T) {
	read := func(text string, o format.CSVOptions) []format.CSVColumn {
		columns, err := format.ReadCSV(strings.NewReader(text), o)
		require.NoError(t, err)
		return columns
	}
	dtypes := func(columns []format.CSVColumn) (out []tensor.DType) {
		for _, c := range columns {
			out = append(out, c.DType)
		}
		return out
	}
	o := usual
	o.Header, o.Delimiter = false, ';'
	columns := read("1;2;3;true;x\n\n2147483648;;-3;FALSE;0x10\n", o)
	require.Equal(t, []tensor.DType{tensor.Int64, tensor.Float32, tensor.Int32, tensor.Bool}, dtypes(columns[:4]))
	require.Equal(t, []string{"x", "0x10"}, columns[4].Texts)
	require.Equal(t, []byte{1, 0}, columns[3].Bytes)
	require.True(t, math.IsNaN(float64(math.Float32frombits(le32(columns[1].Bytes[4:])))))

	o.Types = map[string]format.CSVType{"1": {DType: tensor.Float64}, "2": {Text: true}, "3": {DType: tensor.Int8}}
	columns = read("1;2;3\n4; 5;-6", o)
	require.Equal(t, tensor.Float64, columns[0].DType)
	require.Equal(t, []string{"2", " 5"}, columns[1].Texts)
	require.Equal(t, []byte{3, 0xfa}, columns[2].Bytes)

	require.Len(t, read("a,b\n", usual), 2, "no records")
}

func le32(b []byte) uint32 {
	return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24
}

func TestCSVErrors(t *testing.T) {
	types := func(name string, d tensor.DType) map[string]format.CSVType {
		return map[string]format.CSVType{name: {DType: d}}
	}
	for _, c := range []struct {
		text  string
		types map[string]format.CSVType
		want  string
	}{
		{"a,b\n1,2\n3\n", nil, "line 3, column 1: the record has 1 field, want 2"},
		{"a,b\n1,2\n3,4,5\n", nil, "line 3, column 5: the record has 3 fields, want 2"},
		{"a,b\n1,\"2\n", nil, `line 2, column 6: extraneous or missing " in quoted-field`},
		{"a,b\n1,2\"\n", nil, `line 2, column 4: bare " in non-quoted-field`},
		{"a,b\n1,x\n", types("b", tensor.Float32), `line 2, column 3: "x" is no float32`},
		{"a,b\n1,300\n", types("b", tensor.Int8), `line 2, column 3: "300" is no int8`},
		{"a,b\n\"1\n\",-1\n", types("b", tensor.Uint8), `line 3, column 3: "-1" is no uint8`},
		{"a,b\n1,NA\n", types("b", tensor.Int32), "line 2, column 3: the value is missing, which no int32 can express"},
		{"a,b\n1,2\n", types("c", tensor.Int32), `types has "c", and there is no such column`},
		{"a,a\n1,2\n", nil, `line 1, column 3: two columns are named "a"`},
		{"", nil, "the file is empty"},
	} {
		o := usual
		o.Types = c.types
		_, err := format.ReadCSV(strings.NewReader(c.text), o)
		require.ErrorContains(t, err, c.want, c.text)
	}
	_, err := format.ReadCSV(strings.NewReader("a"), format.CSVOptions{Delimiter: '"'})
	require.ErrorContains(t, err, "delimiter is '\"'")
	_, err = format.LoadCSV("testdata/none.csv", usual)
	require.ErrorContains(t, err, "cannot open testdata/none.csv: no such file")
	file := filepath.Join(t.TempDir(), "bad.csv")
	require.NoError(t, os.WriteFile(file, []byte("a\n1\n2,3\n"), 0o600))
	_, err = format.LoadCSV(file, usual)
	require.ErrorContains(t, err, "bad.csv: line 3, column 3")
}

// Of make_csv.py's file, plain and compressed, the elements are what NumPy holds.
func TestLoadIDX(t *testing.T) {
	want := numbers(t, format.LoadNPY("testdata/digits.npy"))
	for _, file := range []string{"testdata/digits.idx", "testdata/digits.idx.gz"} {
		x := format.LoadIDX(file)
		require.NoError(t, x.Err())
		require.Equal(t, tensor.Spec{Shape: tensor.Shape{2, 3, 4}, DType: tensor.Int16}, x.Spec())
		require.Equal(t, want, numbers(t, x))

		whole, err := os.ReadFile(file)
		require.NoError(t, err)
		damaged := filepath.Join(t.TempDir(), "a")
		fails := func(b []byte) {
			require.NoError(t, os.WriteFile(damaged, b, 0o600))
			x := format.LoadIDX(damaged)
			err := x.Err()
			if err == nil {
				_, err = x.Bytes(t.Context())
			}
			require.ErrorContains(t, err, damaged)
		}
		for n := range whole {
			fails(whole[:n])
		}
		fails(append(whole, 0)) // gzip's file ends with another that is none
	}
}

// A header that says more than memory holds is an error before memory is asked for.
func TestIDXHeaders(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.idx")
	for text, want := range map[string]string{
		"\x00\x00\x0d\x04\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff": "4294967295",
		"\x00\x00\x0e\x02\x7f\xff\xff\xff\x00\xff\xff\xff":                                 "limit",
		"\x00\x00\x0a\x01\x00\x00\x00\x00":                                                 "unknown type: 0x0a",
		"\x89PNG":                                                                          "not an IDX file",
	} {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		require.ErrorContains(t, format.LoadIDX(file).Err(), want)
	}
}

// A deferred array is made once, when it is needed.
func TestDeferred(t *testing.T) {
	calls := 0
	three := tensor.Spec{Shape: tensor.Shape{3}, DType: tensor.Uint8}
	x := format.Deferred(tensor.Call(nil), three, func(dst []byte) error {
		calls++
		copy(dst, []byte{1, 2, 3})
		return nil
	})
	require.Zero(t, calls)
	require.Equal(t, counted(1, 3), numbers(t, x))
	require.Equal(t, counted(1, 3), numbers(t, x))
	require.Equal(t, 1, calls)

	x = format.Deferred(tensor.Call(nil), three, func([]byte) error { return os.ErrDeadlineExceeded })
	_, err := x.Bytes(t.Context())
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	x = format.Deferred(tensor.Call(nil), tensor.Spec{Shape: tensor.Shape{1 << 30, 1 << 30}, DType: tensor.Uint8}, nil)
	require.Error(t, x.Err())
}
