package luabind

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/hub"
	"github.com/mlxlua/mlxlua/internal/jsonfault"
	"github.com/mlxlua/mlxlua/luabind/lua51"
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/format"
)

// openModelHost makes the package lm.host: what the scripts of scripts/lm need that Lua does not have. JSON's null is
// host.null, and a JSON array has the metatable host.array, so that an empty one is written as one again.
func openModelHost(s *State) lua.LValue {
	t, array := s.NewTable(0, 1), s.NewTable(0, 1)
	array.RawSetString("__metatable", lua.LString("list"))
	t.RawSetString("null", s.NewUserData(nil, lua.LNil, 0))
	t.RawSetString("array", array)
	for name, f := range map[string]hostFunction{
		"decode": func(L *lua.LState) (lua.LValue, error) { return decodeJSON(s, L, L.CheckString(1)) },
		"encode": func(L *lua.LState) (lua.LValue, error) {
			text, err := encodedJSON(s, L, L.CheckAny(1), L.OptString(2, ""))
			return lua.LString(text), err
		},
		"list": func(L *lua.LState) (lua.LValue, error) {
			v := L.CheckTable(1)
			if name := s.Frozen(v); name != "" {
				return nil, fmt.Errorf("%s belongs to the library", name)
			}
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
		"drawer": func(L *lua.LState) (lua.LValue, error) { return newDrawer(s, L) },
		"draw":   func(L *lua.LState) (lua.LValue, error) { return drawTokens(s, L) },

		"kind":   onFiles(s, pathKind),
		"cached": func(L *lua.LState) (lua.LValue, error) { return cached(s, L.CheckString(1)) },
		"files":  onFiles(s, func(L *lua.LState) (lua.LValue, error) { return pathFiles(s, L.CheckString(1)) }),
		"read":   onFiles(s, func(L *lua.LState) (lua.LValue, error) { return readText(s, L.CheckString(1)) }),
		"mkdir":  onPaths(s, func(p []string) error { return os.MkdirAll(p[0], 0o755) }),
		"beside": onFiles(s, mkdirBeside),
		"rename": onPaths(s, func(p []string) error { return os.Rename(p[0], p[1]) }),
		"remove": onPaths(s, func(p []string) error { return os.RemoveAll(p[0]) }),
		"copy":   onPaths(s, func(p []string) error { return copyFile(p[0], p[1]) }),
		"write":  onPaths(s, func(p []string) error { return writeText(p[0], p[1]) }),
		"save":   onFiles(s, func(L *lua.LState) (lua.LValue, error) { return lua.LTrue, saveWeights(s, L) }),
	} {
		t.RawSetString(name, s.Func(withDot(s, "host."+name, 1, func(L *lua.LState) int {
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
		}), t, lua.LString("lm.host."+name))) // its name is for help
	}
	return t
}

// withDot is a function of a table of functions, which is one of its upvalues. It refuses to be called by a colon: then
// the table is its first argument, of which it would complain or, worse, take it for a list.
func withDot(s *State, name string, upvalue int, f lua.LGFunction) lua.LGFunction {
	return func(L *lua.LState) int {
		if L.GetTop() > 0 && L.Get(1) == L.Get(lua.UpvalueIndex(upvalue)) {
			of, member, _ := strings.Cut(name, ".")
			s.raise(s.call().Errorf(name, "it is called with a dot, not a colon: write %s.%s(...), not %s:%s(...)",
				of, member, of, member))
		}
		return f(L)
	}
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

// cached is the path of a model in the hub's cache.
func cached(s *State, name string) (lua.LValue, error) {
	if !s.files {
		return nil, fmt.Errorf("%s: %w", name, errNoFiles)
	}
	c, err := hub.DefaultCache()
	if err != nil {
		return nil, err
	}
	path, err := c.Find(name)
	return lua.LString(path), err
}

// pathFiles are the names in a directory, sorted.
func pathFiles(s *State, path string) (lua.LValue, error) {
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	t := s.NewTable(len(entries), 0)
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

// mkdirBeside makes a directory of a name of its own beside a path.
func mkdirBeside(L *lua.LState) (lua.LValue, error) {
	path := filepath.Clean(L.CheckString(1))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	dir := path + "." + strconv.FormatUint(rand.Uint64(), 36) // os.MkdirTemp's are their owner's only
	return lua.LString(dir), os.Mkdir(dir, 0o755)
}

// copyFile copies a file's bytes.
func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	return format.WriteFile("lm.host.copy", to, func(w io.Writer) error {
		_, err := io.Copy(w, in)
		return err
	})
}

func writeText(path, text string) error {
	return format.WriteFile("lm.host.write", path, func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	})
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
	text  string
	s     *State
	taken *lua51.Holding
}

// jsonValueBytes is what a value that was read takes: with its box, and the room that a list keeps.
const jsonValueBytes = 64

// decodeJSON is a JSON text as Lua values.
func decodeJSON(s *State, L *lua.LState, text string) (lua.LValue, error) {
	taken := lua51.Hold(s.State)
	defer taken.End()
	r := &jsonReader{json.NewDecoder(&jsonPieces{text: text, taken: taken}), text, s, taken}
	r.UseNumber()
	v, err := r.value(L, 0)
	if err == nil {
		if _, err = r.Token(); err == io.EOF {
			return v, nil
		}
		if err == nil {
			err = jsonfault.Find(text) // there is more after the value
		}
	}
	if err != errNestedJSON {
		err = fmt.Errorf("JSON: %w", jsonfault.Explain(text, err))
	}
	return nil, err
}

// jsonPiece is how many bytes of a text are read or written between two looks at what that takes.
const jsonPiece = 64 << 10

// jsonPieces gives the decoder a text piece by piece, and counts the room that it keeps for a long token.
type jsonPieces struct {
	text  string
	room  int // the most that the decoder had left
	taken *lua51.Holding
}

// Read gives the next piece.
func (p *jsonPieces) Read(b []byte) (int, error) {
	more := max(len(b)-p.room, 0)
	p.room += more
	if err := p.taken.Add(4 * int64(more)); err != nil { // the room before and after it grew, the token, and its text
		return 0, err
	}
	if p.text == "" {
		return 0, io.EOF
	}
	n := copy(b[:min(len(b), jsonPiece)], p.text)
	p.text = p.text[n:]
	return n, nil
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
		if err != nil {
			err = jsonfault.At(r.text, int(r.InputOffset())-len(v), fmt.Sprintf("the number %.20s is too large", v))
		}
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
	if err := r.taken.Add(lua51.TableBytes); err != nil {
		return nil, err
	}
	t := r.s.NewTable(0, 1)
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
			if err := r.taken.Add(lua51.KeyBytes + int64(len(key))); err != nil {
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
	piece   bytes.Buffer // a piece of a string
	strings *json.Encoder
	taken   *lua51.Holding
	counted int // bytes
}

// encodedJSON is a value as JSON: the keys of a table are sorted; indent is what each level is moved by, "" for one
// line.
func encodedJSON(s *State, L *lua.LState, v lua.LValue, indent string) (string, error) {
	w := &jsonWriter{taken: lua51.Hold(s.State)}
	defer w.taken.End()
	w.strings = json.NewEncoder(&w.piece)
	w.strings.SetEscapeHTML(false)
	if err := w.value(L, v, indent, "\n", 0); err != nil {
		return "", err
	}
	return w.String(), nil
}

// value writes a value, whose lines begin with line.
func (w *jsonWriter) value(L *lua.LState, v lua.LValue, indent, line string, depth int) error {
	if err := w.count(); err != nil {
		return err
	}
	switch v := v.(type) {
	case lua.LBool:
		w.WriteString(v.String())
	case lua.LNumber:
		return w.number(float64(v))
	case lua.LString:
		return w.text(string(v))
	case *lua.LTable:
		if depth == mostNestedJSON {
			return errNestedJSON
		}
		return w.table(L, v, indent, line, depth+1)
	default:
		if v != jsonNull(L) {
			return fmt.Errorf("JSON: a %s cannot be written", v.Type())
		}
		w.WriteString("null")
	}
	return nil
}

// text writes a string piece by piece, each of which may become six times as long.
func (w *jsonWriter) text(s string) error {
	w.WriteByte('"')
	for s != "" {
		n := pieceOf(s)
		w.piece.Reset()
		if err := w.strings.Encode(s[:n]); err != nil {
			return err
		}
		quoted := w.piece.Bytes()
		w.Write(quoted[1 : len(quoted)-2]) // without its quotes, and the encoder's line end
		if err := w.count(); err != nil {
			return err
		}
		s = s[n:]
	}
	w.WriteByte('"')
	return nil
}

// pieceOf is how much of a text is its first piece: no character is cut.
func pieceOf(s string) int {
	if len(s) <= jsonPiece {
		return len(s)
	}
	for n := jsonPiece; n > jsonPiece-utf8.UTFMax; n-- {
		if utf8.RuneStart(s[n]) {
			return n
		}
	}
	return jsonPiece // these bytes are no characters
}

// count counts what was written: the buffer, and the text that it will be.
func (w *jsonWriter) count() error {
	n := w.Cap() + w.Len()
	more := n - w.counted
	w.counted = n
	return w.taken.Add(int64(more))
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

// keys are those of an object, sorted. They count until all is written.
func (w *jsonWriter) keys(t *lua.LTable) ([]string, error) {
	var keys []string
	for k, _ := t.Next(lua.LNil); k != lua.LNil; k, _ = t.Next(k) {
		if _, ok := k.(lua.LString); !ok {
			return nil, fmt.Errorf("JSON: an object has the key %s, want strings", describe(k))
		}
		if err := w.taken.Add(2 * lua51.ElementBytes); err != nil {
			return nil, err
		}
		keys = append(keys, k.String())
	}
	slices.Sort(keys)
	return keys, nil
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
			if err := w.value(L, t.RawGetInt(i), indent, inner, depth); err != nil {
				return err
			}
		}
		if t.Len() > 0 {
			w.WriteString(line)
		}
		w.WriteByte(']')
		return nil
	}
	keys, err := w.keys(t)
	if err != nil {
		return err
	}
	w.WriteByte('{')
	for i, k := range keys {
		if i > 0 {
			w.WriteString(separator)
		}
		w.WriteString(inner)
		if err := w.value(L, lua.LString(k), "", "", depth); err != nil {
			return err
		}
		w.WriteString(": ")
		if err := w.value(L, t.RawGetString(k), indent, inner, depth); err != nil {
			return err
		}
	}
	if len(keys) > 0 {
		w.WriteString(line)
	}
	w.WriteByte('}')
	return nil
}
