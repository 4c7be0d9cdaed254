package luabind

import "testing"

// Rows of experts are sorted in prompts, also after a step that failed, and in steps the size of the batch is not read.
func TestModelExpertsAreSorted(t *testing.T) {
	sessions(t, map[string]string{"sorted": `
		local layers = require("lm.layers")
		local model = setmetatable({layout = function() return {} end}, {__call = function() error("no step") end})
		refused("no step", lm.step(model), mx.array({1}, mx.int32), lm.caches(model))
		local w = {switch = function(_, _, n, inputs, outputs) return layers.SwitchLinear(mx.ones({n, outputs, inputs})) end}
		local experts = layers.SwitchGLU(w, 2, 4, 4)
		local argsort, sorts = mx.argsort, 0
		mx.argsort = function(...)
			sorts = sorts + 1
			return argsort(...)
		end
		local function run(f, batch, tokens) return f(mx.ones({batch, tokens, 4}), mx.zeros({batch, tokens, 2}, mx.int32)) end
		mx.eval(run(experts, 1, 32), run(experts, 1, 31))
		equal(sorts, 2)
		local traces = 0
		local step = mx.compile(function(x, indices)
			traces = traces + 1
			return experts(x, indices)
		end, {shapeless = true})
		for _, batch in ipairs{1, 32, 100} do mx.eval(run(step, batch, 1)) end
		mx.argsort = argsort
		equal(traces, 1)
		equal(sorts, 2)`})
}
