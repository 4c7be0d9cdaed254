package luabind

import (
	"testing"

	"github.com/mlxlua/mlxlua/internal/serial"
	"github.com/stretchr/testify/require"
)

// TestProfile: calls, lines and operations are what was called; times are within the time of it all; fused ops are one
// row; the flops of a product are 2 m n k.
func TestProfile(t *testing.T) {
	serial.Because(t, "a profile is that of the process")
	require.NoError(t, runLua(t, `
local a, w = mx.ones({64, 32}), mx.ones({32, 16})
mx.eval(a, w)
local p, y, two = mx.profile(function()
  local y
  for i = 1, 3 do
    y = mx.matmul(a, w)
    mx.eval(y)
  end
  mx.eval(mx.tanh(y) * 2)
  local c = mx.conv2d(mx.ones({1, 8, 8, 4}) * 3, mx.ones({5, 3, 3, 4}) * 2)
  mx.eval(c)
  mx.eval(mx.linalg.eigh(mx.eye(8) * 2, {stream = mx.cpu}))
  mx.async_eval(mx.fft.fft(mx.ones({2, 64}) + 1))
  return y, 2
end)
assert(two == 2 and y.shape[2] == 16)
local by, total = {}, 0
for _, r in ipairs(p.rows) do
  total = total + r.time
  assert(r.calls > 0 and r.time >= 0, r.op)
  local sum = by[r.op]
  if r.kernel ~= "compile" and sum then -- one op by two kernels
    for _, k in ipairs{"calls", "flops", "bytes"} do sum[k] = sum[k] + r[k] end
  elseif r.kernel ~= "compile" then
    by[r.op] = r
  end
end
assert(p.time > 0 and p.rows[1].time >= p.rows[#p.rows].time)
local m = by.matmul
assert(m.calls == 3 and m.flops == 3 * 2 * 64 * 32 * 16, m.flops)
assert(m.bytes == 3 * 4 * (64 * 32 + 32 * 16 + 64 * 16), m.bytes)
assert(m.line:find(":7$"), m.line)
assert(by.conv.flops == 2 * 6 * 6 * 5 * 3 * 3 * 4, by.conv.flops)
assert(by["multiply+tanh"].calls == 1 and by["multiply+tanh"].flops == 2 * 64 * 16)
assert(by.eigh.kernel == "host" and by.eigh.calls == 1)
assert(by.fft.flops == 2 * 5 * 64 * 6, by.fft.flops)
local text = tostring(p)
assert(text:find("GFLOP/s") and text:find("matmul") and text:find("in all"))
local short = tostring((mx.profile(function() return mx.exp(a), mx.sum(a) end, 1)))
assert(short:find("rows more"), short)
local ok, err = pcall(mx.profile, function() error("stopped") end)
assert(not ok and tostring(err):find("stopped"))
assert(not pcall(mx.profile, function() mx.profile(function() end) end))
assert(#(mx.profile(function() return mx.exp(a) end)).rows > 0)
`))
}

// TestProfileRows: rows is a positive number.
func TestProfileRows(t *testing.T) {
	serial.Because(t, "a profile is that of the process")
	require.ErrorContains(t, runLua(t, `mx.profile(function() end, 0)`), "rows is 0")
}
