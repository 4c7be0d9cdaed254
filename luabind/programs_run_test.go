package luabind

import (
	"context"
	"flag"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/tensor"
)

var programs = flag.Int("programs", 300, "random programs for TestRandomPrograms")

// programPrelude defines what programs call in Lua.
const programPrelude = `
	local mx = require("mx")
	a = mx.sin(mx.arange(side * side):astype(mx.float32)):reshape({side, side})
	function out(x) log(tostring(mx.sum(x):item())) end
	function each(t)
		for k, v in pairs(t) do
			if type(k) == "userdata" then out(k) end
			if type(v) == "userdata" then out(v) elseif type(v) == "table" then each(v) end
		end
	end
`

// runProgram runs a program, whose arrays have that side and whose look is look, and returns what it has read. done is
// called before the state closes.
func runProgram(text string, side int, look func(s *State), see func(x *tensor.Array),
	done func(s *State)) (string, error) {
	s := New(Options{Libraries: true, Stdout: &strings.Builder{}})
	defer s.Close()
	var log strings.Builder
	given := map[string]any{}
	ctx := context.Background()
	set := func(name string, f lua.LGFunction) { s.L.SetGlobal(name, s.Through(f)) }
	s.L.SetGlobal("side", lua.LNumber(side))
	set("look", func(*lua.LState) int { look(s); return 0 })
	set("see", func(L *lua.LState) int {
		if x, ok := L.CheckUserData(1).Value.(*tensor.Array); ok {
			see(x)
		}
		L.SetTop(1)
		return 1
	})
	set("log", func(L *lua.LState) int { log.WriteString(L.CheckString(1) + "\n"); return 0 })
	goFunc := func(name string, f Func) error {
		v, err := s.ToLua(f)
		if err != nil {
			return err
		}
		return s.SetGlobal(name, v)
	}
	for name, f := range map[string]Func{
		"host": func(ctx context.Context, args []any) ([]any, error) { return args[0].(Func)(ctx, args[1:]) },
		"give": func(_ context.Context, args []any) ([]any, error) {
			given[args[0].(string)] = args[1]
			return nil, nil
		},
		"taken": func(ctx context.Context, args []any) ([]any, error) {
			v := given[args[0].(string)]
			for {
				switch w := v.(type) {
				case []any:
					v = w[0]
				case map[string]any:
					v = w["x"]
				case Func:
					out, err := w(ctx, nil)
					return out, err
				default:
					return []any{v}, nil
				}
			}
		},
	} {
		if err := goFunc(name, f); err != nil {
			return "", err
		}
	}
	_, err := s.Run(ctx, strings.NewReader(programPrelude+text), "program.lua")
	if err == nil {
		err = s.Finish(ctx)
	}
	if err == nil && done != nil {
		given = nil
		done(s)
	}
	return log.String(), err
}

// TestRandomPrograms runs random programs in four states at once. What a look misses is poisoned: a program that uses
// it fails. And a program reads the same values whether it looks at every turn or as often as it pays.
func TestRandomPrograms(t *testing.T) {
	withDevice(t, metal.DeviceOptions{})
	n := *programs
	if testing.Short() {
		n /= 4
	}
	none := func(*tensor.Array) {}
	var wg sync.WaitGroup
	for k := range 4 {
		wg.Go(func() {
			for seed := k; seed < n && !t.Failed(); seed += 4 {
				text, side := newProgram(uint64(seed)), 2
				if seed/4%2 > 0 {
					side = 48 // 9 KiB: small arrays' memory is not given back by itself
				}
				looks := 0
				want, err := runProgram(text, side, func(*State) {}, none, nil)
				got, err2 := runProgram(text, side, func(s *State) {
					if s.looks.now() {
						looks++
					}
				}, none, nil)
				if err != nil || err2 != nil || got != want || strings.Contains(text, "\nlook()") && looks == 0 {
					t.Errorf("seed %d, %d looks:\n%s\nfails with %v and %v, or gives\n%s\nand\n%s",
						seed, looks, text, err, err2, want, got)
				}
			}
		})
	}
	wg.Wait()
	runtime.GC()
	require.False(t, t.Failed())
}
