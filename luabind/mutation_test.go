package luabind

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/internal/serial"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

// plotCall begins programs that call functions of mx.plot and look at the file.
const plotCall = `local function drawn(name, t)
	t.file = os.tmpname() .. ".svg"
	mx.plot[name](t)
	local file = io.open(t.file)
	local text = file:read("*a")
	file:close()
	os.remove(t.file)
	return text
end
local function bare(name)
	mx.plot[name]({1, 2})
	local text = drawn(name, {x = {1, 2}})
	return not (text:find('y="24.00"') or text:find('y="388.00"') or text:find('x="590.00"'))
end `

// rowCalls are programs, by the functions that MLX has not, which are true as long as the function's parameters are in
// their order and have their defaults.
var rowCalls = map[string]string{
	"item": `local x = mx.array("9007199254740993", mx.int64)
		return x:item("string") == "9007199254740993" and mx.item{a = mx.array(2)} == 2`,
	"tolist": `local x = mx.array({"9007199254740993"}, mx.int64)
		return x:tolist("string")[1] == "9007199254740993" and mx.tolist{a = mx.array({2})}[1] == 2`,
	"array":  `return mx.array(2, mx.int8).dtype == mx.int8`,
	"stream": `return mx.stream{s = mx.cpu, f = function() return 3 end} == 3`,
	"load": `local name = os.tmpname()
		mx.save(name, mx.array({1, 2}))
		os.rename(name .. ".npy", name)
		local x = mx.load(name, "npy")
		os.rename(name, name .. ".npy")
		local y = mx.load{file = name .. ".npy"}
		os.remove(name .. ".npy")
		return x:tolist()[2] == 2 and y:tolist()[2] == 2`,
	"compile": `local runs = 0
		local function f(x) runs = runs + 1 return x * 2 end
		local function after(options, ...)
			runs = 0
			local g = options and mx.compile(f, options) or mx.compile(f)
			for _, x in ipairs{...} do mx.eval(g(x)) end
			return runs
		end
		local two, three = mx.ones({2}), mx.ones({3})
		local state = {n = mx.array(0)}
		local count = mx.compile(function() state.n = state.n + 1 end, {outputs = state})
		count() count()
		return after(nil, two, three) == 2 and after({shapeless = true}, two, three) == 1 and after({check = true}, two) > 1
			and state.n:item() == 2`,
	"export_function": `local name = os.tmpname()
		mx.export_function(name, function(x) return x * 2 end, mx.array(3))
		local y = mx.import_function(name)(mx.array(4))[1]
		os.remove(name)
		local _, err = pcall(mx.export_function, 3, print)
		return y:item() == 8 and tostring(err):find("file_or_callback is", 1, true) and true`,
	"export_to_dot": `local name = os.tmpname()
		mx.export_to_dot(name, mx.exp(mx.array(3)))
		local text = io.open(name):read("*a")
		os.remove(name)
		return text:find("exp", 1, true) and true`,
	"data.load_csv": `local name = os.tmpname()
		local file = io.open(name, "w")
		file:write("1;-\n")
		file:close()
		local list = mx.data.load_csv(name, false, ";", {mx.int8}, {"-"})
		file = io.open(name, "w")
		file:write("a,b\n1,2\n")
		file:close()
		local t = mx.data.load_csv(name)
		os.remove(name)
		return list[1].dtype == mx.int8 and list[2].dtype == mx.float32 and t.b:item() == 2`,
	"plot.line": plotCall + `
		local text = drawn("line", {x = {1, 2}, y = {0, 4}, title = "T", xlabel = "X", ylabel = "Y", labels = {"L"}})
		return text:find('y="24.00"[^>]*>T<') and text:find('y="388.00"[^>]*>X<') and text:find('x="8.00"[^>]*>Y<') and
			text:find('x="590.00"[^>]*>L<') and text:find('x="58.00"[^>]*>4<') and
			bare("line") and bare("scatter")`,
	"plot.scatter": plotCall + `
		local text = drawn("scatter", {x = {1, 2}, y = {0, 4}, title = "T", xlabel = "X", ylabel = "Y", labels = {"L"}})
		return text:find('y="24.00"[^>]*>T<') and text:find('y="388.00"[^>]*>X<') and text:find('x="8.00"[^>]*>Y<') and
			text:find('x="590.00"[^>]*>L<') and text:find('x="58.00"[^>]*>4<') and
			bare("line") and bare("scatter")`,
	"plot.hist": plotCall + `
		local text = drawn("hist", {x = {1, 2}, title = "T", xlabel = "X"})
		return text:find('y="24.00"[^>]*>T<') and text:find('y="388.00"[^>]*>X<') and
			select(2, text:gsub("<rect", "")) == 11 and
			bare("hist")`,
	"plot.image": `local ok, why = pcall(mx.plot.image, {x = mx.ones({2, 2}), low = 3, high = 2})
		mx.plot.image(mx.ones({2, 2}) * 100)
		mx.plot.image(mx.ones({2, 2}) * -100)
		return tostring(why):find("low is 3, above high, 2", 1, true) and
			not pcall(mx.plot.image, {x = mx.ones({2, 2}), file = "no"})`,
	"data.load_image": `return mx.data.load_image("../internal/picture/testdata/rgb.png", 1):dim(2) == 1`,
	"data.save_image": `local name = os.tmpname()
		mx.data.save_image(name, mx.zeros({1, 1}))
		os.rename(name .. ".png", name)
		os.remove(name)
		return true`,
	"data.draw_image": `return mx.data.draw_image(mx.zeros({2, 4}), 2, false) == "  \n"`,
	"train.status":    `mx.train.status("a line", true) return true`,
	"Device":          `return mx.Device(mx.cpu) == mx.cpu and mx.Device(mx.cpu, 2).index == 2`,
	"profile": `local lines = {"local mx = ... return function() local y = mx.arange(4)"}
		for i = 1, 30 do lines[#lines + 1] = "y = mx.sort(y)" end
		local p = mx.profile(loadstring(table.concat(lines, "\n") .. " return y end")(mx))
		local shown = 0
		for line in tostring(p):gmatch("[^\n]+") do if line:find("[string", 1, true) then shown = shown + 1 end end
		return #p.rows >= 30 and shown == 25`,
	"printoptions": `local function text() return tostring(mx.array(0.125)) end
		return mx.printoptions(2, text) == "array(0.12, dtype=float32)"
			and mx.printoptions{f = text} == "array(0.125, dtype=float32)"`,
	"dim":     `return mx.dim(mx.ones({2, 3}), 1) == 3`,
	"type":    `return mx.type() == "nil" and mx.type(mx.float32) == "dtype"`,
	"complex": `return mx.complex(1).im == 0 and mx.complex(1, 2).im == 2`,
	"check_nan": `local before = mx.check_nan(false)
		mx.check_nan()
		return mx.check_nan(before) == true`,
	"metal.validate": `local before = mx.metal.validate(false)
		mx.metal.validate()
		return mx.metal.validate(before) == true`,
	"timeline": `local name = os.tmpname()
		local two = mx.timeline(name, function() return 2 end)
		os.remove(name)
		return two == 2`,
}

