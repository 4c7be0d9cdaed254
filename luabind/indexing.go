package luabind

import (
	"fmt"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/luabind/lua51"
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

// parts turns keys into parts of an index: integers, slice texts, integer or bool arrays, tables of integers; false
// is None.
func (t *arrayType) parts(keys []lua.LValue) []ops.Part {
	s, c := t.s, t.s.call()
	var out []ops.Part
	for _, key := range keys {
		switch k := key.(type) {
		case lua.LNumber:
			n, err := toInt(k)
			if err != nil {
				s.raise(c.Errorf("index", "the index %v", err))
			}
			out = append(out, ops.At(n))
			continue
		case lua.LBool:
			if !bool(k) {
				out = append(out, ops.NewAxis())
				continue
			}
		case lua.LString:
			parts, err := parseSlice(string(k))
			if err != nil {
				s.raise(c.Errorf("index", "%w", err))
			}
			out = append(out, parts...)
			continue
		}
		x, err := toIndices(&args{Args: sig.Args{Ctx: c}, s: s}, key)
		if err != nil {
			s.raise(c.Errorf("index", "the index %v", err))
		}
		out = append(out, ops.ByArray(x.(*tensor.Array)))
	}
	return out
}

// parseSlice reads Python's index text: integers, start:stop:step, "..." and None, separated by commas.
func parseSlice(text string) ([]ops.Part, error) {
	var out []ops.Part
	if err := tensor.CheckDims(strings.Count(text, ",")); err != nil {
		return nil, fmt.Errorf("the index %s: %w", quote(text), err)
	}
	for i, field := range strings.Split(text, ",") {
		field = strings.TrimSpace(field)
		bad := fmt.Errorf("the index %s: part %d, %s, is no integer, slice, ... or None", quote(text), i, quote(field))
		switch {
		case field == "...":
			out = append(out, ops.Ellipsis())
		case field == "None":
			out = append(out, ops.NewAxis())
		case strings.Contains(field, ":"):
			ends := strings.Split(field, ":")
			if len(ends) > 3 {
				return nil, bad
			}
			n := [3]int{ops.None, ops.None, 1}
			for j, end := range ends {
				end = strings.TrimSpace(end)
				if end == "" || end == "None" {
					continue
				}
				v, err := strconv.ParseInt(end, 10, 32)
				if err != nil {
					return nil, bad
				}
				n[j] = int(v)
			}
			out = append(out, ops.Span(n[0], n[1], n[2]))
		default:
			v, err := strconv.ParseInt(field, 10, 32)
			if err != nil {
				return nil, bad
			}
			out = append(out, ops.At(int(v)))
		}
	}
	return out, nil
}

// atRef is x:at(keys...): the place of an update.
type atRef struct {
	x    *tensor.Array
	keys []lua.LValue
}

const atKind = "at"

func (a atRef) reached(h hearer) {
	h.array(a.x)
	h.values(a.keys)
}

// openAt makes x:at(...), and its methods: each gives the updated array.
func (t *arrayType) openAt() {
	s := t.s
	s.method(t.methods, arrayObject, "at", func(L *lua.LState) int {
		x, _ := array(L.Get(1))
		x.Share()
		L.Push(s.userdata(atKind, atRef{x, lua51.Args(L)[1:]}))
		return 1
	})
	methods := s.NewTable(0, 1)
	s.meta(atKind).RawSetString("__index", methods)
	for _, name := range []string{"set", "add", "subtract", "multiply", "divide", "maximum", "minimum"} {
		s.method(methods, atObject, name, func(L *lua.LState) int {
			at, _ := unwrap[atRef](L.Get(1))
			y := t.operand(at.x, L.Get(2))
			L.Push(s.wrap(ops.IndexUpdate(at.x, t.parts(at.keys), name, y, s.call())))
			return 1
		})
	}
}

// rows is x:rows(): an iterator over the first dimension.
func (t *arrayType) rows(L *lua.LState) int {
	s := t.s
	x, _ := array(L.Get(1))
	if x.NDim() == 0 {
		s.raise(s.call().Errorf("rows", "%s has no rows, want an array with dimensions", describe(L.Get(1))))
	}
	n, _ := x.Dim(0) // there is a dimension 0
	i := 0
	x.Share()
	L.Push(s.Func(func(L *lua.LState) int {
		if i >= n {
			return 0
		}
		i++
		x, _ := array(L.Get(lua.UpvalueIndex(1)))
		L.Push(s.wrap(ops.Index(x, []ops.Part{ops.At(i - 1)}, s.call())))
		return 1
	}, s.lend(x)))
	return 1
}
