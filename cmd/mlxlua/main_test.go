package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/cmd/mlxlua/edit"
	"github.com/mlxlua/mlxlua/luabind"
	"github.com/mlxlua/mlxlua/tensor"
)

// Arrays that a look misses are poisoned: a script that uses one fails.
func init() { tensor.Poison(true) }

// result is what a run of the program gave.
type result struct {
	status      int
	out, stderr string
}

// runProgram runs the program on a standard input given as text.
func runProgram(t *testing.T, stdin string, argv ...string) result {
	t.Helper()
	path := filepath.Join(t.TempDir(), "stdin")
	require.NoError(t, os.WriteFile(path, []byte(stdin), 0o600))
	in, err := os.Open(path)
	require.NoError(t, err)
	defer in.Close()
	var out, errs bytes.Buffer
	status := run(append([]string{"mlxlua"}, argv...), in, &out, &errs)
	return result{status, out.String(), errs.String()}
}

// script writes a script file.
func script(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "script.lua")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// SIGTERM ends a script that catches errors, and one that writes a file: of which nothing stays but what is whole.
func TestTermination(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no signals to oneself")
	}
	t.Setenv("LUA_INIT", "")
	folder := t.TempDir()
	for _, source := range []string{
		`print("go") while true do pcall(function() while true do end end) end`,
		`local x, file = mx.ones({1e7}), [[` + filepath.Join(folder, "x.npy") + `]] mx.eval(x) print("go")
			while true do mx.save(file, x) end`,
	} {
		var errs bytes.Buffer
		self, err := os.FindProcess(os.Getpid())
		require.NoError(t, err)
		terminate := func() { _ = self.Signal(syscall.SIGTERM) }
		out := &printed{when: "go\n", do: func() { time.AfterFunc(20*time.Millisecond, terminate) }}
		require.Equal(t, 143, run([]string{"mlxlua", "-e", source}, os.Stdin, out, &errs))
		require.Empty(t, errs.String())
	}
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	for _, e := range entries {
		require.Equal(t, "x.npy", e.Name())
	}
}

// help finds functions by a part of their names, also where the REPL is asked for a name that has no value.
func TestHelpFinds(t *testing.T) {
	t.Setenv("LUA_INIT", "")
	for entry, want := range map[string]string{
		"?softmax":                          "mx.softmax(a, axis=nil, precise=false)",
		"?segmen":                           "mx.segmented_mm(",
		`help("segmen")`:                    "mx.segmented_mm(",
		"?nosuch":                           `there is no "nosuch"; help(mx) lists what there is`,
		"x = 3\n?x":                         "3",
		"?print":                            "a function of the script",
		`help("s")`:                         "others",
		"help(nil)":                         "nil",
		"?mx.nosuch":                        "there is no mx.nosuch",
		"?lm.load":                          "lm.load(name, options)\nload is the model of a directory",
		"lm.load?":                          "lm.load(name, options)\n",
		"?lm":                               "lm.generate(model, prompt, options)\n",
		"?lm.Session":                       "session:answer(prompt, options)\n",
		"?nn.Linear:to":                     "there is no",
		"x = mx.ones(2)\n?x:sum":            "mx.sum(a, ",
		"lm = require('lm')\nhelp(lm.open)": "open is a Session",
	} {
		got := runProgram(t, entry+"\n", "-i")
		require.Contains(t, got.out+got.stderr, want, entry)
	}
}

