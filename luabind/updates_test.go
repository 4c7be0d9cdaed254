package luabind

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal"
)

// updateHelpers are for scripts that count: moved(f) runs f and gives how many calls of it have copied what they were
// to change in place, and how many bytes all calls that change something in place have moved.
const updateHelpers = `
function moved(f)
	local copied, bytes = 0, 0
	for _, r in ipairs(mx.profile(f).rows) do
		copied = copied + r.copied
		if r.op:find("update") or r.op == "scatter" then bytes = bytes + r.bytes end
	end
	return copied, bytes
end
function at(i) return mx.array({i}, mx.int32) end
function put(c, k) return mx.slice_update(c, u, k, {0}) end
function update(c, i) return put(c, at(i)) end
a = mx.arange(2048 * 2048):reshape({2048, 2048}) * 1e-6
u = mx.ones({1, 2048})
mx.eval(a, u) `

// updates are loops of 32 steps that change a part of c, of 16 MiB, which nothing else needs: of a compiled function
// that the setup may have made, or without one.
var updates = []struct{ name, setup, step string }{
	{"eval", ``, `c = update(c, i) mx.eval(c)`},
	{"one index", `local k = at(7)`, `c = mx.slice_update(c, u, k, {0}) mx.eval(c)`},
	{"async_eval", ``, `c = update(c, i) mx.async_eval(c)`},
	{"compiled", `local f = mx.compile(put)`, `c = f(c, at(i)) mx.eval(c)`},
	{"compiled, async_eval", `local f = mx.compile(put)`, `c = f(c, at(i)) mx.async_eval(c)`},
	{"compiled, shapeless", `local f = mx.compile(put, {shapeless = true})`,
		`c = f(c, at(i)) mx.eval(c)`},
	{"a value that is read", ``, `c = update(c, i) assert(mx.sum(c[i]):item() == 2048)`},
	{"a value that is asked for", ``, `
		c = update(c, i)
		local s = mx.sum(c[i])
		mx.async_eval(s)
		if i % 4 == 3 then s:item() end`},
	{"all asked for", ``, `c = update(c, i) local s = mx.sum(c[i]) mx.async_eval(s, c) s:item()`},
	{"scatter", ``, `c = mx.put_along_axis(c, mx.full({1, 2048}, i, mx.int32), u, 0) mx.eval(c)`},
	{"at a number", ``, `c = c:at(i):add(u[0]) mx.async_eval(c)`},
	{"at an array", ``, `c = c:at(at(i)):multiply(2) mx.eval(c)`},
	{"state", `
		st = {c = a * 1}
		mx.eval(st)
		local f = mx.compile(function(i) st.c = put(st.c, i) end, {inputs = {st}, outputs = {st}})`,
		`f(at(i)) mx.eval(st)`},
	{"state, async_eval", `
		st = {c = a * 1}
		mx.eval(st)
		local f = mx.compile(function(i) st.c = put(st.c, i) end, {inputs = {st}, outputs = {st}})`,
		`f(at(i)) mx.async_eval(st)`},
	{"state, two indices", `
		st, small = {c = a * 1, d = mx.zeros({64, 64}) + 1}, mx.ones({1, 64})
		mx.eval(st, small)
		local f = mx.compile(function(i)
			st.c, st.d = put(st.c, i), mx.slice_update(st.d, small, i + 1, {0})
		end, {inputs = {st}, outputs = {st}})`,
		`f(at(i)) mx.async_eval(st)`},
	{"state, an index that others check", `
		st = {c = a * 1}
		mx.eval(st)
		local f = mx.compile(function(i)
			st.c = put(st.c, i)
			st.s = mx.sum(mx.take(st.c, i, 0))
		end, {inputs = {st}, outputs = {st}})`,
		`f(at(i)) mx.async_eval(st)`},
	{"state, scatter", `
		st = {c = a * 1}
		mx.eval(st)
		local f = mx.compile(function(i)
			st.c = mx.put_along_axis(st.c, mx.broadcast_to(mx.reshape(i, {1, 1}), {1, 2048}), u, 0)
		end, {inputs = {st}, outputs = {st}})`,
		`f(at(i)) mx.eval(st)`},
	{"assignment", ``, `c[i] = u[0] mx.async_eval(c)`},
}

// TestUpdatesInPlace: what is changed in place is not copied, and stands once in memory; a profile counts what moved.
func TestUpdatesInPlace(t *testing.T) {
	onlyMemory(t)
	for _, l := range updates {
		t.Run(l.name, func(t *testing.T) {
			dev, _ := withDevice(t, metal.DeviceOptions{})
			require.NoError(t, runLua(t, updateHelpers+l.setup+`
				local c = not st and a * 1 or nil
				mx.eval(c or {})
				a = nil
				collectgarbage()
				mx.reset_peak_memory()
				local copied, bytes = moved(function() for i = 0, 31 do `+l.step+` end end)
				assert(copied == 0, copied)
				assert(bytes < 32 * 5 * 8192, bytes)
				mx.eval(c or {})`))
			require.Less(t, float64(dev.Memory().Peak)/(16<<20), 1.2)
		})
	}
}

