package luabind

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/format"
)

// fileRows are the functions that read and write files. A state without Lua's io library refuses them.
var fileRows = []row{
	{name: "load", sig: "file:string format:string? return_metadata:bool=false blocks:bool=false",
		help: "What is in a file: of a .npy file the array, of a .npz, .safetensors or .gguf file a table of the arrays " +
			"by their names. format is the file's extension unless it is given. With return_metadata the metadata of a " +
			".safetensors or .gguf file is a second result: a table of strings, in .gguf also of arrays and tables of " +
			"strings. Elements are read when they are used, and arrays of .safetensors and .gguf files lie in the file's " +
			"pages: they take no memory of their own, and the file must not be changed in place meanwhile. Of dtypes " +
			"that arrays do not have, 8-bit floats are uint8. A quantised tensor x.weight of a .gguf file becomes what " +
			"mx.quantized_matmul takes in groups of 32: of type Q4_0, Q4_1 or Q8_0 x.weight, x.scales and x.biases, of " +
			"type MXFP4 the first two, for the mode \"mxfp4\". All other quantised types are float16. With blocks the " +
			"types Q4_0, Q4_1, Q5_0, Q5_1, Q8_0 and Q2_K to Q6_K stay the file's bytes, uint8, which mx.quantized_matmul and " +
			"mx.dequantize read in modes of their own, and a further result is a table of the modes by name.",
		call: func(a *args) any {
			path, ext := a.readable(), ""
			if a.Given(1) {
				ext = a.Text(1)
			} else if e := filepath.Ext(path); e != "" {
				ext = e[1:]
			}
			return a.load(path, ext, a.Bool(2), a.Bool(3))
		}},
	{name: "save", sig: "file:string arr:operand",
		help: "Evaluates an array and writes it to a .npy file, as NumPy and MLX read it; a name without that extension " +
			"gets it. A file that is there is replaced when all has been written.",
		call: func(a *args) any {
			return a.saveArrays(a.newFile(".npy"), map[string]*tensor.Array{"": a.Array(1)},
				func(ctx context.Context, w io.Writer) error { return format.WriteNPY(ctx, w, a.Array(1)) })
		}},
	{name: "savez", sig: "file:string args:tree...",
		help: "Evaluates arrays and writes them to a .npz file, as NumPy and MLX read it; a name without that extension " +
			"gets it. They are named arr_0, arr_1 and so on; those of a table at the end by their keys.",
		call: func(a *args) any { return a.savez(false) }},
	{name: "savez_compressed", sig: "file:string args:tree...",
		help: "mx.savez into a compressed file.",
		call: func(a *args) any { return a.savez(true) }},
	{name: "save_safetensors", sig: "file:string arrays:table metadata:table?",
		help: "Evaluates the arrays of a table and writes them to a .safetensors file by their keys, with a table of " +
			"strings as metadata; a name without that extension gets it. A file that is there is replaced when all has " +
			"been written.",
		call: func(a *args) any {
			path, arrays := a.newFile(".safetensors"), a.named(1)
			metadata := map[string]string{}
			a.entries(2, func(key string, v lua.LValue) error {
				text, ok := v.(lua.LString)
				if !ok {
					return wrong(v, "a string")
				}
				metadata[key] = string(text)
				return nil
			})
			return a.saveArrays(path, arrays, func(ctx context.Context, w io.Writer) error {
				return format.WriteSafetensors(ctx, w, arrays, metadata)
			})
		}},
	{name: "save_gguf", sig: "file:string arrays:table metadata:table? blocks:table?",
		help: "Evaluates the arrays of a table (floats but complex64, signed integers) and writes them to a .gguf file " +
			"by their keys, with a table of metadata: arrays of at most one dimension (bool, integers, float32), strings " +
			"and tables of strings. blocks, as mx.load gives it, names the arrays of uint8 that are blocks, with their modes. " +
			"A name without that extension gets it. A file that is there is replaced when all has been written.",
		call: func(a *args) any {
			path, arrays := a.newFile(".gguf"), a.named(1)
			metadata, modes := map[string]any{}, map[string]string{}
			a.entries(3, func(key string, v lua.LValue) error {
				mode, ok := v.(lua.LString)
				if !ok {
					return wrong(v, "a string")
				}
				modes[key] = string(mode)
				return nil
			})
			a.entries(2, func(key string, v lua.LValue) error {
				switch v := v.(type) {
				case lua.LString:
					metadata[key] = string(v)
					return nil
				case *lua.LTable:
					texts, err := toTexts(a, v)
					metadata[key] = texts
					return err
				}
				if x, ok := array(v); ok {
					metadata[key] = x
					return nil
				}
				return wrong(v, "an array, a string or a table of strings")
			})
			return a.saveArrays(path, arrays, func(ctx context.Context, w io.Writer) error {
				return format.WriteGGUF(ctx, w, arrays, metadata, modes)
			})
		}},
}

// newFile is argument 0, the path of a file to write, with its extension.
func (a *args) newFile(ext string) string {
	path := a.Text(0)
	if !strings.HasSuffix(path, ext) {
		path += ext
	}
	return a.writable(path)
}