// The options do what those of the standard lua program do.
func TestOptions(t *testing.T) {
	t.Setenv("LUA_INIT", "")
	echo := script(t, "print(arg[0] ~= nil, #arg, arg[1], arg[2], ...)")
	for _, c := range []struct {
		name  string
		stdin string
		argv  []string
		want  result
	}{
		{"-e", "", []string{"-e", "print(1 + 1)"}, result{0, "2\n", ""}},
		{"-e attached", "", []string{"-eprint(3)"}, result{0, "3\n", ""}},
		{"two -e share globals", "", []string{"-e", "a = 1", "-e", "print(a)"}, result{0, "1\n", ""}},
		{"arguments", "", []string{echo, "x", "-e"}, result{0, "true\t2\tx\t-e\tx\t-e\n", ""}},
		{"--", "", []string{"--", echo, "y"}, result{0, "true\t1\ty\tnil\ty\n", ""}},
		{"- is standard input", "print(...)", []string{"-", "a", "b"}, result{0, "a\tb\n", ""}},
		{"a pipe without arguments is a script", "print('piped')", nil, result{0, "piped\n", ""}},
		{"-l requires", "", []string{"-l", "mx", "-e", "print(mx.exp ~= nil)"}, result{0, "true\n", ""}},
		{"-e before the script", "", []string{"-e", "g = 'set'", script(t, "print(g, arg[-1])")},
			result{0, "set\tg = 'set'\n", ""}},
		{"os.exit", "", []string{"-e", "pcall(os.exit, 7) print('no')"}, result{7, "", ""}},
		{"os.exit(true)", "", []string{"-e", "os.exit(true)"}, result{0, "", ""}},
		{"os.exit(false)", "", []string{"-e", "os.exit(false)"}, result{1, "", ""}},
		{"os.exit in a coroutine", "", []string{"-e", "coroutine.wrap(function() os.exit(4) end)()"}, result{4, "", ""}},
		{"os.exit in a transform", "", []string{"-e", "mx.grad(function(x) os.exit(5) end)(mx.array(1))"}, result{5, "", ""}},
		{"shebang", "", []string{script(t, "#!/usr/bin/env mlxlua\nprint('ran')\n")}, result{0, "ran\n", ""}},
		{"seed", "", []string{"--seed", "3", "-e",
			"local a = mx.random.uniform():item() mx.random.seed(3) print(a == mx.random.uniform():item())"},
			result{0, "true\n", ""}},
		{"--seed=N", "", []string{"--seed=18446744073709551615", "-e", "print(1)"}, result{0, "1\n", ""}},
		{"an array as a condition", "", []string{"-e", "if mx.any(mx.ones(2)) then print(1) end"},
			result{0, "1\n", "warning: " +
				"(command line):1: the condition is an array bool (), and Lua takes any array for true; " +
				"item() gives its value, as in mx.any(x):item()\n"}},
		{"-E", "", []string{"-E", "-e", "print(from_init)"}, result{0, "nil\n", ""}},
		{"--device cpu", "", []string{"--device", "cpu", "-e", "print(mx.default_device())"},
			result{0, "Device(cpu, 0)\n", ""}},
	} {
		t.Run(c.name, func(t *testing.T) { require.Equal(t, c.want, runProgram(t, c.stdin, c.argv...)) })
	}
}

// What goes wrong is told on standard error, and the status is 1.
func TestFailures(t *testing.T) {
	t.Setenv("LUA_INIT", "")
	bad := script(t, "#!shebang\nlocal function f() error('broken') end\nf()\n")
	for _, c := range []struct {
		name string
		argv []string
		want []string
	}{
		{"error", []string{bad}, []string{"mlxlua: ", "script.lua:2: broken", "stack traceback:", "script.lua:3:"}},
		{"error object", []string{"-e", "mx.zeros({2}) .. mx.zeros({3}) + mx.zeros({2})"}, []string{"mlxlua: "}},
		{"op", []string{"-e", "local x = mx.zeros({2}) + mx.zeros({3})"},
			[]string{"(command line):1: [add] shapes (2,) and (3,) cannot be broadcast", "stack traceback:"}},
		{"strict", []string{"--strict", "-e", "if mx.any(mx.ones(2)) then print(1) end"},
			[]string{"(command line):1: [condition] the condition is an array bool ()"}},
		{"syntax", []string{"-e", "x ="}, []string{"mlxlua: ", "(command line)"}},
		{"no such script", []string{"/no/such/file.lua"}, []string{"cannot open /no/such/file.lua", "no such file"}},
		{"no such module", []string{"-l", "nosuchmodule"}, []string{"module 'nosuchmodule' not found"}},
		{"unknown option", []string{"-z"}, []string{"unrecognized option '-z'\n"}},
		{"missing argument", []string{"-e"}, []string{"-e needs an argument\n"}},
		{"bad seed", []string{"--seed", "x"}, []string{"--seed x: want an integer"}},
		{"no such device", []string{"--device", "vulkan", "-e", "print(1)"}, []string{"vulkan", "cuda", "cpu"}},
		{"no such GPU", []string{"--device", "cuda:77", "-e", "print(1)"}, []string{"no device could be opened: cuda: "}},
		{"a table is an error", []string{"-e", "error({})"}, []string{"mlxlua: "}},
		{"nil is an error", []string{"-e", "error(nil)"}, []string{"mlxlua: "}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := runProgram(t, "", c.argv...)
			require.Equal(t, 1, got.status)
			require.Empty(t, got.out)
			for _, w := range c.want {
				require.Contains(t, got.stderr, w)
			}
		})
	}
}

// What is wrong with an option takes three lines at most: what it is, the option that was probably meant, where all
// stand.
func TestWrongOptions(t *testing.T) {
	t.Setenv("LUA_INIT", "")
	const all = "mlxlua --help lists the options\n"
	for _, c := range []struct {
		argv []string
		want string
	}{
		{[]string{"--sed", "1"}, "mlxlua: unrecognized option '--sed'\nmlxlua: did you mean --seed?\n" + all},
		{[]string{"--maxmemory=1M"},
			"mlxlua: unrecognized option '--maxmemory=1M'\nmlxlua: did you mean --max-memory?\n" + all},
		{[]string{"--sandbox=yes"}, "mlxlua: unrecognized option '--sandbox=yes'\n" + all},
		{[]string{"-z"}, "mlxlua: unrecognized option '-z'\n" + all},
		{[]string{"--nothing-like-it"}, "mlxlua: unrecognized option '--nothing-like-it'\n" + all},
		{[]string{"--seed"}, "mlxlua: --seed needs an argument\n" + all},
		{[]string{"--max-time", "x"}, "mlxlua: --max-time x: want a time such as 500ms or 2.5s\n" + all},
		{[]string{"new"}, "mlxlua: new needs the name of a file to write\n" + all},
	} {
		require.Equal(t, result{1, "", c.want}, runProgram(t, "", c.argv...))
	}
	require.Contains(t, optionNames(), "--check-nan")
}

