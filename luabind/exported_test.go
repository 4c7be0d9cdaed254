package luabind

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"
)

// What scripts export and import does what the function does, by every way of calling it.
func TestExportFromLua(t *testing.T) {
	t.Parallel()
	s := newTestState(t)
	path := filepath.ToSlash(filepath.Join(t.TempDir(), "f.fn"))
	asked(t, s, `path = %q
		w = mx.array({{1, 2}, {3, 4}})
		function f(x, named)
			local y = mx.tanh(mx.matmul(x, w))
			if named then y = y + named.b end
			return y, y:sum()
		end
		x, b = mx.array({{1, 0}, {0, 2}, {1, 1}}), mx.array({5, 6})
		mx.export_function(path, f, x, {b = b, shapeless = true, metadata = "about"})
		g, metadata = mx.import_function(path, true)
		compiled = mx.compile(function(x) return g(x, {b = b}) end)
		return true`, path)
	for script, want := range map[string]string{
		"metadata":       "about",
		"#g(x, {b = b})": "2",
		"mx.array_equal(g(x, {b = b})[1], (f(x, {b = b})))":             "array(True, dtype=bool)",
		"mx.array_equal(g({x}, {b = b})[2], select(2, f(x, {b = b})))":  "array(True, dtype=bool)",
		"mx.array_equal(g(x['1:'], {b = b})[1], (f(x['1:'], {b = b})))": "array(True, dtype=bool)",
		"mx.array_equal(compiled(x)[1], (f(x, {b = b})))":               "array(True, dtype=bool)",
		"mx.array_equal(mx.grad(function(x) return g(x, {b = b})[2] end)(x), " +
			"mx.grad(function(x) return (select(2, f(x, {b = b}))) end)(x))": "array(True, dtype=bool)",
		"mx.vmap(function(x) return g(x, {b = b})[1] end)(mx.stack({x, x})).shape": "(2, 3, 2)",
	} {
		require.Equal(t, want, asked(t, s, "return tostring((%s))", script).String(), script)
	}
	for script, want := range map[string]string{
		"g(x)":                              "takes, at any sizes, (float32 (3, 2), b = float32 (2,))",
		"g(x, {b = 3})":                     "the input \"b\" is the number 3, want an array",
		"g(x, 1)":                           "input 2 is the number 1",
		"mx.export_function(path, f, 'hi')": "input 1 is the string \"hi\"",
		"mx.export_function(path, function() return 1 end)": "result 1 of the function is the number 1",
		"mx.export_function(print, f, x, {metadata = 'm'})": "metadata is for files",
		"mx.export_function(path, f, x, {shapeless = 1})":   "shapeless is the number 1",
		"mx.import_function(path .. 'x')":                   "cannot open",
	} {
		err := asked(t, s, "return tostring(select(2, pcall(function() return %s end)))", script)
		require.Equal(t, lua.LTString, err.Type())
		require.Contains(t, err.String(), want, script)
	}
}

// An exporter writes each call that it is given.
func TestExporterFromLua(t *testing.T) {
	t.Parallel()
	s := newTestState(t)
	path := filepath.ToSlash(filepath.Join(t.TempDir(), "f.fn"))
	got := asked(t, s, `path = %q
		local e = mx.exporter(path, function(a, b) return {b and a + b or a} end, {shapeless = true})
		e(mx.array(1)) e(mx.array(1), mx.array(2))
		e:close()
		local closed, err = pcall(e, mx.array(1))
		local f = mx.import_function(path)
		return table.concat({f(mx.array(5))[1]:item(), f(mx.array(5), mx.array(6))[1]:item(), 
			tostring(closed), tostring(err)}, " ")`,
		path)
	require.Contains(t, got.String(), "5 11 false asked:5: [exporter] it is closed")
	got = asked(t, s, `local told = {}
		mx.export_function(function(step)
			told[#told + 1] = step.type .. (step.name and " " .. step.name .. " " .. tostring(step.arguments[1]) or "")
		end, function(x, named) return mx.abs(x - named.y):astype(mx.int32) end, mx.array(1), {y = mx.array(2)})
		return table.concat(told, ", ")`)
	require.Equal(t, "inputs, keyword_inputs, outputs, constants, primitive subtract nil, primitive abs nil, "+
		"primitive astype int32", got.String())
	got = asked(t, s, `local a = mx.array({1})
		mx.export_to_dot(path, mx.exp(a), {a = a})
		local text = io.open(path):read("*a")
		return text:find('label ="exp"', 1, true) and text:find('{ rank=source; "a"; }', 1, true) and 1`)
	require.Equal(t, lua.LNumber(1), got)
}
