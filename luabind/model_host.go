package luabind

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/luabind/lua51"
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/format"
)

// openModelHost makes the package lm.host: what the scripts of scripts/lm need that Lua does not have. JSON's null is
// host.null, and a JSON array has the metatable host.array, so that an empty one is written as one again.
func openModelHost(s *State) lua.LValue {
	t, array := s.L.NewTable(), s.L.NewTable()
	array.RawSetString("__metatable", lua.LString("list"))
	t.RawSetString("null", s.L.NewUserData())
	t.RawSetString("array", array)
	for name, f := range map[string]hostFunction{
		"decode": func(L *lua.LState) (lua.LValue, error) { return decodeJSON(s, L, L.CheckString(1)) },
		"encode": func(L *lua.LState) (lua.LValue, error) {
			text, err := encodedJSON(s, L, L.CheckAny(1), L.OptString(2, ""))
			return lua.LString(text), err
		},
		"list": func(L *lua.LState) (lua.LValue, error) {
			v := L.CheckTable(1)
			v.Metatable = jsonArray(L)
			return v, nil
		},
		"tokenizer": openTokenizer(s),
		"gguf_tokenizer": onFiles(s, func(L *lua.LState) (lua.LValue, error) {
			g, err := readGGUF(s.Context(), L.CheckString(1))
			if err != nil {
				return nil, err
			}
			raw, err := g.JSON()
			return lua.LString(raw), err
		}),
		"render": func(L *lua.LState) (lua.LValue, error) { return renderChat(s, L) },

		"kind":   onFiles(s, pathKind),
		"files":  onFiles(s, pathFiles),
		"read":   onFiles(s, func(L *lua.LState) (lua.LValue, error) { return readText(s, L.CheckString(1)) }),
		"mkdir":  onPaths(s, func(p []string) error { return os.MkdirAll(p[0], 0o755) }),
		"rename": onPaths(s, func(p []string) error { return os.Rename(p[0], p[1]) }),
		"remove": onPaths(s, func(p []string) error { return os.RemoveAll(p[0]) }),
		"copy":   onPaths(s, func(p []string) error { return copyFile(p[0], p[1]) }),
		"write":  onPaths(s, func(p []string) error { return os.WriteFile(p[0], []byte(p[1]), 0o644) }),
		"save":   onFiles(s, func(L *lua.LState) (lua.LValue, error) { return lua.LTrue, saveWeights(s, L) }),
	} {
		t.RawSetString(name, s.Func(func(L *lua.LState) int {
			v, err := f(L)
			if err != nil {
				if errors.Is(err, ErrLimit) || s.Context().Err() != nil {
					s.raise(err)
				}
				L.Push(lua.LNil)
				L.Push(lua.LString(err.Error()))
				return 2
			}
			L.Push(v)
			return 1
		}, t, lua.LString("lm.host."+name))) // its name is for help
	}
	return t
}

// hostFunction is a function of lm.host. Its first upvalue is the package.
type hostFunction = func(L *lua.LState) (lua.LValue, error)

func hostEntry(L *lua.LState, name string) lua.LValue {
	return L.Get(lua.UpvalueIndex(1)).(*lua.LTable).RawGetString(name)
}

func jsonNull(L *lua.LState) lua.LValue { return hostEntry(L, "null") }

// jsonArray is the metatable of JSON's arrays.
func jsonArray(L *lua.LState) lua.LValue { return hostEntry(L, "array") }

var errNoFiles = errors.New("this state has no access to files")

// onFiles refuses a function where scripts may not use files.
func onFiles(s *State, f hostFunction) hostFunction {
	return func(L *lua.LState) (lua.LValue, error) {
		if !s.files {
			return nil, errNoFiles
		}
		return f(L)
	}
}

// onPaths is a function of Lua's over one or two texts.
func onPaths(s *State, f func(paths []string) error) hostFunction {
	return onFiles(s, func(L *lua.LState) (lua.LValue, error) {
		return lua.LTrue, f([]string{L.CheckString(1), L.OptString(2, "")})
	})
}

// pathKind is "file" or "directory".
func pathKind(L *lua.LState) (lua.LValue, error) {
	info, err := os.Stat(L.CheckString(1))
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return lua.LString("directory"), nil
	}
	return lua.LString("file"), nil
}