// A standard input that is no terminal is a script: an empty one, as that of lua, does nothing.
func TestStandardInputWithoutATerminal(t *testing.T) {
	t.Setenv("LUA_INIT", "")
	null, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer null.Close()
	for _, argv := range [][]string{{"mlxlua"}, {"mlxlua", "-"}} {
		var out, errs bytes.Buffer
		require.Equal(t, 0, run(argv, null, &out, &errs), errs.String())
		require.Empty(t, out.String()+errs.String())
	}
	read, write, err := os.Pipe()
	require.NoError(t, err)
	defer read.Close()
	_, err = write.WriteString("print(1 + 1)")
	require.NoError(t, err)
	require.NoError(t, write.Close())
	var out, errs bytes.Buffer
	require.Equal(t, 0, run([]string{"mlxlua"}, read, &out, &errs))
	require.Equal(t, "2\n", out.String()+errs.String())
}

// LUA_INIT runs first, as text or as a file.
func TestInit(t *testing.T) {
	t.Setenv("LUA_INIT", "greeting = 'hello'")
	require.Equal(t, result{0, "hello\n", ""}, runProgram(t, "", "-e", "print(greeting)"))
	t.Setenv("LUA_INIT", "@"+script(t, "greeting = 'from a file'"))
	require.Equal(t, result{0, "from a file\n", ""}, runProgram(t, "", "-e", "print(greeting)"))
	t.Setenv("LUA_INIT", "error('early')")
	got := runProgram(t, "", "-e", "print(1)")
	require.Equal(t, 1, got.status)
	require.Contains(t, got.stderr, "LUA_INIT:1: early")
}

func TestHelpAndVersion(t *testing.T) {
	t.Setenv("LUA_INIT", "")
	require.Equal(t, result{0, usage, ""}, runProgram(t, "", "--help"))
	for _, flag := range []string{"-v", "--version"} {
		got := runProgram(t, "", flag)
		require.Equal(t, 0, got.status)
		require.Regexp(t, `^mlxlua .* Lua 5\.1 .*Device\(cpu, 0\)`, got.out)
	}
	got := runProgram(t, "", "-v", "-e", "print('then')")
	require.Contains(t, got.out, "\nthen\n")
}

// The REPL on a pipe: values print by themselves, an input goes on until it parses, errors keep the session.
func TestREPL(t *testing.T) {
	t.Setenv("LUA_INIT", "")
	got := runProgram(t, strings.Join([]string{
		"1 + 1", "x = mx.arange(3)", "x, x.shape", "= x + 1", "for i = 1, 2 do", "print(i)", "end",
		"function f(a)", "  return a * 2", "end", "f(x)", "mx.zeros({2}) + mx.zeros({3})", "error('oops')", "x +* 2",
		"x:sum()", "", "-- a comment", "nil", "s = [[two", "lines]]", "s", "help(mx.exp)", "os.exit(9)",
		"print('never')"}, "\n"), "-i")
	require.Equal(t, 9, got.status)
	require.Contains(t, got.out, "2\narray([0, 1, 2], dtype=int32)\t(3,)\narray([1, 2, 3], dtype=int32)\n1\n2\n"+
		"array([0, 2, 4], dtype=int32)\narray(3, dtype=int32)\nnil\ntwo\nlines\nmx.exp(a)")
	require.NotContains(t, got.out, "never")
	for _, want := range []string{"[add] shapes (2,) and (3,)", "stdin:1: oops", "parse error"} {
		require.Contains(t, got.stderr, want)
	}
	got = runProgram(t, strings.Join([]string{
		"{mx.arange(2), 'b', k = {1, ['a b'] = 2.5}, [4] = true}", "t = {}; t.t = t", "t", "mx.fast", "{}", "1 +", "2",
	}, "\n"), "-i")
	require.Equal(t, result{0, "{array([0, 1], dtype=int32), \"b\", [4] = true, k = {1, [\"a b\"] = 2.5}}\n" +
		"{t = {...}}\nmodule mx.fast: help(mx.fast) lists its functions\n{}\n3\n\n", ""}, got)
	got = runProgram(t, "t = {}; for i = 1, 22 do t[i] = i end\nt\nhelp(mx.ones(2))\nhelp(mx)\n", "-i")
	require.Contains(t, got.out, " 19, 20, ... 2 more}\nan array float32 (2,)\nProperties: shape, dtype, ")
	require.Contains(t, got.out, "Modules, each with a help of its own: ")
	got = runProgram(t, "exit\nquit()\nquit = 1\nquit\nfunction exit() error('own') end\nexit()\n", "-i")
	require.Equal(t, "Ctrl-D ends the session\n1\n\n", got.out)
	require.Contains(t, got.stderr, "Ctrl-D ends the session\n")
	require.Contains(t, got.stderr, "own")
	got = runProgram(t, "y\n", "-i", script(t, "y = 'kept'"))
	require.Equal(t, result{0, "kept\n\n", ""}, got)
	got = runProgram(t, "1 + 1\n", "-i", script(t, "error('first')"))
	require.Contains(t, got.stderr, "first")
	require.Contains(t, got.out, "2\n", "as in lua, -i goes on after an error")
}

