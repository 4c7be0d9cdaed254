package main

import (
	"bytes"
	"context"
	_ "embed" // doctor_ops.lua
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/mlxlua/mlxlua/luabind"
	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/metal/drivers"
	"github.com/mlxlua/mlxlua/metal/drivertest"
	"github.com/mlxlua/mlxlua/tensor"
)

// The doctor looks at a GPU of Apple's in other processes, one for each of its checks, with Metal's validation on: what
// ends a process, or never ends, is a line of the report, and no more.

// partEnv names the check in such a process.
const partEnv = "MLXLUA_DOCTOR_PART"

// reportFile is what the doctor writes for those who make mlxlua.
const reportFile = "mlxlua-metal-report.txt"

//go:embed doctor_ops.lua
var doctorOps string

// validation is what Metal and Objective-C read when they are loaded.
var validation = []string{"MTL_DEBUG_LAYER=1", "MTL_DEBUG_LAYER_ERROR_MODE=assert",
	"MTL_DEBUG_LAYER_WARNING_MODE=nslog", "MTL_SHADER_VALIDATION=1", "MTL_SHADER_VALIDATION_REPORT_TO_STDERR=1",
	"OBJC_DEBUG_MISSING_POOLS=YES"}

// check is one of the doctor's.
type check struct {
	name  string
	limit time.Duration
	quick bool // without validation, which takes its time
	run   func(open openDriver, out io.Writer) error
}

// openDriver opens the device.
type openDriver func() (metal.Driver, error)

// deviceMark begins the line that says which device it is.
const deviceMark = "device\t"

// metalChecks are the doctor's checks: that it opens, the suite of all drivers, operations against the processor's, and
// how quick they are.
func metalChecks() []check {
	all := []check{{"open", 30 * time.Second, false, func(open openDriver, out io.Writer) error {
		d, err := open()
		if err != nil {
			return err
		}
		i := d.Info()
		fmt.Fprintf(out, "%s%s\t%s\n", deviceMark, i.Name, i.Version)
		fmt.Fprintf(out, "memory %d, largest buffer %d\n", i.Memory, i.Limits.MaxBufferBytes)
		return d.Close()
	}}}
	for _, name := range drivertest.Names() {
		all = append(all, check{"driver: " + name, 2 * time.Minute, false, func(open openDriver, _ io.Writer) error {
			return drivertest.Check(name, open)
		}})
	}
	script := func(text string) func(openDriver, io.Writer) error {
		return func(open openDriver, out io.Writer) error { return runOn(open, text, out) }
	}
	return append(all, check{"operations", 10 * time.Minute, false, script(doctorOps)},
		check{"operations, without validation", 5 * time.Minute, true, script(doctorOps)},
		check{"speed", 5 * time.Minute, true, speed})
}

// speeds are what the doctor measures: a script that gives a function, and what one call moves or computes.
var speeds = []struct {
	name, script string
	bytes, flops float64
}{
	{"a + b, 64 MiB each", `local a, b = mx.ones({16777216}), mx.ones({16777216})
		return function() return a + b end`, 3 << 26, 0},
	{"a fused gelu(a * b + c)", `local a, b, c = mx.ones({16777216}), mx.ones({16777216}), mx.ones({16777216})
		local f = mx.compile(function() return mx.nn.gelu(a * b + c) end) return f`, 4 << 26, 0},
	{"sum of rows of 4,096", `local a = mx.ones({4096, 4096})
		return function() return mx.sum(a, -1) end`, 1 << 26, 0},
	{"softmax of rows of 4,096", `local a = mx.ones({4096, 4096})
		return function() return mx.softmax(a, -1) end`, 2 << 26, 0},
	{"matmul of 2,048, float32", `local a = mx.ones({2048, 2048})
		return function() return mx.matmul(a, a) end`, 0, 2 << 33},
	{"matmul of 2,048, float16", `local a = mx.ones({2048, 2048}, mx.float16)
		return function() return mx.matmul(a, a) end`, 0, 2 << 33},
	{"one row by 4,096 x 4,096, 4 bits", `local w, s, b = mx.quantize(mx.ones({4096, 4096}), {bits = 4})
		local x = mx.ones({1, 4096}) return function() return mx.quantized_matmul(x, w, s, b, {bits = 4}) end`, 1 << 23, 0},
	{"200 kernels, one after another", `local a = mx.ones({1000})
		return function() local b = a for _ = 1, 200 do b = mx.sort(b) end return b end`, 0, 0},
}

// speed prints the shortest of several times of each.
func speed(open openDriver, out io.Writer) error {
	return withDevice(open, out, func(s *luabind.State) error {
		for _, x := range speeds {
			run := func(text string) error {
				_, err := s.Run(context.Background(), strings.NewReader(text), "speed")
				return err
			}
			if err := run("f = (function() " + x.script + " end)() mx.eval(f()) mx.synchronize()"); err != nil {
				return fmt.Errorf("%s: %w", x.name, err)
			}
			best := time.Duration(1 << 62)
			for range 10 {
				begun := time.Now()
				if err := run("mx.eval(f()) mx.synchronize()"); err != nil {
					return fmt.Errorf("%s: %w", x.name, err)
				}
				best = min(best, time.Since(begun))
			}
			rate := ""
			switch took := best.Seconds(); {
			case x.bytes > 0:
				rate = fmt.Sprintf("%.0f GB/s", x.bytes/took/1e9)
			case x.flops > 0:
				rate = fmt.Sprintf("%.2f TFLOP/s", x.flops/took/1e12)
			}
			fmt.Fprintf(out, "  %-34s %10v  %s\n", x.name, best.Round(time.Microsecond), rate)
		}
		return nil
	})
}