// rowMutants are a row's signatures with two parameters swapped, or with a default changed.
func rowMutants(r row) map[string]string {
	out := map[string]string{}
	fields := strings.Fields(r.sig)
	for j := range fields {
		for i := range j {
			swapped := strings.Fields(r.sig)
			swapped[i], swapped[j] = swapped[j], swapped[i]
			out[fmt.Sprintf("%s and %s swapped", fields[i], fields[j])] = strings.Join(swapped, " ")
		}
		name, def, ok := strings.Cut(fields[j], "=")
		if bare, optional := strings.CutSuffix(fields[j], "?"); optional {
			name, def, ok = bare, "", strings.HasSuffix(bare, ":string")
		}
		if !ok {
			continue
		}
		other := map[string]string{"true": "false", "false": "true", "0": "1", "": "3", "[]": "[1]"}[def]
		if other == "" {
			other = "7"
		}
		changed := strings.Fields(r.sig)
		changed[j] = name + "=" + other
		out[changed[j]] = strings.Join(changed, " ")
	}
	return out
}

// TestRowMutants: whoever swaps two parameters of a function that is no op, or changes a default, hears of it: by MLX's
// list, or, for functions that MLX has not, by a call.
func TestRowMutants(t *testing.T) {
	serial.Because(t, "it calls what sets the limits, the streams and the checks of the process")
	mutants, byList := 0, 0
	for _, r := range allRows() {
		m := sig.MLXName(r.name)
		differs := "" // otherwise, as it should
		if otherwise[r.name] != "" && len(m.Calls) > 0 {
			differs = m.Differs(sig.MustParse(r.sig))
		}
		for what, signature := range rowMutants(r) {
			if _, err := sig.Parse(signature); err != nil { // it would not start
				continue
			}
			mutants++
			if m != nil && len(m.Calls) > 0 && m.Differs(sig.MustParse(signature)) != differs {
				byList++
				continue
			}
			mutant := r
			mutant.sig = signature
			require.True(t, rowDies(t, r, mutant), "%s: %s, and nothing finds it", r.name, what)
		}
	}
	t.Logf("%d mutants: MLX's list finds %d, calls the rest", mutants, byList)
	require.Greater(t, mutants, 40)
	require.Greater(t, mutants, byList)
}

// rowDies reports whether the call of a function tells it from a mutant.
func rowDies(t *testing.T, r, mutant row) bool {
	t.Helper()
	program := rowCalls[r.name]
	if program == "" {
		return false
	}
	run := func(r row) bool {
		s := newTestState(t)
		s.define(s.mx.within(r.name), newFunction(r))
		if s.mx.methods.RawGetString(r.name) != lua.LNil {
			s.arrays.method(s.mx.funcs[r.name])
		}
		out, err := s.Run(context.Background(), strings.NewReader("local mx = require('mx') "+program), r.name)
		return err == nil && len(out) == 1 && out[0].String() == "true"
	}
	require.True(t, run(r), "the call of %s is wrong", r.name)
	return !run(mutant)
}