// pathFiles are the names in a directory, sorted.
func pathFiles(L *lua.LState) (lua.LValue, error) {
	entries, err := os.ReadDir(L.CheckString(1))
	if err != nil {
		return nil, err
	}
	t := L.NewTable()
	for _, e := range entries {
		t.Append(lua.LString(e.Name()))
	}
	return t, nil
}

// readText is all of a file, which counts as the script's while it is read.
func readText(s *State, path string) (lua.LValue, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	taken := lua51.Hold(s.State)
	defer taken.End()
	var text bytes.Buffer
	for {
		const piece = 1 << 20
		n, err := io.CopyN(&text, f, piece)
		if over := taken.Add(2 * n); over != nil { // the buffer, and the text
			return nil, over
		}
		switch err {
		case nil:
		case io.EOF:
			return lua.LString(text.String()), nil
		default:
			return nil, err
		}
	}
}

// copyFile copies a file's bytes.
func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// saveWeights is save(path, arrays, metadata, written): it writes a .safetensors file of a table of arrays by name,
// which it evaluates one after the other, and calls written(name) after each.
func saveWeights(s *State, L *lua.LState) error {
	arrays, metadata := map[string]*tensor.Array{}, map[string]string{}
	var wrong error
	L.CheckTable(2).ForEach(func(k, v lua.LValue) {
		x, ok := array(v)
		if !ok {
			wrong = fmt.Errorf("%s is %s, want an array", k, describe(v))
		}
		arrays[k.String()] = x
	})
	if wrong != nil {
		return wrong
	}
	L.CheckTable(3).ForEach(func(k, v lua.LValue) { metadata[k.String()] = v.String() })
	written := L.CheckFunction(4)
	return format.WriteFile("save", L.CheckString(1), func(w io.Writer) error {
		return format.StreamSafetensors(s.Context(), w, arrays, metadata, func(name string) error {
			_, err := s.looks.protect(written, lua.LString(name))
			return err
		})
	})
}

// mostNestedJSON is how deep a JSON text may be nested.
const mostNestedJSON = 100

var errNestedJSON = fmt.Errorf("JSON: the value is nested more than %d deep", mostNestedJSON)

// jsonReader reads a JSON text as Lua values, which it counts as the script's.
type jsonReader struct {
	*json.Decoder
	taken *lua51.Holding
}

// What a value takes in a table, and a table by itself.
const (
	jsonValueBytes = 64
	jsonTableBytes = 160
)

// decodeJSON is a JSON text as Lua values.
func decodeJSON(s *State, L *lua.LState, text string) (lua.LValue, error) {
	r := &jsonReader{json.NewDecoder(strings.NewReader(text)), lua51.Hold(s.State)}
	defer r.taken.End()
	r.UseNumber()
	v, err := r.value(L, 0)
	if err == nil {
		if _, end := r.Token(); end != io.EOF {
			err = fmt.Errorf("there is more after the value, at byte %d", r.InputOffset())
		}
	}
	if err != nil {
		return nil, fmt.Errorf("JSON: %w", err)
	}
	return v, nil
}

// value reads one value.
func (r *jsonReader) value(L *lua.LState, depth int) (lua.LValue, error) {
	token, err := r.Token()
	if err != nil {
		return nil, err
	}
	if err := r.taken.Add(jsonValueBytes); err != nil {
		return nil, err
	}
	switch v := token.(type) {
	case nil:
		return jsonNull(L), nil
	case bool:
		return lua.LBool(v), nil
	case string:
		return lua.LString(v), r.taken.Add(int64(len(v)))
	case json.Number:
		n, err := v.Float64()
		return lua.LNumber(n), err
	case json.Delim:
		if depth == mostNestedJSON {
			return nil, errNestedJSON
		}
		return r.collection(L, v, depth+1)
	}
	return nil, fmt.Errorf("unexpected %v", token)
}

