package luabind

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/internal/brief"
	"github.com/mlxlua/mlxlua/internal/serial"
	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/metal/testdevice"
	"github.com/mlxlua/mlxlua/tensor"
)

func TestMain(m *testing.M) {
	for _, dev := range testdevice.Must() {
		tensor.SetDevice(dev)
	}
	tensor.Poison(true)
	os.Exit(m.Run())
}

// prelude is what the scripts under testdata compare with.
const prelude = `
local function close(a, b)
  if type(b) == "table" then
    if type(a) ~= "table" or #a ~= #b then return false end
    for i = 1, #b do if not close(a[i], b[i]) then return false end end
    return true
  end
  if type(b) == "boolean" then return a == b end
  return a == b or a ~= a and b ~= b or math.abs(a - b) <= 1e-5 * math.max(1, math.abs(b))
end
local function show(v)
  if type(v) ~= "table" then return tostring(v) end
  local out = {}
  for i = 1, #v do out[i] = show(v[i]) end
  return "{" .. table.concat(out, ", ") .. "}"
end
function same(x, want)
  local got = x:tolist()
  if not close(got, want) then error("got " .. show(got) .. ", want " .. show(want), 2) end
end
function dtype(x, want)
  if tostring(x.dtype) ~= want then error("dtype " .. tostring(x.dtype) .. ", want " .. want, 2) end
end
-- fails calls f and wants an error whose text matches one of the patterns between |.
function fails(patterns, f, ...)
  local ok, e = pcall(f, ...)
  if ok then error("no error, want " .. patterns, 2) end
  for p in (patterns .. "|"):gmatch("(.-)|") do
    if tostring(e):find(p) or tostring(e):find(p, 1, true) then return end
  end
  error("the error is " .. tostring(e) .. ", want " .. patterns, 2)
end
`

func newTestState(t *testing.T) *State {
	t.Helper()
	s := New(Options{Libraries: true, Stdout: &strings.Builder{}})
	t.Cleanup(s.Close)
	_, err := s.Run(context.Background(), strings.NewReader(strings.ReplaceAll(prelude, "local function", "function")),
		"prelude")
	require.NoError(t, err)
	return s
}

// onlyOnCPU are scripts that ask for what only the CPU's device is.
var onlyOnCPU = map[string]string{
	"async.lua":   "it waits for the streams of mx.cpu",
	"devices.lua": "it is about mx.cpu as the default device",
	"guarded.lua": "what a checkpoint gives lies in the file's pages",
}

// placedFaults are scripts that want kernels' faults told with their places.
var placedFaults = map[string]bool{"errors.lua": true, "inputs.lua": true}

// aboutTheDevice are scripts that set what belongs to the process, or measure the device that others use.
var aboutTheDevice = map[string]string{
	"compile_state.lua": "it sets the limit of memory, and switches compiled functions off",
	"devices.lua":       "it sets the default device, limits and validation",
	"files.lua":         "it sets the limit of memory",
	"guarded.lua":       "it measures the device's memory",
	"handles.lua":       "it measures the device's memory",
	"inputs.lua":        "it measures the device's memory",
	"scope.lua":         "it measures the device's memory",
}

// onlyValues are scripts that take long and compare values that one goroutine computes after the other.
var onlyValues = map[string]bool{"captures.lua": true, "compile_state.lua": true, "compile_train.lua": true,
	"errors.lua": true, "lm_delta.lua": true, "optimizers.lua": true, "train.lua": true}

// Each script asserts what docs/lua.md says, and more.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.lua")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".lua"), func(t *testing.T) {
			if why := aboutTheDevice[filepath.Base(file)]; why != "" {
				serial.Because(t, why)
			} else {
				t.Parallel()
			}
			if why := onlyOnCPU[filepath.Base(file)]; why != "" {
				testdevice.NeedsCPU(t, why)
			}
			if onlyValues[filepath.Base(file)] {
				brief.OnlyValues(t)
			}
			s := newTestState(t)
			if dev, err := tensor.MetalDevice(tensor.DefaultDevice()); placedFaults[filepath.Base(file)] {
				if require.NoError(t, err); dev.Info().Faults != metal.FaultsPlaced {
					t.Skip("the device does not tell where a kernel left its buffers")
				}
			}
			_, err := s.RunFile(context.Background(), file)
			var se *ScriptError
			if err != nil {
				require.ErrorAs(t, err, &se)
				t.Fatalf("%v\n%s", se, se.Traceback)
			}
			require.Equal(t, 0, s.L.GetTop(), "values are left on the stack")
		})
	}
}

// os.exit unwinds past pcall and comes back to the host.
func TestExit(t *testing.T) {
	t.Parallel()
	s := newTestState(t)
	_, err := s.Run(context.Background(), strings.NewReader("pcall(function() os.exit(3) end) error('not here')"), "exit")
	var se *ScriptError
	require.ErrorAs(t, err, &se)
	require.NotNil(t, se.Exit)
	require.Equal(t, 3, *se.Exit)
	out, err := s.Run(context.Background(), strings.NewReader("return 1 + 1"), "after")
	require.NoError(t, err)
	require.Equal(t, []lua.LValue{lua.LNumber(2)}, out)
}

// A cancelled context stops a script's loop, and one that ended before stops it at once.
func TestCancelledContext(t *testing.T) {
	t.Parallel()
	s := newTestState(t)
	ctx, cancel := context.WithCancel(context.Background())
	s.L.SetGlobal("cancel", s.L.NewFunction(func(*lua.LState) int { cancel(); return 0 }))
	_, err := s.Run(ctx, strings.NewReader("cancel() while true do end"), "loop")
	require.ErrorIs(t, err, context.Canceled)
	_, err = s.Run(context.Background(), strings.NewReader("return 1"), "after")
	require.NoError(t, err)
}

// Every function has help, and no two share a name.
func TestRows(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, f := range append(allFunctions(), newFunction(kernelCallRow)) {
		require.False(t, seen[f.name], f.name)
		seen[f.name] = true
		require.True(t, strings.HasPrefix(f.usage(), "mx."+f.name+"("))
		if f.name != kernelCallRow.name {
			require.NotEmpty(t, f.text(), "%s has no help", f.name)
		}
	}
	s := newTestState(t)
	require.Contains(t, s.mx.helpText(s.Entry(s.mx.LTable, "softmax")),
		"mx.softmax(a, axis=nil, precise=false)\nsoftmax is")
	require.Contains(t, s.mx.helpText(s.Entry(s.mx.LTable, "random")), "mx.random.uniform(")
	for _, name := range []lua.LString{"softmax", "mx.softmax"} {
		require.Equal(t, s.mx.helpText(s.Entry(s.mx.LTable, "softmax")), s.mx.helpText(name))
	}
	require.Contains(t, s.mx.helpText(lua.LString("Conv")), "mx.conv1d(")
	require.Contains(t, s.mx.helpText(lua.LString("softmx")), `there is no "softmx"`)
	require.Contains(t, s.mx.helpText(lua.LNumber(1)), "the number 1")
}

// What a name of another library stands for exists.
func TestElsewhere(t *testing.T) {
	t.Parallel()
	s := newTestState(t)
	loadLibrary(s)
	for name, here := range elsewhere {
		require.NotNil(t, s.mx.funcs[here], "%s for %s", here, name)
	}
}
