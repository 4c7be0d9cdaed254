-- Lua's own libraries: protected calls, coroutines, strings, tables. The wants are those of the Lua 5.1 manual.
-- a closure and the function around a pcall go on sharing a variable after an error
local n = 1
local function bump() n = n + 1 end
assert(not pcall(error, "e"))
bump()
assert(n == 2, "the variable came apart from its closure")
-- a closure that outlives the function that failed keeps its variable
local kept
pcall(function() local v = 5; kept = function() v = v + 1; return v end; error("x") end)
local _ = {1, 2, 3, 4, 5, 6, 7, 8}
assert(kept() == 6 and kept() == 7)
local kept2
xpcall(function() local v = 5; kept2 = function() v = v + 1; return v end; error("x") end, function(e) return e end)
assert(kept2() == 6 and kept2() == 7)
-- error values keep what they are
local t = {}
local ok, e = pcall(error, t)
assert(not ok and e == t)
ok, e = pcall(error, "plain", 0)
assert(e == "plain")
ok, e = pcall(error)
assert(not ok and e == nil)
assert(select("#", pcall(function() return 1, nil, 3 end)) == 4)
ok, e = xpcall(function() error("deep") end, function(m) return "handled: " .. m end)
assert(not ok and e:find("^handled: .*deep$"), e)
ok, e = xpcall(function() error("deep") end, debug.traceback)
assert(e:find("stack traceback") and e:find("libraries.lua:27"), e)
assert(select(2, xpcall(function(...) return ... end, print, 4)) == 4)
ok, e = pcall(function() local function down() return 1 + down() end; return down() end)
assert(not ok and tostring(e):find("overflow"), e)
local function again() return pcall(again) end
again()
local deep = 0
local function nested() deep = deep + 1; assert(pcall(nested)) end
assert(not pcall(nested) and deep < 1000)
local function level(k) if k == 0 then return 0 end; return 1 + level(k - 1) end
assert(level(5000) == 5000, "5,000 nested calls are ordinary")
-- coroutines
local co = coroutine.create(function(a, b)
  local c = coroutine.yield(a + b)
  local d, f = coroutine.yield(c * 2)
  return d + f
end)
assert(select(2, coroutine.resume(co, 1, 2)) == 3)
assert(select(2, coroutine.resume(co, 10)) == 20)
assert(select(2, coroutine.resume(co, 3, 4)) == 7 and coroutine.status(co) == "dead")
fails("dead", function() assert(coroutine.resume(co)) end)
local gen = coroutine.wrap(function() for i = 1, 3 do coroutine.yield(i) end end)
assert(gen() == 1 and gen() == 2 and gen() == 3)
local sum = 0
for v in coroutine.wrap(function() for i = 1, 4 do coroutine.yield(i) end end) do sum = sum + v end
assert(sum == 10)
fails("boom", coroutine.wrap(function() error("boom") end))
ok, e = coroutine.resume(coroutine.create(function() error(t) end))
assert(not ok and e == t)
fails("yield", function()
  coroutine.wrap(function() assert(pcall(coroutine.yield, 1)) end)()
end)
fails("yield across", function()
  coroutine.wrap(function() table.sort({3, 1, 2}, function(a, b) coroutine.yield(1); return a < b end) end)()
end)
fails("yield", coroutine.yield, 1)
fails("libraries.lua:65", coroutine.wrap(function()
  return {} + {}
end))
-- patterns
assert(("hello world"):find("o w") == 5)
assert(select(2, ("hello"):find("l+")) == 4)
assert(("key = value"):match("^(%w+)%s*=%s*(%w+)$") == "key")
assert(("a.b"):find(".", 1, true) == 2 and ("a.b"):find("%.") == 2)
assert(("THE (quick) fox"):find("%((%a+)%)") == 5)
assert(("x"):match("()") == 1 and ("abc"):match("a(.-)c") == "b")
assert(("f(a(b)c)d"):match("%b()") == "(a(b)c)")
assert(("THE (quick) fox"):gsub("%f[%a]%a+", string.lower) == "the (quick) fox")
assert(("hello hello"):gsub("(h)(e)", "%2%1") == "ehllo ehllo")
assert(("abc"):gsub("", "-") == "-a-b-c-")
assert(("abc"):gsub("%w", "%0%0", 2) == "aabbc")
assert(("$name is $age"):gsub("%$(%w+)", {name = "Ann", age = 7}) == "Ann is 7")
assert(("a,b,,c"):gsub(",", ";") == "a;b;;c")
assert(("aba"):match("(a)b%1") == "a" and not ("abc"):match("(a)b%1"))
assert(("[x]"):match("[%]x]") == "x" and ("a-b"):match("[a%-]+") == "a-" and ("]"):match("[]]") == "]")
assert(("2026-11-21"):match("^(%d%d%d%d)%-(%d%d)%-(%d%d)$") == "2026")
local words = {}
for k, v in ("a=1, b=2"):gmatch("(%w+)=(%w+)") do words[#words + 1] = k .. v end
assert(table.concat(words, " ") == "a1 b2")
assert(("abc"):find("b", -1) == nil and ("abc"):find("b", -2) == 2 and ("abc"):find("", 10) == 4)
for _, bad in ipairs({"(", ")", "%", "[a", "%1", "%bx", "%f", "(()"}) do
  fails("pattern|capture|'%f'", string.match, "text", bad)
end
fails("invalid replacement value", string.gsub, "a", "a", function() return {} end)
fails("invalid capture", string.gsub, "a", "a", "%2")
-- format: C's rules
assert(("%d %5.2f %-5s| %05d %x %s"):format(3.0, 3.14159, "ab", 42, 255, true) == "3  3.14 ab   | 00042 ff true")
assert(("%g %g %g %g"):format(1 / 3, 1e20, 100000, 1e6) == "0.333333 1e+20 100000 1e+06")
assert(("%e %.3g %+d %%"):format(12345.678, 0.00012345, 5) == "1.234568e+04 0.000123 +5 %")
assert(("%5s%-5s|%.2s"):format("a", "b", "xyz") == "    ab    |xy")
assert(("%q"):format('a "b"\n\\') == '"a \\"b\\"\\\n\\\\"')
assert(("%x %X %o %c"):format(-1, 171, 8, 65) == "ffffffffffffffff AB 10 A")
assert(("%g %f %5.1f|%d"):format(1 / 0, -1 / 0, 2.25, -7) == "inf -inf   2.2|-7")
assert(("%s and %s"):format(setmetatable({}, {__tostring = function() return "mine" end}), nil) == "mine and nil")
fails("number expected", string.format, "%d", "x")
fails("invalid option", string.format, "%y", 1)
fails("width or precision", string.format, "%1000d", 1)
fails("no value|expected", string.format, "%d")
-- bounds
fails("more than", string.rep, "abc", 1e9)
fails("too many results", unpack, {}, 1, 1e8)
assert(("x"):rep(-1) == "" and (""):rep(1e9) == "" and ("ab"):rep(3) == "ababab")
assert(("hello"):byte(-1) == 111 and select("#", ("hello"):byte(2, 4)) >= 1)
-- tables
local list = {5, 2, 8, 1}
table.sort(list)
assert(table.concat(list, ",") == "1,2,5,8")
table.sort(list, function(a, b) return a > b end)
assert(table.concat(list, ",", 2, 3) == "5,2")
fails("compare", table.sort, {1, "x"})
fails("invalid value", table.concat, {1, {}, 3})
assert(table.concat({}) == "" and table.concat({1}, ", ") == "1")
-- chunks compiled at run time
assert(loadstring("return 1 + 1")() == 2)
ok, e = loadstring("return +")
assert(not ok and e:find("EOF|syntax") or e:find("unexpected") or #e > 0)
-- assert takes a number as its message, and needs a value
do
	local ok, e = pcall(assert, false, 42)
	assert(not ok and e:find("42$"), e)
	fails("string expected, got table", assert, false, {})
	fails("value expected", assert)
	assert(select("#", assert(1, nil, 3)) == 3)
	fails("100%% %%d$", assert, nil, "100% %d")
end
