package luabind

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/internal/serial"
	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/metal/soft"
	"github.com/mlxlua/mlxlua/metal/testdevice"
	"github.com/mlxlua/mlxlua/tensor"
)

// executors are what runs kernels: see soft.Options.
var executors = []string{"interp", "avx2", "avx512", "avx512bf16"}

// onExecutor makes a device of its own, whose kernels the executor runs, the default one until the test ends. Where
// this processor lacks a level of machine code the test is skipped.
func onExecutor(t *testing.T, executor string) *metal.Device {
	serial.Because(t, "another device is the default one of the process")
	before, err := tensor.MetalDevice(tensor.DeviceID{Kind: tensor.CPU})
	require.NoError(t, err)
	dev, err := metal.NewDevice(soft.New(soft.Options{Executor: executor}), metal.DeviceOptions{})
	require.NoError(t, err)
	if executor != "interp" && strings.Contains(dev.Info().Name, "interpreter") {
		require.NoError(t, dev.Close())
		t.Skip(dev.Info().Name)
	}
	dev.SetValidate(false) // under which unwritten memory is an error
	tensor.SetDevice(dev)
	t.Cleanup(func() {
		require.NoError(t, tensor.Synchronize(context.Background()))
		tensor.SetDevice(before)
		require.NoError(t, dev.Close())
	})
	return dev
}

// stranger is a new state as users have them who must not see each other.
func stranger() *State { return New(Options{Sandbox: true, Stdout: io.Discard}) }

// visit runs a script in a state, with arguments as numbers, and gives what it returns as text.
func visit(t *testing.T, s *State, text string) string {
	t.Helper()
	out, err := s.Run(context.Background(), strings.NewReader(text), "visit.lua")
	require.NoError(t, err)
	var b strings.Builder
	for _, v := range out {
		fmt.Fprint(&b, v.String(), " ")
	}
	return strings.TrimSpace(b.String())
}

// peepers are kernels of one text for the user who has secrets and for the one who looks for them: they write and show
// threadgroup memory, an array of each thread's that lies in memory, and variables that registers do not hold.
const peepers = `
local n = 512
local function kernel(source) return mx.fast.metal_kernel{name = "peep", input_names = {"mode", "at"},
  output_names = {"out"},
  source = "uint i = thread_position_in_grid.x, t = thread_position_in_threadgroup.x;" .. source} end
peepers = {
  kernel[[
    threadgroup uint pad[7000];
    uint seen = 0;
    for (uint j = t; j < 7000; j += 256) { seen |= pad[j]; if (mode[0]) pad[j] = 0x5a5a5a5a; }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    out[i] = seen;]],
  kernel[[
    uint own[200];
    uint seen = 0;
    for (uint j = 0; j < 200; j++) {
      seen |= own[(j * at[1]) % 200];
      if (mode[0]) own[(j * at[1]) % 200] = 0x5a5a5a5a + i;
    }
    out[i] = seen;]],
  kernel[[
    float4x4 m[6];
    float seen = 0;
    for (uint r = 0; r < 6; r++) for (uint c = 0; c < 4; c++) seen += dot(m[r][c], m[r][c]);
    if (mode[0]) {
      for (uint r = 0; r < 6; r++) for (uint c = 0; c < 4; c++) m[r][c] = float4(i + r, c, at[r], 5);
      for (uint k = 0; k < at[2]; k++) for (uint r = 0; r < 6; r++) m[r] = m[r] * m[(r + k) % 6];
      out[i] = uint(m[3][1][2]);
    } else out[i] = as_type<uint>(seen);]],
}
function look(kernel, mode)
  return kernel{inputs = {mx.array({mode, mode}, mx.int32), mx.array({0, 7, 3, 4, 5, 6}, mx.int32)},
    grid = {n, 1, 1}, threadgroup = {256, 1, 1}, output_shapes = {{n}}, output_dtypes = {mx.uint32}}
end
`

