-- Texts that end an answer: where one stands in what was said, and how much of the end could become one.
local stops = {}

-- held is how much of the end of a text could be the beginning of one of the stops.
function stops.held(text, list)
  local most = 0
  for _, stop in ipairs(list) do
    for n = math.min(#stop - 1, #text), most + 1, -1 do
      if text:sub(-n) == stop:sub(1, n) then
        most = n
        break
      end
    end
  end
  return most
end

-- cut is the place where a text has the first of the stops, and which, or nil.
function stops.cut(text, list)
  local first, which
  for _, stop in ipairs(list) do
    local at = text:find(stop, 1, true)
    if at and not (first and first <= at) then first, which = at, stop end
  end
  return first, which
end

-- list is what a caller gave as texts that end an answer, one or a list of them, as a list.
function stops.list(stop)
  local list = type(stop) == "string" and {stop} or stop or {}
  if type(list) ~= "table" then error(("lm: stop = %s, want a text or a list of texts"):format(tostring(stop)), 0) end
  for _, text in ipairs(list) do
    if type(text) ~= "string" or text == "" then
      error(("lm: stop has %q, want texts that are not empty"):format(tostring(text)), 0)
    end
  end
  return list
end

return stops
