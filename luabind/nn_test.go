package luabind

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/internal/brief"
	"github.com/mlxlua/mlxlua/luabind/lua51"
)

// fromJSON is a decoded JSON value in Lua: a list has its length as n, and null is the string "null".
func fromJSON(L *lua.LState, v any) lua.LValue {
	switch v := v.(type) {
	case nil:
		return lua.LString("null")
	case bool:
		return lua.LBool(v)
	case float64:
		return lua.LNumber(v)
	case string:
		return lua.LString(v)
	case []any:
		t := L.CreateTable(len(v), 1)
		for i, e := range v {
			t.RawSetInt(i+1, fromJSON(L, e))
		}
		t.RawSetString("n", lua.LNumber(len(v)))
		return t
	case map[string]any:
		t := L.CreateTable(0, len(v))
		for k, e := range v {
			t.RawSetString(k, fromJSON(L, e))
		}
		return t
	}
	panic(fmt.Sprintf("a %T in JSON", v))
}

// The layers, losses and initialisers give what the real mlx.nn gives, forward and backward, in training and in
// evaluation, and print as it prints. testdata/nn/golden.py makes the cases.
func TestNN(t *testing.T) {
	t.Parallel()
	brief.OnlyValues(t)
	text, err := os.ReadFile("testdata/nn/golden.json")
	require.NoError(t, err)
	var cases []map[string]any
	require.NoError(t, json.Unmarshal(text, &cases))
	require.NotEmpty(t, cases)
	s := newTestState(t)
	_, err = s.RunFile(context.Background(), "testdata/nn/golden.lua")
	require.NoError(t, err)
	check := s.L.GetGlobal("check")
	for i, c := range cases {
		name := fmt.Sprintf("%d", i)
		for _, kind := range []string{"loss", "init"} {
			if c[kind] != nil {
				name += fmt.Sprintf(" %s %v", kind, c[kind])
			}
		}
		if spec, ok := c["layer"].(map[string]any); ok {
			name += fmt.Sprintf(" %v %v %v", spec["layer"], spec["args"], spec["kw"])
		}
		t.Run(name, func(t *testing.T) {
			_, err := s.Call(context.Background(), check, fromJSON(s.L, c))
			require.NoError(t, err)
		})
	}
}

// What a training step asks of a model takes few instructions of Lua, which a limit counts.
func TestWalksOfModelsAreShort(t *testing.T) {
	t.Parallel()
	s := New(Options{Sandbox: true, Limits: Limits{Limits: lua51.Limits{Instructions: 200000}}})
	defer s.Close()
	_, err := s.Run(context.Background(), strings.NewReader(`
		local layers = {}
		for i = 1, 20 do layers[i] = nn.Linear(1, 1) end
		local model = nn.Sequential(unpack(layers))
		for i = 1, 50 do
			local trained = model:trainable_parameters()
			model:update(trained)
			mx.utils.tree_map(function(w) return w end, trained, model)
		end`), "walks")
	require.NoError(t, err)
}
