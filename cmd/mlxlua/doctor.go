package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/mlxlua/mlxlua"
	"github.com/mlxlua/mlxlua/luabind"
	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/tensor"
)

// selfCheck is a script that runs a kernel as it always runs and as the interpreter runs it on the processor, and
// compares the bytes; and compares functions with what mathematics says.
const selfCheck = `
local kernel = mx.fast.metal_kernel{name = "self_check", input_names = {"a"}, output_names = {"out"}, source = [==[
  uint i = thread_position_in_grid.x;
  float v = simd_sum(a[i]) * 0.001f;
  for (int j = 0; j < int(i % 7); ++j) { v = metal::sin(v) + a[(i + j) % 256]; }
  out[i] = v;
]==]}
local x = mx.random.normal({256}, {key = mx.random.key(7)})
local function run(stream)
  local y = kernel{inputs = {x}, stream = stream, grid = {256, 1, 1}, threadgroup = {64, 1, 1}, output_shapes = {x},
    output_dtypes = {mx.float32}}
  return y:view(mx.uint32):tolist()
end
local compiled = run()
mx.metal.validate(true)
local interpreted = run(mx.cpu)
mx.metal.validate(false)
for i = 1, 256 do
  if compiled[i] ~= interpreted[i] then
    error("element " .. i - 1 .. " of a kernel is not what the interpreter gives")
  end
end
local a = mx.random.normal({96, 64}, {key = mx.random.key(1)})
assert(mx.array_equal(mx.matmul(a, mx.eye(64)), a):item(), "a product with the identity is another matrix")
assert(mx.abs(mx.softmax(a, -1):sum(-1) - 1):max():item() < 1e-5, "the rows of softmax do not sum to 1")
local g = mx.grad(function(v) return mx.sum(v * v * v) end)(mx.array({1, 2, 3})):tolist()
assert(g[1] == 3 and g[2] == 12 and g[3] == 27, "the gradient of v^3 is not 3 v^2")
`

// doctor says what works here. Its status is 1 if something is wrong that mlxlua should do.
func (p *program) doctor() int {
	failed := 0
	line := func(what, format string, v ...any) {
		fmt.Fprintf(p.stdout, "%-18s %s\n", what, fmt.Sprintf(format, v...))
	}
	line("program", "%s", versionNumber())
	line("built with", "%s for %s/%s", runtime.Version(), runtime.GOOS, runtime.GOARCH)
	dev, err := tensor.MetalDevice(tensor.DefaultDevice())
	if err != nil {
		line("device", "%s", p.paint(red, err.Error()))
		return 1
	}
	info, memory := dev.Info(), dev.Memory()
	line("device", "%v: %s", tensor.DefaultDevice(), info.Name)
	if info.Host {
		line("kernels run as", "%s", kernelsRunAs(info.Name))
		line("threads", "%d of %d processors", info.Threads, runtime.NumCPU())
	} else {
		line("kernels run as", "%s, on %d multiprocessors", info.Version, info.Threads)
		line("large products", "%s", productsBy(dev))
	}
	line("memory", "%s for arrays at most, of %s that the process may have", bytesText(memory.Limit),
		bytesText(info.Memory))
	if limit := debug.SetMemoryLimit(-1); limit < 1<<60 {
		line("Go's memory", "%s, by GOMEMLIMIT", bytesText(limit))
	}
	err = p.interruptible(func(ctx context.Context) error {
		_, err := p.s.Run(ctx, strings.NewReader(selfCheck), "self-check")
		return err
	})
	var script *luabind.ScriptError
	switch {
	case err == nil:
		line("self-check", "passed: a kernel gives the interpreter's bytes, and sums, products and gradients are right")
	case errors.As(err, &script) && script.Exit == nil:
		failed = 1
		line("self-check", "%s", p.paint(red, "FAILED: "+err.Error()))
	}
	p.doctorTerminal(line)
	for _, name := range []string{"LUA_INIT", "MLXLUA_JIT", "MLXLUA_VALIDATE", "MLXLUA_FUSE", "MLX_DISABLE_COMPILE",
		"MLX_METAL_RETAIN_BOUND_BUFFERS", "NO_COLOR"} {
		if v, ok := os.LookupEnv(name); ok && v != "" {
			line("environment", "%s=%s", name, v)
		}
	}
	return failed
}

// doctorTerminal says what the terminal and the user's folder are good for.
func (p *program) doctorTerminal(line func(what, format string, v ...any)) {
	if isTerminal(p.stdin) && isTerminal(os.Stdout) {
		columns, rows := terminalSize()
		colors := "no colours"
		if p.colors {
			colors = "colours"
		}
		line("terminal", "%s, %d columns, %d rows, %s", os.Getenv("TERM"), columns, rows, colors)
	} else {
		line("terminal", "none: the REPL reads plain lines")
	}
	dir := configFile("")
	if dir == "" {
		line("user's folder", "none: the REPL keeps no history")
		return
	}
	if f, err := os.CreateTemp(dir, ".doctor.*"); err != nil {
		line("user's folder", "%s cannot be written: the REPL keeps no history", dir)
	} else {
		_, _ = f.Close(), os.Remove(f.Name())
		line("user's folder", "%s: history, and init.lua, which the REPL runs first", dir)
	}
}

// kernelsRunAs says of a device's name what runs its kernels, and why nothing quicker does.
func kernelsRunAs(device string) string {
	how := device[strings.LastIndex(device, ", ")+1:]
	how = strings.TrimSpace(how)
	switch {
	case strings.Contains(how, "machine code"):
		return how + ", in executable pages"
	case os.Getenv("MLXLUA_JIT") == "0":
		return how + ", because MLXLUA_JIT is 0"
	case strings.HasSuffix(how, " on this processor)"):
		return how + ", which MLXLUA_JIT asks for"
	case runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" || runtime.GOOS != "linux" && runtime.GOOS != "darwin":
		return how + ": there is no machine code for this system, so that it takes ten times as long and more"
	}
	return how + ": the processor lacks what it takes (AVX2 on amd64), or the system refuses executable pages"
}

// productsBy says what multiplies large matrices on a GPU.
func productsBy(dev *metal.Device) string {
	const n = 4096
	m := metal.Matrix{Lead: n}
	if dev.Offers(metal.MatMul{Element: metal.BFloat16, M: n, N: n, K: n, Batch: 1, A: m, B: m}) {
		return "cublasLt"
	}
	return "kernels of mlxlua's own, which are slow: cublasLt is not installed"
}

// bytesText is a number of bytes with its unit.
func bytesText(n int64) string {
	const giga, mega = 1e9, 1e6
	if n >= giga {
		return fmt.Sprintf("%.1f GB", float64(n)/giga)
	}
	return fmt.Sprintf("%.0f MB", float64(n)/mega)
}

// versionNumber is mlxlua's version.
func versionNumber() string {
	version := "(development)"
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		version = info.Main.Version
	}
	return "mlxlua " + version
}

// versionText is the version, the Lua dialect, and what runs the kernels: device, threads, instruction set.
func versionText() string {
	text := fmt.Sprintf("%s  %s, %s", versionNumber(), "Lua 5.1 (gopher-lua)", mlxlua.DeviceText())
	if runtime.GOOS == "darwin" {
		text += "\n--device metal has never been run on a Mac by mlxlua's makers: docs/metal.md"
	}
	return text
}
