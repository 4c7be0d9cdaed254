package luabind

import (
	"fmt"
	"io"

	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/export"
	"github.com/mlxlua/mlxlua/luabind/lua51"
	"github.com/mlxlua/mlxlua/tensor"
)

// exportRows are the functions that write functions and graphs to files, and read functions.
var exportRows = []row{
	{name: "export_function", sig: "file_or_callback:any fun:any args:tree...",
		help: "Calls fun with stand-ins for args and writes what it computes to a file, which mx.import_function reads. " +
			"The args are arrays, or one table of arrays; a table of arrays by name at the end goes to fun as its last " +
			"argument. fun returns arrays, or one table of them. With shapeless (in the table at the end, like metadata, " +
			"a string that the file keeps) the file serves inputs of other sizes; a size that fun reads as a number must " +
			"stay what it was. All other arrays that fun uses are written as they are, and the gradients of custom " +
			"functions are not written. The file is there when all has been written, and has a format of this program's own. " +
			"In place of a file a function may stand, which is called with tables that describe the inputs, keyword_inputs, " +
			"outputs, constants, and one after the other the ops, of the type primitive.",
		call: exportFunction},
	{name: "exporter", sig: "file:string fun:any shapeless:bool=false metadata:string?",
		help: "A value e that is called with the inputs of mx.export_function, as often as there are inputs of different " +
			"shapes, dtypes or names to export fun for; e:close() writes the file. shapeless and metadata are those " +
			"of mx.export_function.",
		call: func(a *args) any {
			e := &exporter{s: a.s, path: a.writable(a.Text(0)), fn: a.callable(1)}
			e.file.Shapeless = a.Bool(2)
			if a.Given(3) {
				e.file.Metadata = a.Text(3)
			}
			return a.s.userdata(exporterKind, e)
		}},
	{name: "import_function", sig: "file:string return_metadata:bool=false",
		help: "The function in a file of mx.export_function. It is called with arrays, or a table of arrays, and a table " +
			"of arrays by name where it was exported with one; it returns a table of arrays, and is differentiated, " +
			"batched and compiled as others are. With return_metadata the metadata is a second result.",
		call: func(a *args) any {
			file, err := export.Load(a.readable())
			if err != nil {
				a.s.raise(err)
			}
			f := a.s.userdata(importedKind, &imported{file})
			if a.Bool(1) {
				return values{f, lua.LString(file.Metadata)}
			}
			return f
		}},
	{name: "export_to_dot", sig: "file:string args:tree...",
		help: "Writes the graph that arrays, or trees of them, depend on to a file in Graphviz's language: what is not " +
			"evaluated. A table at the end that has names for keys names arrays in it.",
		call: func(a *args) any {
			path := a.writable(a.Text(0))
			arrays, names := a.s.arraysIn("export_to_dot", a.rest), map[tensor.Value]string{}
			for _, v := range a.rest {
				if t, ok := v.(*lua.LTable); ok {
					for _, name := range keysOf(t) {
						if x, ok := array(t.RawGetString(name)); ok {
							names[x.Value()] = name
						}
					}
				}
			}
			return a.save(path, func(w io.Writer) error { return export.Dot(a.Ctx, w, arrays, names) })
		}},
}

const (
	exporterKind = "exporter"
	importedKind = "imported_function"
)

// exporter is what mx.exporter returns.
type exporter struct {
	s      *State
	path   string
	fn     lua.LValue
	file   export.File
	closed bool
}

func (e *exporter) reached(h hearer) {
	h.value(e.fn)
	for _, t := range e.file.Traces {
		t.Program.Constants(h.array)
	}
}

// imported is what mx.import_function returns.
type imported struct{ file *export.File }

// record traces a call.
func (e *exporter) record(in export.Inputs) {
	s := e.s
	trace, err := export.Record(s.call(), func(in export.Inputs) ([]*tensor.Array, error) {
		return e.call(in)
	}, in, s.where)
	if err != nil {
		s.reraise(err)
	}
	e.file.Traces = append(e.file.Traces, trace)
}