// leaveSecrets leaves secrets in memory of all sizes, and in what kernels have for themselves.
const leaveSecrets = peepers + `
held = {}
for round = 1, 2 do
  for _, n in ipairs{1, 10, 100, 1000, 10000, 200000} do
    local x = mx.full({n}, 90, mx.uint8)
    local y = x * 1
    local z = n > 10000 and y + 0 or mx.sort(y + 0)
    mx.eval(y, z)
    held[#held + 1] = y + z - 90
  end
  mx.eval(unpack(held))
end
for _, k in ipairs(peepers) do mx.eval(look(k, 1)) end
`

// lookAround counts bytes that are not zero in what kernels find in outputs that they have not written, and everywhere
// else.
const lookAround = peepers + `
local function kernel(source) return mx.fast.metal_kernel{name = "search", input_names = {"x"},
  output_names = {"out"}, source = "uint i = thread_position_in_grid.x;" .. source} end
local sources = {
  "",                                                     -- it writes nothing
  "if (i % 7 == 0) out[i] = 0;",                          -- a part
  "out[i] = out[i];",                                     -- it reads first
  "uchar v = out[i]; out[i] = 0; if (v) out[i] = v;",
}
local found, bytes = 0, 0
local function count(x)
  found, bytes = found + mx.sum(mx.not_equal(x:view(mx.uint8), 0)):item(), bytes + x.nbytes
end
for round = 1, 2 do
  local all = {}
  for _, n in ipairs{1, 10, 100, 1000, 10000, 200000} do
    for _, source in ipairs(sources) do
      all[#all + 1] = kernel(source){inputs = {mx.zeros({1})}, grid = {n, 1, 1}, threadgroup = {256, 1, 1},
        output_shapes = {{n}}, output_dtypes = {mx.uint8}}
    end
  end
  mx.eval(unpack(all))
  for _, x in ipairs(all) do count(x) end
end
-- What lies before and behind an array, or a part of one: there is no element to see.
local base = mx.arange(2000):astype(mx.uint8) + 0
mx.eval(base)
for _, n in ipairs{0, 1, 3, 100, 1000} do
  for i, x in ipairs{base["1:" .. n + 1], base["1:" .. n + 1] + 0} do
    for _, at in ipairs{-1, n, n + 1} do
      local ok, y = pcall(function()
        return kernel("out[i] = x[" .. at .. "];"){inputs = {x}, grid = {1, 1, 1}, threadgroup = {1, 1, 1},
          output_shapes = {{1}}, output_dtypes = {mx.uint8}}:item()
      end)
      if ok or not tostring(y):find("out of range") then
        error(("x[%d] of %d, %d: %s"):format(at, n, i, tostring(y)))
      end
    end
  end
end
for _, k in ipairs(peepers) do count(look(k, 0)) end
return found, bytes > 1e5
`

// TestStatesSeeNothingOfEachOther: what a state leaves in memory is nothing to the next one and to those beside it,
// whether it was closed, or lives and has freed its arrays, whatever runs the kernels.
func TestStatesSeeNothingOfEachOther(t *testing.T) {
	testdevice.NeedsCPU(t, "it opens devices of its own for each executor")
	for _, executor := range executors {
		t.Run(executor, func(t *testing.T) {
			dev := onExecutor(t, executor)
			victim := stranger()
			visit(t, victim, leaveSecrets)
			victim.Close()
			dev.Collect(context.Background())
			if dev.Memory().Cache == 0 {
				t.Skip("the pool has given the memory back to the system already")
			}
			second := stranger()
			defer second.Close()
			require.Equal(t, "0 true", visit(t, second, lookAround))

			living := stranger()
			defer living.Close()
			visit(t, living, leaveSecrets+`for _, x in ipairs(held) do x:free() end held = nil collectgarbage()`)
			third := stranger()
			defer third.Close()
			require.Equal(t, "0 true", visit(t, third, lookAround))
			require.Equal(t, "0 true", visit(t, second, lookAround))
			visit(t, living, leaveSecrets)
			dev.ClearCache()
			require.Equal(t, "0 true", visit(t, third, lookAround))
		})
	}
}
