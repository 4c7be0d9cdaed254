-- Layers that drop what they are given, at random.
local mx, _, fail, use = ...

local layer, float = use("class").layer, use("text").float

-- dropout makes a layer that drops whole channels over so many spatial dimensions; 0: single elements.
local function dropout(name, spatial, help)
  layer{
    name = name, sig = "p:number=0.5", help = help,
    init = function(self, p)
      if p < 0 or p >= 1 then fail(name, ("p is %g, want a probability in [0, 1)"):format(p)) end
      self._p_1 = 1 - p
    end,
    forward = function(self, x)
      local n = x.ndim
      if spatial > 0 and n ~= spatial + 1 and n ~= spatial + 2 then
        fail(name, ("the array has %d dimensions, want %d or %d"):format(n, spatial + 1, spatial + 2))
      end
      local keep = self._p_1
      if keep == 1 or not self.training then return x end
      local shape = x
      if spatial > 0 then
        local parts = {}
        for i = 0, n - 1 do parts[i + 1] = {x, i} end
        for i = n - spatial, n - 1 do parts[i] = 1 end
        shape = mx.dims(unpack(parts))
      end
      return mx.random.bernoulli(keep, shape) * x * (1 / keep)
    end,
    repr = function(self) return "p=" .. float(1 - self._p_1) end,
  }
end

dropout("Dropout", 0, "In training, each element becomes 0 with the probability p, and the others are divided " ..
  "by 1 - p; " ..
  "in evaluation nothing changes. The random numbers are mx.random's.")
dropout("Dropout2d", 2, "Dropout of whole channels, each with the probability p: of arrays (N, H, W, C) or " ..
  "(H, W, C).")
dropout("Dropout3d", 3, "Dropout of whole channels, each with the probability p: of arrays (N, D, H, W, C) or " ..
  "(D, H, W, C).")
