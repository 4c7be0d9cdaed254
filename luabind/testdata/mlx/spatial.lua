-- MLX's test_nn.py, TestLayers, the pools and Upsample; and its test_upsample.py.
local t = {}

local function channels_last(v) return mx.array(v):transpose({0, 2, 3, 1}) end

-- counted is an array of n, n + 1 ... with the channels last in memory order (N, C, H, W).
local function counted(first, N, C, H, W)
  return mx.arange(first, first + N * C * H * W):reshape({N, C, H, W}):transpose({0, 2, 3, 1})
end

function t.test_upsample()
  local v = values.test_upsample
  local function up(x, scale, mode, align, name)
    near(nn.Upsample{scale_factor = scale, mode = mode, align_corners = align}(x), channels_last(v[name]), 1e-5)
  end
  local x = counted(0, 1, 1, 2, 2)
  up(x, 2, "nearest", true, "expected_nearest 1")
  up(x, 2, "linear", true, "expected_bilinear 1")
  x = counted(1, 1, 1, 2, 2)
  up(x, 2, "nearest", false, "expected_nearest_no_align_corners 1")
  up(x, 2, "linear", false, "expected_bilinear_no_align_corners 1")
  x = counted(0, 2, 2, 3, 3)
  up(x, 2, "nearest", true, "expected_nearest 2")
  up(x, 2, "linear", true, "expected_bilinear 2")
  x = counted(0, 1, 2, 2, 2)
  up(x, {2, 3}, "nearest", true, "expected_nearest 3")
  up(x, {2, 3}, "linear", true, "expected_bilinear 3")
  assert(tostring(nn.Upsample{scale_factor = 2}) ==
    "Upsample(scale_factor=2.0, mode='nearest', align_corners=False)")
  assert(tostring(nn.Upsample{scale_factor = {2, 3}}) ==
    "Upsample(scale_factor=(2.0, 3.0), mode='nearest', align_corners=False)")
end

function t.test_upsample_align_corners_one_dim()
  local x = counted(1, 1, 1, 2, 2)
  local function up(a, scale, mode) return nn.Upsample{scale_factor = scale, mode = mode, align_corners = true}(a) end
  near(up(x, 0.5, "linear"), x[":, :1, :1, :"])
  near(up(x, {0.5, 2}, "linear"), {{{{1}, {4 / 3}, {5 / 3}, {2}}}})
  near(up(x, {2, 0.5}, "linear"), {{{{1}}, {{5 / 3}}, {{7 / 3}}, {{3}}}})
  near(up(x, 0.5, "cubic"), x[":, :1, :1, :"])
  local line = mx.arange(4):reshape({1, 4, 1}):astype(mx.float32)
  near(up(line, 0.25, "linear"), line[":, :1, :"])
end

-- pools are the cases of MLX's test: the class, its keywords, the array, and what it gives.
local pools = {
  {"MaxPool1d", {2, 1, 0}, 1, "max_pool_output_no_padding_stride_1 1"},
  {"MaxPool1d", {2, 2, 0}, 1, "max_pool_output_no_padding_stride_2 1"},
  {"MaxPool1d", {2, 2, 1}, 1, "max_pool_output_padding_1_stride_2 1"},
  {"MaxPool1d", {3, 2, 1}, 1, "max_pool_output_padding_1_stride_2_kernel_3 1"},
  {"AvgPool1d", {2, 1, 0}, 1, "avg_pool_output_no_padding_stride_1 1"},
  {"AvgPool1d", {2, 2, 0}, 1, "avg_pool_output_no_padding_stride_2 1"},
  {"AvgPool1d", {2, 2, 1}, 1, "avg_pool_output_padding_1_stride_2 1"},
  {"AvgPool1d", {3, 2, 1}, 1, "avg_pool_output_padding_1_kernel_3 1"},
  {"MaxPool2d", {2, 1, 0}, 2, "max_pool_output_no_padding_stride_1 2"},
  {"MaxPool2d", {2, 2, 0}, 2, "max_pool_output_no_padding_stride_2 2"},
  {"MaxPool2d", {2, 2, 1}, 2, "max_pool_output_padding_1 1"},
  {"AvgPool2d", {2, 1, 0}, 2, "mean_pool_output_no_padding_stride_1 1"},
  {"AvgPool2d", {2, 2, 0}, 2, "mean_pool_output_no_padding_stride_2 1"},
  {"AvgPool2d", {2, 2, 1}, 2, "mean_pool_output_padding_1 1"},
  {"MaxPool2d", {3, 2, 1}, 3, "max_pool_output 1"},
  {"AvgPool2d", {3, 2, 1}, 3, "avg_pool_output 1"},
  {"MaxPool2d", {{2, 4}, {3, 1}, {1, 2}}, 4, "irregular_max_pool_output 1"},
  {"AvgPool2d", {{2, 4}, {3, 1}, {1, 2}}, 4, "irregular_average_pool_output 1"},
  {"MaxPool3d", {2, 1, 0}, 5, "max_pool_output_no_padding_stride_1 3"},
  {"MaxPool3d", {2, 2, 0}, 5, "max_pool_output_no_padding_stride_2 3"},
  {"MaxPool3d", {2, 2, 1}, 5, "max_pool_output_padding_1 2"},
  {"MaxPool3d", {{1, 2, 1}, {1, 2, 1}}, 5, "irregular_max_pool_output 2"},
  {"AvgPool3d", {2, 1, 0}, 5, "avg_pool_output_no_padding_stride_1 2"},
  {"AvgPool3d", {2, 2, 0}, 5, "avg_pool_output_no_padding_stride_2 2"},
  {"AvgPool3d", {2, 2, 1}, 5, "avg_pool_output_padding_1 1"},
  {"AvgPool3d", {{1, 2, 1}, {1, 2, 1}}, 5, "irregular_avg_pool_output 1"},
}