// runOn runs a script on the device, beside the processor.
func runOn(open openDriver, text string, out io.Writer) error {
	return withDevice(open, out, func(s *luabind.State) error {
		_, err := s.Run(context.Background(), strings.NewReader(text), "doctor")
		return err
	})
}

// withDevice gives f a state whose device is the default one, beside the processor.
func withDevice(open openDriver, out io.Writer, f func(*luabind.State) error) error {
	drv, err := open()
	if err != nil {
		return err
	}
	dev, err := metal.NewDevice(drv, metal.DeviceOptions{})
	if err != nil {
		return err
	}
	cpu, err := drivers.Open(drivers.Options{Name: "cpu"})
	if err != nil {
		return err
	}
	tensor.SetDevice(dev)
	tensor.SetDevice(cpu)
	s := luabind.New(luabind.Options{Libraries: true, Stdout: out, Stderr: out})
	defer s.Close()
	return f(s)
}

// runCheck runs one check in this process. Its status is 0 if that passes.
func runCheck(name string, open openDriver, stdout io.Writer) int {
	for _, c := range metalChecks() {
		if c.name == name {
			if err := c.run(open, stdout); err != nil {
				fmt.Fprintln(stdout, err)
				return 1
			}
			return 0
		}
	}
	fmt.Fprintf(stdout, "there is no check %q\n", name)
	return 1
}

// openMetal opens the GPU.
func openMetal() (metal.Driver, error) { return drivers.Driver(drivers.Options{Name: "metal"}) }

// thisProgram is a process of this program that makes one check.
func thisProgram(ctx context.Context, name string) (*exec.Cmd, error) {
	path, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := exec.CommandContext(ctx, path, "doctor", "--device", "metal")
	c.Env = append(os.Environ(), partEnv+"="+name)
	return c, nil
}

// doctorMetal makes all checks, each in a process of its own, and writes a report. If all pass, "auto" takes the device
// from then on.
func doctorMetal(stdout io.Writer, process func(context.Context, string) (*exec.Cmd, error), file string) int {
	if name := os.Getenv(partEnv); name != "" {
		return runCheck(name, openMetal, stdout)
	}
	return doctorAll(stdout, metalChecks(), process, file, drivers.Trust, drivers.Distrust)
}

// doctorAll is doctorMetal with what it makes.
func doctorAll(stdout io.Writer, checks []check, process func(context.Context, string) (*exec.Cmd, error), file string,
	trust func(metal.Info) error, distrust func() error) int {
	var report bytes.Buffer
	both := io.MultiWriter(stdout, &report)
	fmt.Fprintf(both, "%s, built with %s for %s/%s\n", versionNumber(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	failed := 0
	var info metal.Info
	for _, c := range checks {
		begun := time.Now()
		out, err := inProcess(c, process)
		said := "passed"
		if err != nil {
			failed++
			said = "FAILED: " + err.Error()
		}
		fmt.Fprintf(both, "%-40s %6.1f s  %s\n", c.name, time.Since(begun).Seconds(), said)
		for line := range strings.Lines(out) {
			if name, ok := strings.CutPrefix(line, deviceMark); ok {
				info.Name, info.Version, _ = strings.Cut(strings.TrimSpace(name), "\t")
			}
			fmt.Fprintf(&report, "    %s\n", strings.TrimRight(line, "\n"))
			if err != nil || c.name == "open" || c.name == "speed" {
				fmt.Fprintf(stdout, "    %s\n", strings.TrimRight(line, "\n"))
			}
		}
		if c.name == "open" && err != nil {
			break // nothing else can work
		}
	}
	if err := os.WriteFile(file, report.Bytes(), 0o600); err != nil {
		fmt.Fprintf(stdout, "the report cannot be written: %v\n", err)
	} else {
		fmt.Fprintf(stdout, "\nThe report is in %s. mlxlua's makers have never had such a device: please send it in.\n", file)
	}
	if failed > 0 {
		if err := distrust(); err != nil {
			fmt.Fprintln(stdout, err)
		}
		fmt.Fprintf(stdout, "%d checks FAILED\n", failed)
		return 1
	}
	if err := trust(info); err != nil {
		fmt.Fprintf(stdout, "that the checks have passed cannot be noted: %v\n", err)
		return 1
	}
	fmt.Fprintln(stdout, "all checks passed: --device auto takes the GPU from now on")
	return 0
}

// inProcess makes a check in a process of its own, and gives what that wrote.
func inProcess(c check, process func(context.Context, string) (*exec.Cmd, error)) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), c.limit)
	defer cancel()
	child, err := process(ctx, c.name)
	if err != nil {
		return "", err
	}
	if !c.quick {
		child.Env = append(child.Env, validation...)
	}
	child.WaitDelay = time.Second // who has its output may outlive it
	out, err := child.CombinedOutput()
	var ended *exec.ExitError
	switch {
	case ctx.Err() != nil:
		err = fmt.Errorf("not done after %v", c.limit)
	case errors.As(err, &ended) && ended.ExitCode() == 1:
		err = errors.New("it says")
	}
	return string(out), err
}
