package luabind

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/internal/brief"
)

// optimizersGolden is what testdata/optimizers.py wrote.
func optimizersGolden(t *testing.T) map[string]any {
	t.Helper()
	text, err := os.ReadFile("testdata/optimizers.json")
	require.NoError(t, err)
	var golden map[string]any
	require.NoError(t, json.Unmarshal(text, &golden))
	return golden
}

// asMLX makes the trees of testdata/optimizers.py, and compares with what MLX gave. A leaf of bfloat16 may be off by a
// rounding or two, which ten steps can make of one.
const asMLX = `
local optim, utils = require("mx.optimizers"), require("mx.utils")
local leaves = {{"layers.0.b", {5}, mx.bfloat16}, {"layers.1.k", {2, 3, 2}, mx.float32}, {"w", {3, 4}, mx.float32}}
local function tree(number)
  local out = {}
  for j, leaf in ipairs(leaves) do
    local values, size = {}, 1
    for _, n in ipairs(leaf[2]) do size = size * n end
    for i = 1, size do values[i] = number(i - 1, j - 1) end
    out[j] = {leaf[1], mx.array(values):reshape(leaf[2]):astype(leaf[3])}
  end
  return utils.tree_unflatten(out)
end
local function near(name, got, want)
  local flat, seen = {}, 0
  for _, leaf in ipairs(utils.tree_flatten(got)) do flat[leaf[1]] = leaf[2] end
  for path, numbers in pairs(want) do
    local x = assert(flat[path], name .. ": there is no " .. path)
    local tolerance = x.dtype == mx.bfloat16 and 2 ^ -8 or 2e-6
    local list, largest = x:astype(mx.float32):reshape(-1):tolist(), 0
    for _, v in ipairs(numbers) do largest = math.max(largest, math.abs(v)) end
    assert(#list == #numbers, name .. ": " .. path)
    for i, v in ipairs(numbers) do
      assert(math.abs(list[i] - v) <= tolerance * (math.abs(v) + largest),
        ("%s: %s[%d] is %.9g, want %.9g"):format(name, path, i - 1, list[i], v))
    end
    seen = seen + 1
  end
  local n = 0
  for _ in pairs(flat) do n = n + 1 end
  assert(n == seen, name .. ": there are other leaves")
end
local function parameters() return tree(function(i, j) return ((i * 5 + j * 3) % 11 - 5) / 8 end) end
local function gradients(t) return tree(function(i, j) return ((i * 7 + t * 13 + j * 5) % 17 - 8) / 16 end) end
local function made(text) return assert(loadstring("local optim = ... return optim." .. text))(optim) end
`

// Schedules, ten steps of each optimizer, and clipped gradients are MLX's.
func TestOptimizersAsMLX(t *testing.T) {
	t.Parallel()
	brief.OnlyValues(t)
	s := newTestState(t)
	golden, err := s.ToLua(optimizersGolden(t))
	require.NoError(t, err)
	s.L.SetGlobal("golden", golden)
	_, err = s.Run(context.Background(), strings.NewReader(asMLX+`
for _, case in ipairs(golden.schedules) do
  local f = made(case.lua)
  for t, want in ipairs(case.values) do
    local got = f(mx.array(t - 1, mx.uint64))
    assert(got.dtype == mx.float32, case.lua)
    assert(math.abs(got:item() - want) <= 1e-6 * math.abs(want) + 1e-8, case.lua .. " at " .. t - 1)
    local plain = f(t - 1)
    if type(plain) ~= "number" then plain = plain:item() end
    assert(math.abs(plain - want) <= 1e-6 * math.abs(want) + 1e-8, case.lua .. " of the number " .. t - 1)
  end
end
for _, case in ipairs(golden.optimizers) do
  local o, p = made(case.lua), parameters()
  for t = 0, 9 do
    p = o:apply_gradients(gradients(t), p)
    local want = t == 0 and case.first or t == 9 and case.tenth
    if want then
      near(case.lua .. " after step " .. t, p, want.parameters)
      near(case.lua .. " after step " .. t .. ", state", o.state, want.state)
    end
  end
end
for _, case in ipairs(golden.clipped) do
  local grads = tree(function(i, j) return ((i * 7 + j * 5) % 17 - 8) / 4 end)
  local clipped, norm = optim.clip_grad_norm(grads, case.most)
  near("clip_grad_norm", clipped, case.grads)
  assert(math.abs(norm:item() - case.norm) < 1e-5 * case.norm)
end
`), "optimizers")
	require.NoError(t, err)
}
