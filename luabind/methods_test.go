package luabind

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"
)

// Each method of arrays refuses a first argument that is no array, and says what to write. The functions of mx stay
// what they are, and self may be given by hand.
func TestMethodsOfArraysWantAColon(t *testing.T) {
	t.Parallel()
	s := newTestState(t)
	names := keysOf(s.mx.methods)
	require.Greater(t, len(names), 150)
	for _, name := range names {
		if slices.Contains(properties, name) {
			continue
		}
		for args, written := range map[string]string{"1": "1", "": "", "-1, true": "-1, true", `"a"`: `"a"`,
			"{axis = 0}": "..."} {
			_, err := s.Run(context.Background(), strings.NewReader(`local x = mx.array({{1, 2}, {3, 4}})
				local y = x["`+name+`"](`+args+`) return y`), "chunk")
			require.ErrorContains(t, err, "chunk:2: ["+name+"] the first argument is ", "%s(%s)", name, args)
			require.ErrorContains(t, err, ", want an array: methods are called with a colon, x:"+name+"("+written+")")
		}
	}
	out, err := s.Run(context.Background(), strings.NewReader(`local x = mx.array({1, 2, 4})
		local sum = x.sum
		assert(x.sum == sum and help(sum) == help(mx.sum))
		return x.sum(x):item(), sum(x):item(), sum(x, {keepdims = true}):item(), mx.sum(3):item(), x:sum():item()`), "chunk")
	require.NoError(t, err)
	require.Equal(t, []lua.LValue{lua.LNumber(7), lua.LNumber(7), lua.LNumber(7), lua.LNumber(3), lua.LNumber(7)}, out)
}

// Each method of the library's classes refuses to be called with a dot: of nothing, of an array, of a table that is no
// object.
func TestMethodsOfClassesWantAColon(t *testing.T) {
	t.Parallel()
	s := newTestState(t)
	out, err := s.Run(context.Background(), strings.NewReader(`
		local statics = {is_module = true, valid_child_filter = true, valid_parameter_filter = true,
		  trainable_parameter_filter = true, _extra_repr = true, ["Module.init"] = true}
		local count = 0
		local function class(name, c)
		  for key, f in pairs(c) do
		    if type(f) == "function" and key:sub(1, 2) ~= "__" and not statics[key] and not statics[name .. "." .. key] and
		       not key:find("^from_") and not key:find("^create_") then
		      for _, v in ipairs{false, mx.ones({2, 2}), {}, 3, setmetatable({}, {})} do
		        local ok, e = pcall(f, v or nil, 1)
		        if ok or not tostring(e):find("methods are called with a colon, ", 1, true) then
		          error(name .. "." .. key .. ": " .. tostring(e))
		        end
		      end
		      count = count + 1
		    end
		  end
		end
		for name, v in pairs(nn) do
		  if type(v) == "table" and rawget(v, "__module") then class(name, v) end
		end
		local sgd = getmetatable(mx.optimizers.SGD(1))
		class("SGD", sgd)
		class("Optimizer", getmetatable(sgd).__index)
		class("DataLoader", getmetatable(mx.data.DataLoader(mx.ones({4}), 2)))
		class("Progress", getmetatable(mx.train.Progress(2)))
		class("Caches", require("lm.cache").Caches)
		for name, v in pairs(require("lm.layers")) do
		  if type(v) == "table" and rawget(v, "__name") then class(name, v) end
		end
		return count`), "chunk")
	require.NoError(t, err)
	require.Greater(t, float64(out[0].(lua.LNumber)), 150.0)
}

// What classes of a script call by hand stays right: constructors and methods of parents, and objects of other classes
// of the library that have the fields.
func TestMethodsCalledByHand(t *testing.T) {
	t.Parallel()
	s := newTestState(t)
	out, err := s.Run(context.Background(), strings.NewReader(`
		local Scaled = nn.class("Scaled", nn.Linear)
		function Scaled:init(scale) nn.Linear.init(self, 2, 2, false); self.scale = scale end
		function Scaled:forward(x) return nn.Linear.forward(self, x) * self.scale end
		function Scaled.static(n) return n + 1 end
		local Plain = nn.class("Plain")
		function Plain:init() self.weight = mx.array({{1, 0}, {0, 1}}) end
		local layer, x = Scaled(3), mx.array({1, 2})
		layer.weight = mx.array({{1, 0}, {0, 1}})
		local seen = {}
		for name in pairs(nn.Module.parameters(layer)) do seen[#seen + 1] = name end
		return tostring(layer(x)), tostring(nn.Linear.forward(Plain(), x)), Scaled.static(1), table.concat(seen)`), "chunk")
	require.NoError(t, err)
	require.Equal(t, []lua.LValue{lua.LString("array([3, 6], dtype=float32)"), lua.LString("array([1, 2], dtype=float32)"),
		lua.LNumber(2), lua.LString("weight")}, out)
	for body, want := range map[string]string{
		"local y = nn.Linear.init(8, 4) return y": "chunk:1: [nn.Linear.init] the first argument is the number 8",
		"local C = nn.class('C') function C:forward(x) return self.w end local c = C() local y = c.forward(mx.ones({2})) " +
			"return y": `chunk:1: [array] array has no method or property "w"; is the method called with a colon`,
		"local C = nn.class('C') function C:size() return self.n end local c = C() local y = c.size() return y": "chunk:1: " +
			"attempt to index local 'self' (a nil value); is the method called with a colon",
		"local x = mx.ones({2}):at(0) local y = x.add(3) return y": "[add] the first argument is the number 3, " +
			"want x:at(...)",
		"local f = mx.compile(math.abs) local y = f.explain() return y": "[explain] the first argument is missing, " +
			"want a compiled function: methods are called with a colon, f:explain()",
	} {
		_, err := s.Run(context.Background(), strings.NewReader(body), "chunk")
		require.ErrorContains(t, err, want)
	}
}
