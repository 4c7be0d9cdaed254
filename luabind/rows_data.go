package luabind

import (
	"fmt"
	"strconv"
	"sync"
	"unicode/utf8"

	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/luabind/lua51"
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/format"
)

// dataRows are the functions of mx.data that read files; the others are written in Lua.
var dataRows = []row{
	{name: "data.load_csv", sig: "file:string header:bool=true delimiter:string=, types:table? missing:strings?",
		host: true,
		help: "The columns of a CSV file: a table of them by the names in the first line, or with header = false a " +
			"list, and as a second result the list of the names. A column's type is the first one that all its " +
			"values have of bool (true, false), int32, int64, float32; else it is a list of strings. types = {size " +
			"= mx.float64, code = \"string\"} gives it (bool, an integer type, float32 or float64), without a " +
			"header by number. A missing value (\"\", \"NA\", \"N/A\", \"NaN\", \"nan\", \"null\", \"None\", or " +
			"those that missing lists) is NaN, so that its column is float32; among strings it stands as it is. " +
			"Fields may be quoted as in RFC 4180. Errors name line and column.",
		call: loadCSV},
	{name: "data.load_idx", sig: "file:string",
		help: "The array in an IDX file, the format of MNIST's digits, or in such a file that gzip has compressed. " +
			"The elements are read when they are used.",
		call: func(a *args) any {
			return format.LoadIDX(a.readable(), a.Ctx)
		}},
	{name: "data.stream", sig: "", host: true,
		help: "The stream that loaders compute batches ahead on: one, of the default device, for the whole program; a " +
			"state in a sandbox has a stream of its own for everything.",
		call: func(a *args) any {
			if a.s.own != nil {
				return a.s.userdata(streamKind, a.s.own)
			}
			stream, err := loaderStream(tensor.DefaultDevice())
			if err != nil {
				a.s.raise(err)
			}
			return a.s.userdata(streamKind, stream)
		}},
}

// loaderStreams are the streams of all loaders, one for each device: streams live as long as the program, so that there
// is not one for each loader or state.
var loaderStreams struct {
	sync.Mutex
	of map[tensor.DeviceID]*tensor.Stream
}

// loaderStream is the stream of loaders on a device.
func loaderStream(d tensor.DeviceID) (*tensor.Stream, error) {
	loaderStreams.Lock()
	defer loaderStreams.Unlock()
	if s := loaderStreams.of[d]; s != nil {
		return s, nil
	}
	s, err := tensor.NewStream(d)
	if err != nil {
		return nil, err
	}
	if loaderStreams.of == nil {
		loaderStreams.of = map[tensor.DeviceID]*tensor.Stream{}
	}
	loaderStreams.of[d] = s
	return s, nil
}

// missingValues is what stands for a missing value in CSV files if the script does not say.
var missingValues = []string{"", "NA", "N/A", "NaN", "nan", "null", "None"}

// loadCSV is mx.data.load_csv.
func loadCSV(a *args) any {
	file := a.readable()
	o := format.CSVOptions{Header: a.Bool(1), Missing: missingValues, Types: a.csvTypes(3)}
	delimiter, n := utf8.DecodeRuneInString(a.Text(2))
	if o.Delimiter = delimiter; n == 0 || n < len(a.Text(2)) {
		a.fail("delimiter is %s, want one character", quote(a.Text(2)))
	}
	if a.Given(4) {
		o.Missing = a.V[4].([]string)
	}
	held := lua51.Hold(a.s.State)
	defer held.End()
	o.Held = held.Add
	columns, err := format.LoadCSV(file, o)
	if err != nil {
		a.fail("%w", err)
	}
	out, names := a.s.NewTable(0, len(columns)), a.s.NewTable(len(columns), 0)
	for _, c := range columns {
		var v lua.LValue
		if c.Bytes != nil {
			spec := tensor.Spec{Shape: tensor.Shape{len(c.Bytes) / c.DType.Size()}, DType: c.DType}
			v = a.s.wrap(tensor.FromBytes(a.Ctx, spec, c.Bytes))
		} else {
			texts := a.s.NewTable(len(c.Texts), 0)
			for _, text := range c.Texts {
				texts.Append(lua.LString(text))
			}
			v = texts
		}
		if !o.Header {
			out.Append(v)
			continue
		}
		out.RawSetString(c.Name, v)
		names.Append(lua.LString(c.Name))
	}
	return values{out, names}
}

// csvTypes is argument i, a table of the types of a CSV file's columns.
func (a *args) csvTypes(i int) map[string]format.CSVType {
	t := a.table(i)
	if t == nil {
		return nil
	}
	out := map[string]format.CSVType{}
	for k, v := t.Next(lua.LNil); k != lua.LNil; k, v = t.Next(k) {
		name := k.String()
		if n, ok := k.(lua.LNumber); ok {
			name = strconv.Itoa(int(n))
		}
		d, ok := unwrap[tensor.DType](v)
		switch {
		case v == lua.LString("string"):
			out[name] = format.CSVType{Text: true}
		case ok && (d == tensor.Bool || d.IsInteger() || d == tensor.Float32 || d == tensor.Float64):
			out[name] = format.CSVType{DType: d}
		case ok:
			a.fail("types[%s] is %v, want bool, an integer type, float32 or float64", quote(name), d)
		default:
			a.wrong(fmt.Sprintf("types[%s]", quote(name)), wrong(v, "a dtype or \"string\""))
		}
	}
	return out
}