// A string that a line leaves open cannot go on in the next one; what is open at the end of the input is told.
func TestREPLUnfinishedInputs(t *testing.T) {
	t.Setenv("LUA_INIT", "")
	got := runProgram(t, "x = \"abc\n1 + 1\n2 + 2\n", "-i")
	require.Equal(t, 0, got.status)
	require.Equal(t, "stdin:1: unterminated string near '\"abc'\n  x = \"abc\n      ^^^^\n", got.stderr)
	require.Equal(t, "2\n4\n\n", got.out)
	require.Equal(t, "a\nb\n\n", runProgram(t, "\"a\\\nb\"\n", "-i").out, "a backslash continues a string")
	require.Equal(t, result{0, "\n", "stdin: syntax error at EOF\n"}, runProgram(t, "f(\n", "-i"))
	require.Equal(t, "stdin:2: unterminated multiline string near '[[abc'\n  x = [[abc\n      ^^^^^\n",
		runProgram(t, "do\nx = [[abc\ny = 1\n", "-i").stderr, "it could go on, until the input ended")
	require.Equal(t, "100000\n\n", runProgram(t, "#\""+strings.Repeat("a", 100000)+"\"", "-i").out)
}

// keys is a REPL's input that a test writes.
type keys struct {
	lines []string
	at    int
	kept  []string
}

func (k *keys) next(_ string, ends func(string) bool) (string, error) {
	var entry string
	for {
		if k.at == len(k.lines) {
			return entry, io.EOF
		}
		k.at++
		line := k.lines[k.at-1]
		if line == "^C" {
			return "", edit.ErrInterrupted
		}
		if entry += line; ends(entry) {
			return entry, nil
		}
		entry += "\n"
	}
}
func (k *keys) remember(input string) { k.kept = append(k.kept, input) }

// printed is an output that calls a function when a text has been printed.
type printed struct {
	mu   sync.Mutex
	buf  bytes.Buffer
	when string
	do   func()
}

func (p *printed) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n, err := p.buf.Write(b)
	if p.do != nil && strings.Contains(p.buf.String(), p.when) {
		do := p.do
		p.do = nil
		do()
	}
	return n, err
}

var errNoSignal = errors.New("this system has no interrupt that a process can send itself")

// interruptSelf is Ctrl-C.
func interruptSelf() error {
	p, err := os.FindProcess(os.Getpid())
	if err != nil {
		return err
	}
	if err := p.Signal(os.Interrupt); err != nil {
		return errNoSignal
	}
	return nil
}

// Ctrl-C stops an endless loop, a library function, and an endless kernel; the session and its variables live on. An
// input that is not complete is dropped.
func TestInterrupt(t *testing.T) {
	t.Setenv("LUA_INIT", "")
	kernel := `k = mx.fast.metal_kernel{name = "spin", input_names = {"x"}, output_names = {"out"},
		source = "uint i = thread_position_in_grid.x; float v = x[i]; while (v < 1.0f) { v = v * 0.5f; } out[i] = v;"}`
	for name, endless := range map[string]string{
		"loop":          "print('go') while true do end",
		"pcall":         "print('go') while true do pcall(function() while true do end end) end",
		"coroutine":     "print('go') coroutine.wrap(function() while true do end end)()",
		"error's value": "error({setmetatable({1}, {__tostring = function() print('go') while true do end end}), a = 1})",
		"pattern":       "print('go') print((('a'):rep(40)):find(('a*'):rep(40) .. 'b'))",
		"kernel": "print('go') mx.eval(k{inputs = {mx.zeros({64})}, grid = {64, 1, 1}, threadgroup = {32, 1, 1}, " +
			"output_shapes = {{64}}, output_dtypes = {mx.float32}})",
	} {
		t.Run(name, func(t *testing.T) {
			var failed error
			out := &printed{when: "go\n", do: func() { failed = interruptSelf() }}
			var errs bytes.Buffer
			p, err := open(&options{device: "cpu", interactive: true}, []string{"mlxlua"}, os.Stdin, out, &errs)
			require.NoError(t, err)
			defer p.s.Close()
			in := &keys{lines: []string{kernel, "n = 41", endless, "for i = 1, 2 do", "^C", "n + 1", "mx.ones({2}) + 1"}}
			require.Equal(t, 0, p.loop(in))
			if failed != nil {
				t.Skip(failed)
			}
			require.Contains(t, errs.String(), "interrupted: Ctrl-C")
			require.Equal(t, "go\n42\narray([2, 2], dtype=float32)\n\n", out.buf.String())
			require.Equal(t, []string{kernel, "n = 41", endless, "n + 1", "mx.ones({2}) + 1"}, in.kept)
		})
	}
}

