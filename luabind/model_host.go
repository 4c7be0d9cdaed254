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
		"decode": func(L *lua.LState) (lua.LValue, error) { return decodeJSON(L, L.CheckString(1)) },
		"encode": func(L *lua.LState) (lua.LValue, error) {
			var b bytes.Buffer
			err := encodeJSON(L, &b, L.CheckAny(1), L.OptString(2, ""), "\n", 0)
			return lua.LString(b.String()), err
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

// decodeJSON is a JSON text as Lua values.
func decodeJSON(L *lua.LState, text string) (lua.LValue, error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	v, err := jsonValue(L, d)
	if err == nil {
		if _, end := d.Token(); end != io.EOF {
			err = fmt.Errorf("there is more after the value, at byte %d", d.InputOffset())
		}
	}
	if err != nil {
		return nil, fmt.Errorf("JSON: %w", err)
	}
	return v, nil
}

// jsonValue reads one value.
func jsonValue(L *lua.LState, d *json.Decoder) (lua.LValue, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch v := token.(type) {
	case nil:
		return jsonNull(L), nil
	case bool:
		return lua.LBool(v), nil
	case string:
		return lua.LString(v), nil
	case json.Number:
		n, err := v.Float64()
		return lua.LNumber(n), err
	case json.Delim:
		return jsonCollection(L, d, v)
	}
	return nil, fmt.Errorf("unexpected %v", token)
}

// jsonCollection reads what follows an opening bracket.
func jsonCollection(L *lua.LState, d *json.Decoder, open json.Delim) (lua.LValue, error) {
	t := L.NewTable()
	if open == '[' {
		t.Metatable = jsonArray(L)
	}
	for d.More() {
		var key lua.LString
		if open == '{' {
			token, err := d.Token()
			if err != nil {
				return nil, err
			}
			key = lua.LString(token.(string))
		}
		v, err := jsonValue(L, d)
		if err != nil {
			return nil, err
		}
		if open == '{' {
			t.RawSetString(string(key), v)
		} else {
			t.Append(v)
		}
	}
	_, err := d.Token()
	return t, err
}

// encodeJSON writes a value as JSON: the keys of a table are sorted; indent is what each level is moved by, "" for one
// line.
func encodeJSON(L *lua.LState, b *bytes.Buffer, v lua.LValue, indent, line string, depth int) error {
	if depth > 100 {
		return errors.New("JSON: the value is nested more than 100 deep")
	}
	switch v := v.(type) {
	case lua.LBool:
		b.WriteString(v.String())
	case lua.LNumber:
		return encodeNumber(b, float64(v))
	case lua.LString:
		e := json.NewEncoder(b)
		e.SetEscapeHTML(false)
		if err := e.Encode(string(v)); err != nil {
			return err
		}
		b.Truncate(b.Len() - 1) // the encoder's line end
	case *lua.LTable:
		return encodeTable(L, b, v, indent, line, depth)
	default:
		if v != jsonNull(L) {
			return fmt.Errorf("JSON: a %s cannot be written", v.Type())
		}
		b.WriteString("null")
	}
	return nil
}

func encodeNumber(b *bytes.Buffer, v float64) error {
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return fmt.Errorf("JSON: the number %v cannot be written", v)
	case v == math.Trunc(v) && math.Abs(v) < 1<<53:
		b.WriteString(strconv.FormatInt(int64(v), 10))
	default:
		b.WriteString(strconv.FormatFloat(v, 'g', -1, 64))
	}
	return nil
}

func encodeTable(L *lua.LState, b *bytes.Buffer, t *lua.LTable, indent, line string, depth int) error {
	inner, separator := line+indent, ","
	if indent == "" {
		inner, line, separator = "", "", ", "
	}
	if t.Metatable == jsonArray(L) || t.Len() > 0 {
		b.WriteByte('[')
		for i := 1; i <= t.Len(); i++ {
			if i > 1 {
				b.WriteString(separator)
			}
			b.WriteString(inner)
			if err := encodeJSON(L, b, t.RawGetInt(i), indent, inner, depth+1); err != nil {
				return err
			}
		}
		if t.Len() > 0 {
			b.WriteString(line)
		}
		b.WriteByte(']')
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
	b.WriteByte('{')
	for i, k := range keys {
		if i > 0 {
			b.WriteString(separator)
		}
		b.WriteString(inner)
		if err := encodeJSON(L, b, lua.LString(k), "", "", depth+1); err != nil {
			return err
		}
		b.WriteString(": ")
		if err := encodeJSON(L, b, t.RawGetString(k), indent, inner, depth+1); err != nil {
			return err
		}
	}
	if len(keys) > 0 {
		b.WriteString(line)
	}
	b.WriteByte('}')
	return nil
}
