-- The progress line.
local mx, define, fail = ...

local Progress = {__name = "Progress"}
Progress.__index = Progress

-- How many seconds pass between two lines: they replace each other on a terminal only.
local on_terminal, elsewhere = 0.1, 10

-- clock is a number of seconds as minutes and seconds.
local function clock(seconds)
  seconds = math.floor(seconds + 0.5)
  if seconds >= 3600 then
    return ("%d:%02d:%02d"):format(seconds / 3600, seconds / 60 % 60, seconds % 60)
  end
  return ("%d:%02d"):format(seconds / 60, seconds % 60)
end

-- rate is how fast it goes: "312/s", or "2.5 s each" where that is slow.
local function rate(per_second)
  if per_second >= 100 then return ("%.0f/s"):format(per_second) end
  if per_second >= 1 then return ("%.1f/s"):format(per_second) end
  return ("%.1f s each"):format(1 / per_second)
end

-- text is the line at a time. The first step counts for no rate: it compiles kernels.
function Progress:text(now)
  local parts = {self.label}
  if self.total then
    parts[#parts + 1] = ("%3d %%"):format(math.floor(100 * self.count / self.total))
    parts[#parts + 1] = ("%d/%d"):format(self.count, self.total)
  else
    parts[#parts + 1] = tostring(self.count)
  end
  local done, took = self.count - (self._first or self.count), now - (self._since or now)
  if done > 0 and took > 0 then
    parts[#parts + 1] = rate(done / took)
    if self.total and self.count < self.total then
      parts[#parts + 1] = clock((self.total - self.count) * took / done) .. " left"
    end
  end
  if self.note then parts[#parts + 1] = self.note end
  return table.concat(parts, "  ")
end

-- step says that count more steps are done, and what is to be said of them.
function Progress:step(note, count)
  self.count, self.note = self.count + (count or 1), note
  local now = self._clock()
  if not self._since then self._since, self._first = now, self.count end
  if now - self._shown >= (mx.train.is_terminal() and on_terminal or elsewhere) then
    self._shown = now
    mx.train.status(self:text(now), false)
  end
end

-- close writes the last line: the text, or where it stands and the time that it took.
function Progress:close(text)
  if self._closed then return end
  self._closed = true
  local now = self._clock()
  mx.train.status(text or self:text(now) .. "  in " .. clock(now - self._start), true)
end

local make = define{
  name = "Progress", class = Progress, sig = "total:int? label:string? clock:function?",
  help = "A line that tells how far something is: p:step(note) counts a step (p:step(note, 10) ten) and shows the " ..
    "label, the steps of a total, their rate, the time that is left, and the note; p:close() ends it. It is " ..
    "written to the standard error stream: on a terminal in one place, at most ten times a second; elsewhere a " ..
    "line every ten seconds. The first step does not count for the rate. clock gives the seconds, as mx.clock does.",
  call = function(total, label, clock)
    if total and total < 0 then fail("Progress", ("total is %d, want at least 0"):format(total)) end
    clock = clock or mx.clock
    local now = clock()
    return setmetatable({total = total, label = label or "", count = 0, _clock = clock, _start = now, _shown = now},
      Progress)
  end,
}

setmetatable(Progress, {
  __call = function(_, ...) return make(...) end,
  __tostring = function() return "class Progress" end,
})