function t.test_pooling()
  local v = values.test_pooling
  for _, case in ipairs(pools) do
    local class, settings, x, name = unpack(case)
    local pool = nn[class]{kernel_size = settings[1], stride = settings[2], padding = settings[3]}
    near(pool(mx.array(v["x " .. x])), assert(v["expected_" .. name], name), 1e-5)
  end
  for text, pool in pairs{
    ["MaxPool1d(kernel_size=(3,), stride=(3,), padding=(2,))"] = nn.MaxPool1d{kernel_size = 3, padding = 2},
    ["AvgPool1d(kernel_size=(2,), stride=(3,), padding=(0,))"] = nn.AvgPool1d{kernel_size = 2, stride = 3},
    ["MaxPool2d(kernel_size=(3, 3), stride=(2, 2), padding=(1, 1))"] =
      nn.MaxPool2d{kernel_size = 3, stride = 2, padding = 1},
    ["AvgPool2d(kernel_size=(1, 2), stride=(2, 2), padding=(1, 2))"] =
      nn.AvgPool2d{kernel_size = {1, 2}, stride = 2, padding = {1, 2}},
    ["MaxPool3d(kernel_size=(3, 3, 3), stride=(3, 3, 3), padding=(2, 2, 2))"] =
      nn.MaxPool3d{kernel_size = 3, stride = 3, padding = 2},
    ["AvgPool3d(kernel_size=(3, 3, 3), stride=(3, 3, 3), padding=(2, 2, 2))"] =
      nn.AvgPool3d{kernel_size = 3, stride = 3, padding = 2},
  } do assert(tostring(pool) == text, tostring(pool)) end
end

-- as_torch compares with torch's interpolate.
local function as_torch(cases)
  for i, case in ipairs(cases) do
    local up = nn.Upsample{scale_factor = {unpack(case.scale)}, mode = case.mode, align_corners = case.align,
      antialias = case.antialias}
    local ok, message = pcall(summed, up(formula({unpack(case.shape)}, 1)), case.want, 1e-5)
    assert(ok, ("case %d, %s: %s"):format(i, tostring(up), tostring(message)))
  end
end

function t.test_torch_upsample() as_torch(torch.upsample.plain) end

function t.test_torch_upsample_antialias() as_torch(torch.upsample.antialias) end

function t.test_antialias_upscale_cubic_matches_pytorch() as_torch(torch.upsample.wider) end

function t.test_antialias_upscale_linear_is_noop()
  local x = formula({1, 4, 4, 3}, 1)
  for _, scale in ipairs({2, 3}) do
    near(nn.Upsample{scale_factor = scale, mode = "linear", antialias = true}(x),
      nn.Upsample{scale_factor = scale, mode = "linear"}(x), 1e-7)
  end
end

function t.test_antialias_non_integer_scale_smoke()
  local x = mx.random.normal({1, 32, 32, 3})
  for _, scale in ipairs({0.3, 0.7, 0.6}) do
    for _, mode in ipairs({"linear", "cubic"}) do
      local y = nn.Upsample{scale_factor = scale, mode = mode, antialias = true}(x)
      shape(y, 1, math.floor(32 * scale), math.floor(32 * scale), 3)
      assert(mx.all(mx.isfinite(y)):item())
      if mode == "linear" then -- its weights are positive
        assert(y:max():item() <= x:max():item() + 0.01 and y:min():item() >= x:min():item() - 0.01)
      end
    end
  end
end

function t.test_antialias_1d_smoke()
  for length, scale in pairs({[16] = 0.5, [32] = 0.25}) do
    for _, mode in ipairs({"linear", "cubic"}) do
      local x = mx.random.normal({1, length, 3})
      local smooth = nn.Upsample{scale_factor = scale, mode = mode, antialias = true}(x)
      shape(smooth, 1, length * scale, 3)
      assert(mx.max(mx.abs(smooth - nn.Upsample{scale_factor = scale, mode = mode}(x))):item() > 1e-6)
    end
  end
end

return t