// collection reads what follows an opening bracket.
func (r *jsonReader) collection(L *lua.LState, open json.Delim, depth int) (lua.LValue, error) {
	if err := r.taken.Add(jsonTableBytes); err != nil {
		return nil, err
	}
	t := L.NewTable()
	if open == '[' {
		t.Metatable = jsonArray(L)
	}
	for r.More() {
		var key string
		if open == '{' {
			token, err := r.Token()
			if err != nil {
				return nil, err
			}
			key = token.(string)
			if err := r.taken.Add(jsonTableBytes + int64(len(key))); err != nil {
				return nil, err
			}
		}
		v, err := r.value(L, depth)
		if err != nil {
			return nil, err
		}
		if open == '{' {
			t.RawSetString(key, v)
		} else {
			t.Append(v)
		}
	}
	_, err := r.Token()
	return t, err
}

// jsonWriter writes Lua values as JSON. What it has written is the script's.
type jsonWriter struct {
	bytes.Buffer
	taken   *lua51.Holding
	counted int // bytes
}

// encodedJSON is a value as JSON: the keys of a table are sorted; indent is what each level is moved by, "" for one
// line.
func encodedJSON(s *State, L *lua.LState, v lua.LValue, indent string) (string, error) {
	w := &jsonWriter{taken: lua51.Hold(s.State)}
	defer w.taken.End()
	if err := w.value(L, v, indent, "\n", 0); err != nil {
		return "", err
	}
	return w.String(), nil
}

// value writes a value, whose lines begin with line.
func (w *jsonWriter) value(L *lua.LState, v lua.LValue, indent, line string, depth int) error {
	if depth > mostNestedJSON {
		return errNestedJSON
	}
	if err := w.count(v); err != nil {
		return err
	}
	switch v := v.(type) {
	case lua.LBool:
		w.WriteString(v.String())
	case lua.LNumber:
		return w.number(float64(v))
	case lua.LString:
		e := json.NewEncoder(&w.Buffer)
		e.SetEscapeHTML(false)
		if err := e.Encode(string(v)); err != nil {
			return err
		}
		w.Truncate(w.Len() - 1) // the encoder's line end
	case *lua.LTable:
		return w.table(L, v, indent, line, depth)
	default:
		if v != jsonNull(L) {
			return fmt.Errorf("JSON: a %s cannot be written", v.Type())
		}
		w.WriteString("null")
	}
	return nil
}

// count counts what was written, and what a value is about to take at least.
func (w *jsonWriter) count(v lua.LValue) error {
	n := w.Len()
	if s, ok := v.(lua.LString); ok {
		n += len(s)
	}
	more := n - w.counted
	w.counted = n
	return w.taken.Add(int64(2 * more)) // the buffer, and the text
}

func (w *jsonWriter) number(v float64) error {
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return fmt.Errorf("JSON: the number %v cannot be written", v)
	case v == math.Trunc(v) && math.Abs(v) < 1<<53:
		w.WriteString(strconv.FormatInt(int64(v), 10))
	default:
		w.WriteString(strconv.FormatFloat(v, 'g', -1, 64))
	}
	return nil
}

func (w *jsonWriter) table(L *lua.LState, t *lua.LTable, indent, line string, depth int) error {
	inner, separator := line+indent, ","
	if indent == "" {
		inner, line, separator = "", "", ", "
	}
	if t.Metatable == jsonArray(L) || t.Len() > 0 {
		w.WriteByte('[')
		for i := 1; i <= t.Len(); i++ {
			if i > 1 {
				w.WriteString(separator)
			}
			w.WriteString(inner)
			if err := w.value(L, t.RawGetInt(i), indent, inner, depth+1); err != nil {
				return err
			}
		}
		if t.Len() > 0 {
			w.WriteString(line)
		}
		w.WriteByte(']')
		return nil
	}
	var keys []string
	for k, _ := t.Next(lua.LNil); k != lua.LNil; k, _ = t.Next(k) {
		if _, ok := k.(lua.LString); !ok {
			return fmt.Errorf("JSON: an object has the key %s, want strings", describe(k))
		}
		keys = append(keys, k.String())
	}
	slices.Sort(keys)
	w.WriteByte('{')
	for i, k := range keys {
		if i > 0 {
			w.WriteString(separator)
		}
		w.WriteString(inner)
		if err := w.value(L, lua.LString(k), "", "", depth+1); err != nil {
			return err
		}
		w.WriteString(": ")
		if err := w.value(L, t.RawGetString(k), indent, inner, depth+1); err != nil {
			return err
		}
	}
	if len(keys) > 0 {
		w.WriteString(line)
	}
	w.WriteByte('}')
	return nil
}