// save writes the file.
func (e *exporter) save() {
	e.closed = true
	err := e.s.written.file("export_function", e.path, func(w io.Writer) error {
		return e.file.Write(e.s.Context(), w)
	})
	if e.file.Traces = nil; err != nil {
		e.s.raise(err)
	}
}

// call calls the script's function with inputs: the named ones are its last argument.
func (e *exporter) call(in export.Inputs) ([]*tensor.Array, error) {
	s := e.s
	var args []lua.LValue
	for _, x := range in.Positional {
		args = append(args, s.lend(x))
	}
	if len(in.Named) > 0 {
		t := s.NewTable(0, 1)
		for name, x := range in.Named {
			t.RawSetString(name, s.lend(x))
		}
		args = append(args, t)
	}
	results, err := s.looks.protect(e.fn, args...)
	if err != nil {
		return nil, &luaFailure{err}
	}
	if len(results) == 1 {
		if t, ok := results[0].(*lua.LTable); ok && len(keysOf(t)) == 0 {
			results = nil
			for i := 1; i <= t.Len(); i++ {
				results = append(results, t.RawGetInt(i))
			}
		}
	}
	outs := make([]*tensor.Array, len(results))
	for i, v := range results {
		x, ok := array(v)
		if !ok {
			return nil, s.call().Errorf("export_function", "result %d of the function is %s, want arrays, or one table of "+
				"arrays", i+1, describe(v))
		}
		outs[i] = x
	}
	return outs, nil
}

// exportInputs sorts the arguments of a call: arrays, or one table of arrays, and a table of arrays by name. option is
// asked whether an entry of that is something else.
func exportInputs(s *State, op string, vs []lua.LValue, option func(name string, v lua.LValue) bool) export.Inputs {
	in := export.Inputs{Named: map[string]*tensor.Array{}}
	fail := func(format string, args ...any) { s.raise(s.call().Errorf(op, format, args...)) }
	for range 2 { // names, and options behind them
		if len(vs) == 0 {
			break
		}
		t, ok := vs[len(vs)-1].(*lua.LTable)
		if !ok || t.Len() > 0 {
			break
		}
		vs = vs[:len(vs)-1]
		for k, v := t.Next(lua.LNil); k != lua.LNil; k, v = t.Next(k) {
			name, ok := k.(lua.LString)
			if !ok {
				fail("the inputs have the key %s, want names", describe(k))
			}
			x, isArray := array(v)
			switch {
			case isArray:
				in.Named[string(name)] = x
			case !option(string(name), v):
				fail("the input %s is %s, want an array", quote(string(name)), describe(v))
			}
		}
	}
	if len(vs) == 1 {
		if t, ok := vs[0].(*lua.LTable); ok {
			vs = nil
			for i := 1; i <= t.Len(); i++ {
				vs = append(vs, t.RawGetInt(i))
			}
		}
	}
	for i, v := range vs {
		x, ok := array(v)
		if !ok {
			fail("input %d is %s, want arrays, or one table of arrays, and a table of arrays by name", i+1, describe(v))
		}
		in.Positional = append(in.Positional, x)
	}
	return in
}

// noOption is the option of calls that have none.
func noOption(string, lua.LValue) bool { return false }

// exportFunction is mx.export_function.
func exportFunction(a *args) any {
	e := &exporter{s: a.s, fn: a.callable(1)}
	in := exportInputs(a.s, a.f.name, a.rest, func(name string, v lua.LValue) bool {
		var err error
		switch name {
		case "shapeless":
			flag, ok := v.(lua.LBool)
			if e.file.Shapeless = bool(flag); !ok {
				err = wrong(v, "true or false")
			}
		case "metadata":
			text, ok := v.(lua.LString)
			if e.file.Metadata = string(text); !ok {
				err = wrong(v, "a string")
			}
		default:
			return false
		}
		if err != nil {
			a.wrong(name, err)
		}
		return true
	})
	if path, ok := a.raw[0].(lua.LString); ok {
		e.path = a.writable(string(path))
		e.record(in)
		e.save()
		return nil
	}
	callback := a.callable(0)
	if e.file.Metadata != "" {
		a.fail("metadata is for files, and file_or_callback is %s", describe(a.raw[0]))
	}
	e.record(in)
	for _, step := range described(a.s, e.file.Traces[0]) {
		if _, err := a.s.looks.protect(callback, step); err != nil {
			a.s.reraise(&luaFailure{err})
		}
	}
	return nil
}