// TestUpdatesOfWhatIsKept: an update of what a script keeps, as an array or a view, copies it, and a profile says so.
func TestUpdatesOfWhatIsKept(t *testing.T) {
	onlyMemory(t)
	withDevice(t, metal.DeviceOptions{})
	for _, l := range []struct{ keep, want string }{
		{`c`, `i == 0 and a or mx.concatenate({mx.ones({i, 2048}), a:index(i .. ":")}, 0)`},
		{`c[3]`, `a[3]`},
	} {
		require.NoError(t, runLua(t, updateHelpers+`
			local c, kept = a * 1, {}
			mx.eval(c)
			local copied, bytes = moved(function()
				for i = 0, 3 do kept[i] = `+l.keep+` c = update(c, i) mx.eval(c) end
			end)
			assert(copied == 4, copied)
			assert(bytes >= 4 * 2 * a.nbytes, bytes)
			for i = 0, 3 do assert(mx.array_equal(kept[i], `+l.want+`):item(), i) end`))
	}
}

// TestAdamInPlace: steps that are only asked for change parameters and the optimizer's state in place where steps that
// are waited for do.
func TestAdamInPlace(t *testing.T) {
	onlyMemory(t)
	donated := map[string]int64{}
	for _, way := range []string{"eval", "async_eval"} {
		_, drv := withDevice(t, metal.DeviceOptions{})
		require.NoError(t, runLua(t, `
			local nn, optim = require("mx.nn"), require("mx.optimizers")
			local model = nn.Sequential(nn.Linear(512, 512), nn.Linear(512, 512), nn.Linear(512, 512))
			local opt = optim.Adam(1e-3)
			local x = mx.random.normal({256, 512})
			local grad = nn.value_and_grad(model, function(model) return mx.sum(mx.square(model(x))) end)
			for i = 1, 8 do
				local loss, g = grad(model)
				opt:update(model, g)
				mx.`+way+`(loss, model:parameters(), opt.state)
			end
			mx.synchronize()`))
		donated[way] = drv.donated.Load()
	}
	require.GreaterOrEqual(t, donated["eval"], int64(7*9)) // of three layers a weight and two averages
	require.GreaterOrEqual(t, donated["async_eval"], donated["eval"])
}

// TestCachesInPlace: tokens of a language model change its caches in place, and these take no more memory then.
func TestCachesInPlace(t *testing.T) {
	onlyMemory(t)
	sessions(t, map[string]string{"stream": `
		local prompt = {}
		for i = 1, 4 do
			prompt[i] = {}
			for k = 1, 600 do prompt[i][k] = (i * k) % 500 end
		end
		local tokens, caches = lm.stream(session.model, prompt, {max_tokens = 60})
		for _ = 1, 5 do tokens() end
		mx.synchronize()
		local before, copied = mx.get_active_memory(), 0
		mx.reset_peak_memory()
		for _, r in ipairs(mx.profile(function() for _ = 1, 40 do tokens() end end).rows) do copied = copied + r.copied end
		mx.synchronize()
		local grown, peak = mx.get_active_memory() - before, mx.get_peak_memory() - before
		assert(copied == 0, copied)
		assert(caches:arrays()[1][1].nbytes > 300000 and peak < 200000, peak)
		assert(grown < 100000, grown)`})
}

// TestFailedUpdatesOfState: what a step changes in place, or another step that is queued behind it, has its old
// contents when the step fails, by its own index or another's, and the next step goes on from there.
func TestFailedUpdatesOfState(t *testing.T) {
	t.Parallel()
	for _, l := range []struct{ name, step string }{
		{"one", `st.a = put(st.a, i)`},
		{"one index for two", `st.a, st.b = put(st.a, i), put(st.b, i)`},
		{"two indices", `st.a, st.b = put(st.a, i), put(st.b, mx.minimum(i, 1) + mx.maximum(i - 3, 0))`},
		{"scatter", `st.a = mx.put_along_axis(st.a, mx.broadcast_to(mx.reshape(i, {1, 1}), {1, 256}), u, 0)`},
		{"a slice that another takes", `st.a = put(st.a, i) st.b = put(st.b, i) st.s = mx.sum(mx.take(st.b, i, 0))`},
		{"a number and an index", `st.a, st.b = st.a:at(0):add(1), put(st.b, i)`},
	} {
		for _, eval := range []string{"eval", "async_eval"} {
			t.Run(l.name+"/"+eval, func(t *testing.T) {
				require.NoError(t, runLua(t, `
					u = mx.ones({1, 256})
					function put(c, k) return mx.slice_update(c, u, k, {0}) end
					local function run(bad)
						local lost = bad and "`+eval+`" == "async_eval" and 0 or nil
						local x = mx.arange(1024):reshape({4, 256})
						local st = {a = x * 1, b = x * 2, s = mx.zeros({})}
						mx.eval(st)
						local step = mx.compile(function(i) `+l.step+` end, {inputs = {st}, outputs = {st}})
						local failed = 0
						for _, list in ipairs{{0, 1}, {9}, {2, -9}, {3}, {1, 9, lost}} do -- queued one behind the other
							local ok = pcall(function()
								for _, i in ipairs(list) do
									if bad or i >= 0 and i < 9 then step(mx.array({i}, mx.int32)) end
									mx.`+eval+`(st)
								end
								mx.synchronize()
							end)
							if not ok then failed = failed + 1 end
						end
						return st, failed
					end
					local want, none = run(false)
					local got, some = run(true)
					assert(none == 0 and some == 3, some)
					for k, v in pairs(want) do assert(mx.array_equal(got[k], v):item(), k) end`))
			})
		}
	}
}