// A coroutine that was made in one input goes on in the next.
func TestCoroutineAcrossInputs(t *testing.T) {
	t.Setenv("LUA_INIT", "")
	got := runProgram(t, "g = coroutine.wrap(function() for i = 1, 3 do coroutine.yield(i) end end)\ng()\ng()\n", "-i")
	require.Equal(t, result{0, "1\n2\n\n", ""}, got)
}

// Completion offers globals, members of modules, methods and properties of arrays, and keywords of functions.
func TestCompletion(t *testing.T) {
	p, err := open(&options{device: "cpu"}, []string{"mlxlua"}, os.Stdin, io.Discard, io.Discard)
	require.NoError(t, err)
	defer p.s.Close()
	_, err = p.s.Run(t.Context(), strings.NewReader(`xs = mx.ones({2}) t = {x = xs, n = {deep = 1}}
		k = mx.fast.metal_kernel{name = "k", input_names = {"a"}, output_names = {"o"}, source = "o[0] = a[0];"}`), "test")
	require.NoError(t, err)
	for typed, want := range map[string][]string{
		"print(mx.soft": {"mx.softmax"}, "mx.random.unif": {"mx.random.uniform"}, "xs:resh": {"xs:reshape"},
		"coro": {"coroutine"}, "xs.dty": {"xs.dtype"}, "xs:dty": nil, "t.x:resh": {"t.x:reshape"}, "t.n.d": {"t.n.deep"},
		"nosuch.thing": nil, "x = 1 +": nil,
		"mx.softmax{ax": {"axis = "}, "mx.sum(xs, {keep": {"keepdims = "}, "mx.sum(xs, {axis = 0, ke": {"keepdims = "},
		"xs:sum({a": {"axis = "}, "mx.softmax{axis = 1, ax": nil, "mx.softmax{axis = cor": {"coroutine"},
		"mx.sum(xs, {":             {"a = ", "axis = ", "keepdims = ", "stream = "},
		"xs:sum{":                  {"axis = ", "keepdims = ", "stream = "},
		"k{inputs = {xs}, output_": {"output_dtypes = ", "output_shapes = "},
		"mx.nn.Linear{in":          {"input_dims = "}, "print({a": nil, "f('mx.softmax{', {ax": nil,
		"for i = 1, 2 do\n  mx.cumsum(xs, {\n    rev": {"reverse = "},
	} {
		got, n := luabind.Completions(p.s, typed)
		if len(want) == 0 && typed != "nosuch.thing" && typed != "x = 1 +" {
			for _, w := range got {
				require.NotContains(t, w, " = ", typed)
			}
			continue
		}
		if typed == "x = 1 +" {
			require.Contains(t, got, "mx")
			continue
		}
		require.Equal(t, want, got, typed)
		if len(got) > 0 {
			require.True(t, strings.HasPrefix(got[0], typed[len(typed)-n:]), typed)
		}
	}
}