// openExported makes the metatables of exporters and imported functions.
func openExported(s *State) {
	mt := s.meta(exporterKind)
	s.setToString(mt, exporterKind)
	methods := s.NewTable(0, 1)
	mt.RawSetString("__index", methods)
	s.Method(mt, "__call", func(L *lua.LState) int {
		e, _ := unwrap[*exporter](L.Get(1))
		if e.closed {
			s.raise(s.call().Errorf("exporter", "it is closed: %s has been written", e.path))
		}
		e.record(exportInputs(s, "exporter", lua51.Args(L)[1:], noOption))
		return 0
	})
	s.method(methods, exporterObject, "close", func(L *lua.LState) int {
		e, _ := unwrap[*exporter](L.Get(1))
		if !e.closed {
			e.save()
		}
		return 0
	})
	mt = s.meta(importedKind)
	s.setToString(mt, importedKind)
	s.Method(mt, "__call", func(L *lua.LState) int {
		f, _ := unwrap[*imported](L.Get(1))
		outs, err := f.file.Call(s.call(), exportInputs(s, "import_function", lua51.Args(L)[1:], noOption))
		if err != nil {
			s.raise(err)
		}
		L.Push(s.arrayTable(outs))
		return 1
	})
}

// described are tables that say of a trace what mx.export_function's callback is told.
func described(s *State, t *export.Trace) []lua.LValue {
	d, err := t.Describe(s.Context())
	if err != nil {
		s.raise(err)
	}
	var out []lua.LValue
	step := func(kind string) *lua.LTable {
		t := s.NewTable(0, 1)
		t.RawSetString("type", lua.LString(kind))
		out = append(out, t)
		return t
	}
	list := func(values []export.Named) *lua.LTable {
		t := s.NewTable(len(values), 0)
		for _, v := range values {
			e := s.NewTable(3, 0)
			e.Append(lua.LString(v.Name))
			e.Append(s.shapeTable(v.Spec.Shape))
			e.Append(s.dtype(v.Spec.DType))
			t.Append(e)
		}
		return t
	}
	step("inputs").RawSetString("inputs", list(d.Inputs))
	keywords := s.NewTable(len(t.Names), 0)
	for i, name := range t.Names {
		pair := s.NewTable(2, 0)
		pair.Append(lua.LString(name))
		pair.Append(lua.LString(d.Inputs[t.Positional+i].Name))
		keywords.Append(pair)
	}
	step("keyword_inputs").RawSetString("keywords", keywords)
	step("outputs").RawSetString("outputs", list(d.Outputs))
	constants := s.NewTable(len(d.Constants), 0)
	for _, c := range d.Constants {
		pair := s.NewTable(2, 0)
		pair.Append(lua.LString(c.Name))
		pair.Append(s.wrap(c.Array))
		constants.Append(pair)
	}
	step("constants").RawSetString("constants", constants)
	for _, c := range d.Calls {
		t := step("primitive")
		t.RawSetString("name", lua.LString(c.Op))
		t.RawSetString("inputs", list(c.Inputs))
		t.RawSetString("outputs", list(c.Outputs))
		arguments := s.NewTable(len(c.Attrs), 0)
		for _, v := range c.Attrs {
			arguments.Append(attribute(s, v))
		}
		t.RawSetString("arguments", arguments)
	}
	return out
}

// attribute is an attribute of an op as a Lua value.
func attribute(s *State, v any) lua.LValue {
	switch v := v.(type) {
	case bool:
		return lua.LBool(v)
	case float64:
		return lua.LNumber(v)
	case tensor.DType:
		return s.dtype(v)
	case []int:
		t := s.NewTable(len(v), 0)
		for _, n := range v {
			t.Append(lua.LNumber(n))
		}
		return t
	}
	return lua.LString(fmt.Sprint(v))
}