// save writes a file, and gives the result of a function that does: none.
func (a *args) save(path string, fill func(w io.Writer) error) any {
	if err := a.s.written.file(a.f.name, path, fill); err != nil {
		a.s.raise(err)
	}
	return nil
}

// saveArrays is save of arrays, which it evaluates before there is a file.
func (a *args) saveArrays(path string, arrays map[string]*tensor.Array,
	fill func(ctx context.Context, w io.Writer) error) any {
	ctx := a.s.Context()
	if err := format.Evaluate(ctx, arrays); err != nil {
		a.s.raise(err)
	}
	return a.save(path, func(w io.Writer) error { return fill(ctx, w) })
}

// load is what is in a file of that format.
func (a *args) load(path, ext string, metadata, blocks bool) any {
	if metadata && (ext == "npy" || ext == "npz") {
		a.fail("files of format %q have no metadata", ext)
	}
	if blocks && ext != "gguf" {
		a.fail("files of format %q have no blocks", ext)
	}
	var arrays map[string]*tensor.Array
	about, modes := a.s.NewTable(0, 1), a.s.NewTable(0, 1)
	var err error
	switch ext {
	case "npy":
		return format.LoadNPY(path, a.Ctx)
	case "npz":
		arrays, err = format.LoadNPZ(path, a.Ctx)
	case "safetensors":
		var texts map[string]string
		arrays, texts, err = format.LoadSafetensors(path, a.Ctx)
		for key, text := range texts {
			about.RawSetString(key, lua.LString(text))
		}
	case "gguf":
		var values map[string]any
		if blocks {
			var named map[string]string
			arrays, values, named, err = format.LoadGGUFBlocks(path, a.Ctx)
			for name, mode := range named {
				modes.RawSetString(name, lua.LString(mode))
			}
		} else {
			arrays, values, err = format.LoadGGUF(path, a.Ctx)
		}
		for key, v := range values {
			about.RawSetString(key, a.ggufValue(v))
		}
	default:
		a.fail("format of %q is %q, want \"npy\", \"npz\", \"safetensors\" or \"gguf\"", path, ext)
	}
	if err != nil {
		a.s.raise(err)
	}
	t := a.s.NewTable(0, len(arrays))
	for name, x := range arrays {
		t.RawSetString(name, a.s.wrap(x))
	}
	out := values{t}
	if metadata {
		out = append(out, about)
	}
	if blocks {
		out = append(out, modes)
	}
	return out
}

// ggufValue is a value of a .gguf file's metadata.
func (a *args) ggufValue(v any) lua.LValue {
	switch v := v.(type) {
	case *tensor.Array:
		return a.s.wrap(v)
	case []string:
		t := a.s.NewTable(len(v), 0)
		for _, s := range v {
			t.Append(lua.LString(s))
		}
		return t
	}
	return lua.LString(v.(string))
}

// savez writes a .npz file.
func (a *args) savez(compressed bool) any {
	path, arrays := a.newFile(".npz"), map[string]*tensor.Array{}
	rest := a.rest
	if n := len(rest); n > 0 {
		if t, ok := rest[n-1].(*lua.LTable); ok {
			rest = rest[:n-1]
			a.arraysOf("args", t, arrays)
		}
	}
	for i, v := range rest {
		x, err := toArray(a, v)
		if err != nil {
			a.wrong(fmt.Sprintf("args[%d]", i+1), err)
		}
		name := fmt.Sprintf("arr_%d", i)
		if arrays[name] != nil {
			a.fail("args[%d] is to be named %s, and so is another array", i+1, name)
		}
		arrays[name] = x.(*tensor.Array)
	}
	return a.saveArrays(path, arrays, func(ctx context.Context, w io.Writer) error {
		return format.WriteNPZ(ctx, w, arrays, compressed)
	})
}

// named is argument i, a table of arrays by name.
func (a *args) named(i int) map[string]*tensor.Array {
	out := map[string]*tensor.Array{}
	a.arraysOf(a.f.params[i].Name, a.table(i), out)
	return out
}

// arraysOf enters the arrays of a table by their keys.
func (a *args) arraysOf(name string, t *lua.LTable, out map[string]*tensor.Array) {
	a.entriesOf(name, t, func(key string, v lua.LValue) error {
		if _, nested := v.(*lua.LTable); nested {
			return wrong(v, "an array: mx.utils.tree_flatten makes names of a tree")
		}
		x, err := toArray(a, v)
		if err == nil {
			out[key] = x.(*tensor.Array)
		}
		return err
	})
}

// entries calls f with the entries of argument i, a table with string keys or nil.
func (a *args) entries(i int, f func(key string, v lua.LValue) error) {
	if t := a.table(i); t != nil {
		a.entriesOf(a.f.params[i].Name, t, f)
	}
}

// entriesOf is entries of a table that messages call name.
func (a *args) entriesOf(name string, t *lua.LTable, f func(key string, v lua.LValue) error) {
	for k, v := t.Next(lua.LNil); k != lua.LNil; k, v = t.Next(k) {
		key, ok := k.(lua.LString)
		if !ok {
			a.fail("%s has the key %s, want strings", name, describe(k))
		}
		if err := f(string(key), v); err != nil {
			a.fail("%s[%s] %w", name, quote(string(key)), err)
		}
	}
}
