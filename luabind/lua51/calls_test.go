package lua51

import (
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// show prints what a call gives, without what no two programs have alike.
const show = `
local name = os.tmpname()
os.remove(name)
local function shown(v)
  if type(v) == "string" then return (("%q"):format(v):gsub(name:gsub("%W", "%%%0"), "NAME"):gsub("0x%x+", "0x")) end
  if type(v) == "number" or type(v) == "boolean" or v == nil then return tostring(v) end
  if io.type(v) then return io.type(v) end
  return type(v)
end
local function show(...)
  local line = {}
  for i = 1, select("#", ...) do line[i] = shown((select(i, ...))) end
  print(table.concat(line, " "))
end
local function write(text, mode) local f = io.open(name, mode or "wb") f:write(text) f:close() end
local function read() local f = io.open(name, "rb") local text = f:read("*a") f:close() return text end
local function file(text, mode) write(text) return io.open(name, mode or "r") end
local function list(iter, state, at)
  local all = {}
  for v in iter, state, at do all[#all + 1] = tostring(v) if #all == 20 then break end end
  return table.concat(all, "|")
end
local function ends(message, f, ...) local ok, e = pcall(f, ...) return ok, (tostring(e):gsub("^.*: ", "")) end
`

// Calls of the functions of Lua's manual, with odd arguments too, give what Lua 5.1 gives. What is listed as a
// difference in docs/lua.md is not among them.
func TestCalls(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("errors of the system, and what a shell's command ends with, are those of Linux")
	}
	t.Setenv("TZ", "UTC")
	local := time.Local
	time.Local = time.UTC
	t.Cleanup(func() { time.Local = local })
	text, err := os.ReadFile("testdata/calls.txt")
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	var programs []string
	var at []int // their lines, which what they print follows
	for i, line := range lines {
		if !strings.HasPrefix(line, "= ") && !strings.HasPrefix(line, "#") {
			programs = append(programs, show+"show(pcall(function() return "+line+" end)) os.remove(name)")
			at = append(at, i)
		}
	}
	var said []string
	if *oracle != "" {
		said = theirs(t, programs)
	}
	for i, program := range programs {
		no := at[i]
		if said == nil {
			want, err := strconv.Unquote(strings.TrimPrefix(lines[no+1], "= "))
			require.NoError(t, err, "line %d: ask Lua 5.1 with -lua lua5.1 -update", no+2)
			require.Equal(t, want, ours(t, program), "line %d: %s", no+1, lines[no])
			continue
		}
		if got := ours(t, program); got != said[i] {
			t.Errorf("%s\n--- Lua 5.1:\n%s\n--- here:\n%s", lines[no], said[i], got)
		}
		lines[no] += "\n= " + strconv.Quote(said[i])
	}
	if said != nil && *update {
		lines = slices.DeleteFunc(lines, func(line string) bool { return strings.HasPrefix(line, "= ") })
		require.NoError(t, os.WriteFile("testdata/calls.txt", []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	}
}