// Help, times, and what a session knows of itself.
func TestREPLCommands(t *testing.T) {
	t.Setenv("LUA_INIT", "")
	session := func(lines ...string) result { return runProgram(t, strings.Join(lines, "\n")+"\n", "-i") }
	for _, ask := range []string{"?mx.softmax", "mx.softmax?", "? mx.softmax", "help(mx.softmax)"} {
		require.Contains(t, session(ask).out, "mx.softmax(a, axis=nil, precise=false)\nsoftmax is exp", ask)
	}
	for _, ask := range []string{"help", "?", "help()"} {
		require.Contains(t, session(ask).out, "help(mx) lists the functions of mx", ask)
	}
	require.Equal(t, "function mx.exp(a)\n\n", session("mx.exp").out)
	require.Regexp(t, `^array\(\[2, 2\], dtype=float32\)\ntook [0-9.]+ (us|ms|s)\n\n$`, session("time mx.ones(2) * 2").out)
	require.Regexp(t, `^took [0-9.]+ (us|ms|s)\n\n$`, session("time for i = 1, 3 do", "local x = i", "end").out)
	require.Equal(t, "7\n\n", session("time = 7", "time").out, "it is a name, too")
	require.Equal(t, "5\n6\n\n", session("2 + 3", "ans + 1", "ans;").out)
	require.Equal(t, "no global was set in this session\nn                number 3\n"+
		"x                array float32 (2, 3), 24 B\n\n",
		session("who()", "x = mx.ones({2, 3}); n = 3", "who()").out)
	require.Contains(t, session("mx.zeros({30, 40})").out, "dtype=float32)  shape (30, 40)\n")
	require.Equal(t, "{a = array float32 (30, 40), b = array([1, 1], dtype=float32)}\n\n",
		session("{a = mx.zeros({30, 40}), b = mx.ones(2)}").out)
	require.Equal(t, "float32 (5,), 5 elements, 20 B\nmin 1, max 4, mean 2.33333, std 1.24722 of the finite ones; 1 NaN, "+
		"1 infinite\nint32 (3,), 3 elements, 12 B\nmin 0, max 2, mean 1, std 0.816497\n\n",
		session("describe(mx.array({1, 2, 4, mx.nan, -mx.inf}))", "describe(mx.arange(3))").out)
	require.Equal(t, "(error object is a table value): {code = 5}\n", session("error({code = 5})").stderr)
	require.Equal(t, "(error object is a table value): {1, x = 2}\n", session("error({1, x = 2})").stderr)
	require.Equal(t, "(error object is a table value), which cannot be shown: no\n",
		session("error({setmetatable({}, {__tostring = function() error('no', 0) end}), x = 2})").stderr)
	require.Contains(t, session("describe(3)").stderr, "[describe] a is the number 3, want an array")
}

// Errors show their line, and where in it.
func TestExcerpts(t *testing.T) {
	t.Setenv("LUA_INIT", "")
	for entry, want := range map[string]string{
		"local x = = 2":                       "  local x = = 2\n            ^\n",
		"print('é') x x":                      "  print('é') x x\n               ^\n",
		"local y = mx.softmax(mx.ones(2), 7)": "  local y = mx.softmax(mx.ones(2), 7)\n               ^^^^^^^\n",
		"do\nlocal z = 1\n\terror('x')\nend":  "  \terror('x')\n",
		"error('one line')":                   "",
	} {
		got := runProgram(t, entry+"\n", "-i").stderr
		message, rest, _ := strings.Cut(got, "\n")
		require.NotEmpty(t, message)
		require.NotContains(t, got, "\x1b", "what is no terminal gets no colours")
		require.Equal(t, want, rest, entry)
	}
	path := script(t, "local x = mx.ones(2)\nlocal y = mx.reshape(x, {3})\n")
	require.Contains(t, runProgram(t, "", path).stderr,
		"  local y = mx.reshape(x, {3})\n               ^^^^^^^\nstack traceback:")
}

// The doctor checks what it says; what it says of an executor is the device's own word.
func TestDoctor(t *testing.T) {
	t.Setenv("LUA_INIT", "")
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	got := runProgram(t, "", "doctor")
	require.Equal(t, 0, got.status, got.stderr)
	for _, want := range []string{"program            mlxlua ", "device             Device(cpu, 0): ", "kernels run as ",
		"threads ", "memory ", "self-check         passed: ", "terminal           none", "history, and init.lua"} {
		require.Contains(t, got.out, want)
	}
	got = runProgram(t, "", "doctor", "--device", "cpu")
	require.Equal(t, 0, got.status, got.stderr)
	require.Contains(t, got.out, "device             Device(cpu, 0): ")
	got = runProgram(t, "", "doctor", "--quiet")
	require.NotZero(t, got.status)
	require.NotEmpty(t, got.stderr)
	require.Equal(t, "AVX2 machine code, in executable pages", kernelsRunAs("Some CPU, 4 threads, AVX2 machine code"))
	t.Setenv("MLXLUA_JIT", "0")
	require.Equal(t, "interpreter, because MLXLUA_JIT is 0", kernelsRunAs("Some CPU, 4 threads, interpreter"))
	t.Setenv("MLXLUA_JIT", "neon")
	require.Equal(t, "interpreter (no NEON on this processor), which MLXLUA_JIT asks for",
		kernelsRunAs("Some CPU, 4 threads, interpreter (no NEON on this processor)"))
}

// Each row of the benchmark runs; here those that are small.
func TestBench(t *testing.T) {
	t.Setenv("LUA_INIT", "")
	got := runProgram(t, "", "bench", "matmul 256", "4 bits, 1 x 4096 x 4096")
	require.Equal(t, 0, got.status, got.stderr)
	require.Regexp(t, `(?m)^threads +1 .*GFLOP/s\nmatmul 256 +\d`, got.out)
	require.Regexp(t, `(?m)^4 bits, 1 x 4096 x 4096 +\d`, got.out)
	require.NotContains(t, got.out, "decode")
	got = runProgram(t, "", "bench", "matmul 257")
	require.Equal(t, 1, got.status)
	require.Contains(t, got.stderr, `there is no row "matmul 257"`)
}

// A broken device fails the check: here a function of mx that it uses is another one.
func TestDoctorFinds(t *testing.T) {
	for broken, want := range map[string]string{
		"local real = mx.softmax mx.softmax = function(...) return real(...) * 1.001 end": "the rows of softmax",
		"mx.matmul = function(a) return a + 1 end":                                        "a product with the identity",
		"mx.grad = function(f) return function(x) return x end end":                       "the gradient of v^3",
		`local n, real = 0, mx.fast.metal_kernel
		mx.fast.metal_kernel = function(t) local k = real(t) return function(call)
			n = n + 1 return k(call) + n end end`: "is not what the interpreter gives",
	} {
		var out bytes.Buffer
		p, err := open(&options{device: "cpu"}, []string{"mlxlua"}, os.Stdin, &out, io.Discard)
		require.NoError(t, err)
		_, err = p.s.Run(t.Context(), strings.NewReader(broken), "broken")
		require.NoError(t, err)
		require.Equal(t, 1, p.doctor())
		require.Contains(t, out.String(), "FAILED: ")
		require.Contains(t, out.String(), want)
		p.s.Close()
	}
}

// A new script runs, and is never written over a file.
func TestNew(t *testing.T) {
	t.Setenv("LUA_INIT", "")
	dir := t.TempDir()
	path := filepath.Join(dir, "first.lua")
	require.Equal(t, result{0, "wrote " + path + ": mlxlua " + path + " runs it\n", ""}, runProgram(t, "", "new", path))
	got := runProgram(t, "", path)
	require.Equal(t, 0, got.status, got.stderr)
	require.Regexp(t, `step 300: loss 0\.0[0-9]+\n9[5-9]\.[0-9] % of the points`, got.out)
	require.NoError(t, os.WriteFile(path, []byte("mine"), 0o600))
	require.Equal(t, result{1, "", "mlxlua: new: " + path + " is there already\n"}, runProgram(t, "", "new", path))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "mine", string(text))
	require.Contains(t, runProgram(t, "", "new", filepath.Join(dir, "none", "x.lua")).stderr, "no such file")
	require.Contains(t, runProgram(t, "", "new").stderr, "new needs the name of a file")
	require.Contains(t, runProgram(t, "", "new", dir).stderr, "is there already")
}

// TestTraceOption: the timeline is there after a good run and after a failed one, and nothing else is left beside it.
func TestTraceOption(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "run.json")
	for _, c := range []struct {
		text   string
		status int
	}{
		{"mx.eval(mx.exp(mx.ones({4})))", 0},
		{"mx.eval(mx.exp(mx.ones({4}))) error('over')", 1},
	} {
		got := runProgram(t, "", "--trace", file, script(t, c.text))
		require.Equal(t, c.status, got.status, got.stderr)
		var trace struct {
			TraceEvents []struct {
				Name, Cat, Ph string
			}
		}
		b, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(b, &trace))
		seen := map[string]bool{}
		for _, e := range trace.TraceEvents {
			seen[e.Cat] = true
		}
		for _, cat := range []string{"Lua", "build", "plan", "record", "run", "wait"} {
			require.True(t, seen[cat], cat)
		}
		files, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Len(t, files, 1)
		require.NoError(t, os.Remove(file))
	}
	got := runProgram(t, "", "--trace", filepath.Join(dir, "none", "run.json"), "-e", "print(1)")
	require.Equal(t, 1, got.status)
	require.Empty(t, got.out, "the run does not begin")
	require.Regexp(t, `^mlxlua: --trace .*run.json: no such file`, got.stderr)
	require.Equal(t, result{1, "", "mlxlua: --trace " + dir + ": is a folder\n"},
		runProgram(t, "", "--trace", dir, "-e", "print(1)"))
	require.Contains(t, runProgram(t, "", "--trace").stderr, "--trace needs an argument")
}

// TestCheckNaNOption: the first operation that makes a NaN is named with its line.
func TestCheckNaNOption(t *testing.T) {
	text := "local x = mx.array({1, 0, -1})\nlocal y = mx.sqrt(x)\nlocal z = mx.sum(y * 2)\nmx.eval(z)\nprint('done')"
	path := script(t, text)
	got := runProgram(t, "", "--check-nan", path)
	require.Equal(t, 1, got.status)
	require.Contains(t, got.stderr, path+":2: [sqrt] the output has a NaN at index (2,), and its inputs have none")
	require.Equal(t, result{0, "done\n", ""}, runProgram(t, "", path))
}

// TestUnreadFailure: work that a script hands over and never looks at fails the program; os.exit waits for nothing.
func TestUnreadFailure(t *testing.T) {
	text := "mx.async_eval(mx.log(mx.array({-1})))\n"
	path := script(t, text)
	got := runProgram(t, "", "--check-nan", path)
	require.Equal(t, 1, got.status)
	require.Contains(t, got.stderr, "the output has a NaN at index (0,), and its inputs have none ("+path+":1)")
	require.Equal(t, result{0, "", ""}, runProgram(t, "", "--check-nan", script(t, text+"pcall(mx.synchronize)")))
	require.Equal(t, result{0, "", ""}, runProgram(t, "", "--check-nan", script(t, text+"os.exit(0)")))
}

// The sandbox has the limits that it is given, and only the files.
func TestSandboxOptions(t *testing.T) {
	t.Setenv("LUA_INIT", "")
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "m.lua"), []byte("return 7"), 0o600))
	save := "mx.save([[" + filepath.Join(dir, "x.npy") + "]], mx.ones({2}))"
	for _, c := range []struct {
		argv []string
		want string // in the output; status 1 where it is an error
	}{
		{[]string{"--sandbox", "-e", "print(io, os)"}, "nil\tnil"},
		{[]string{"--sandbox", "--max-memory", "1M", "-e", "local s = 'x' while true do s = s .. s end"}, "memory is full"},
		{[]string{"--max-memory=1M", "-e", "local s = 'x' while true do s = s .. s end"}, "memory is full"},
		{[]string{"--sandbox", "--max-arrays", "1M", "-e", "mx.eval(mx.random.normal({1e6}))"}, "the limit is 1.05 MB"},
		{[]string{"--max-instructions", "1000", "-e", "while true do end"}, "ran 1000 instructions"},
		{[]string{"--max-time", "50ms", "-e", "while true do end"}, "time of the call is over"},
		{[]string{"--max-kernel-time", "1us", "-e",
			"local x = mx.random.normal({300, 300}) while true do x = mx.matmul(x, x) mx.eval(x) end"}, "kernels is over"},
		{[]string{"--max-source", "1K", "-e", "x = 1" + strings.Repeat(" ", 2000)}, "source text has more"},
		{[]string{"--sandbox", "--modules", dir, "-e", "print(require('m'))"}, "7"},
		{[]string{"--sandbox", "-e", save}, "no access to files"},
		{[]string{"--sandbox", "--allow-read", dir, "-e", save}, "no access to files"},
		{[]string{"--sandbox", "--allow-write", dir, "-e", save, "-e", "print('saved')"}, "saved"},
		{[]string{"--sandbox", "--allow-write", dir, "--max-written", "1K", "-e", save}, "may have 1024"},
		{[]string{"--max-written", "1K", "-e", save}, "--max-written is for --sandbox"},
		{[]string{"--allow-write", dir, "-e", save}, "--allow-write is for --sandbox"},
		{[]string{"--allow-read", filepath.Join(dir, "missing")}, "--allow-read"},
		{[]string{"--max-memory", "lots"}, "want a positive number"},
		{[]string{"--max-memory", ""}, "want a positive number"},
		{[]string{"--max-arrays", "9999999999G"}, "want a positive number"},
		{[]string{"--max-time", "5"}, "want a time"},
	} {
		got := runProgram(t, "", c.argv...)
		require.Contains(t, got.out+got.stderr, c.want, c.argv)
		require.Equal(t, got.stderr != "", got.status != 0, c.argv)
	}
}

// --profile prints where the time went when the run has ended, also beside a timeline and after an error.
func TestProfileOption(t *testing.T) {
	t.Setenv("LUA_INIT", "")
	trace := filepath.Join(t.TempDir(), "trace.json")
	got := runProgram(t, "", "--profile", "--trace", trace,
		script(t, "mx.eval(mx.matmul(mx.ones({8, 8}), mx.ones({8, 8})))"))
	require.Zero(t, got.status)
	require.Contains(t, got.stderr, "GFLOP/s")
	require.Contains(t, got.stderr, "script.lua:1")
	require.FileExists(t, trace)
	got = runProgram(t, "", "--profile", "-e", "error('stopped')")
	require.Equal(t, 1, got.status)
	require.Contains(t, got.stderr, "stopped")
	require.Contains(t, got.stderr, "in all")
}

// --emit-types writes annotations to a folder, which is made, and says why it cannot.
func TestEmitTypes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "types", "lua")
	for range 2 {
		require.Equal(t, result{}, runProgram(t, "", "--emit-types", dir))
		text, err := os.ReadFile(filepath.Join(dir, "mx.lua"))
		require.NoError(t, err)
		require.Contains(t, string(text), "function mx.softmax(a, axis, precise, ...) end")
	}
	require.FileExists(t, filepath.Join(dir, "lm.lua"))
	require.FileExists(t, filepath.Join(dir, "lm", "host.lua"))
	got := runProgram(t, "", "--emit-types", filepath.Join(dir, "mx.lua"))
	require.Equal(t, 1, got.status)
	require.Contains(t, got.stderr, "--emit-types")
	require.Equal(t, 1, runProgram(t, "", "--emit-types=").status)
}
