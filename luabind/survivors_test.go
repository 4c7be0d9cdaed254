package luabind

import (
	"context"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
)

// search goes over the memory of a state as Go's collector does, but says by which place it came to an array.
type search struct {
	seen   map[visited]bool
	stale  []staleValue // found on the way: nothing that a script can come to
	cause  string       // of the place that is gone over; "" where a script can come to it
	arrays map[uintptr]string
	shared []uintptr // the first handles of nodes in which the storage of others lies
}

type visited struct {
	at uintptr
	of reflect.Type
}

type staleValue struct {
	v     reflect.Value
	cause string
}

// causes finds out for each array that the state's memory leads to what keeps it: "" if a script can come to it, else
// the name of the place in gopher-lua that has not been cleared.
func causes(s *State) map[uintptr]string {
	f := &search{seen: map[visited]bool{}, arrays: map[uintptr]string{}}
	f.value(reflect.ValueOf(s))
	for len(f.stale) > 0 {
		v := f.stale[0]
		f.stale = f.stale[1:]
		f.cause = v.cause
		f.value(v.v)
	}
	f.cause = "storage that views share"
	for _, x := range f.shared {
		f.note(x)
	}
	return f.arrays
}

func (f *search) later(v reflect.Value, cause string) {
	if f.cause != "" {
		cause = f.cause
	}
	f.stale = append(f.stale, staleValue{v, cause})
}

// ours reports whether values of a type can lead to handles of arrays.
func ours(t reflect.Type) bool {
	pkg := t.PkgPath()
	if strings.HasSuffix(pkg, "mlxlua/tensor") {
		return t.Name() == "Value" || strings.Contains(strings.ToLower(t.Name()), "trace")
	}
	return pkg == "" || strings.HasSuffix(pkg, "gopher-lua") || strings.Contains(pkg, "mlxlua/luabind") ||
		strings.HasSuffix(pkg, "mlxlua/compile")
}

func (f *search) value(v reflect.Value) {
	switch v.Kind() {
	case reflect.Interface:
		f.value(v.Elem())
	case reflect.Pointer:
		if v.IsNil() || f.seen[visited{v.Pointer(), v.Type()}] {
			return
		}
		f.seen[visited{v.Pointer(), v.Type()}] = true
		switch v.Type() {
		case reflect.TypeFor[*tensor.Array]():
			f.array(v)
		case reflect.TypeFor[*tensor.Node]():
			f.node(v)
		default:
			f.value(v.Elem())
		}
	case reflect.Struct:
		if ours(v.Type()) {
			f.fields(v)
		}
	case reflect.Slice:
		f.elements(v, "slack in "+v.Type().String())
	case reflect.Array:
		for i := range v.Len() {
			f.value(v.Index(i))
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			f.value(it.Key())
			f.value(it.Value())
		}
	}
}

// array notes an array, and the handle that a further one keeps. Its node lives as long, and what that is computed
// from.
func (f *search) array(v reflect.Value) {
	for ; !v.IsNil(); v = v.Elem().FieldByName("of") {
		f.note(v.Pointer())
		f.value(v.Elem().FieldByName("node"))
	}
}

func (f *search) note(x uintptr) {
	if _, ok := f.arrays[x]; !ok {
		f.arrays[x] = f.cause
	}
}

// node goes over a node: its first handle lies in it, as does the storage of its output, which views share.
func (f *search) node(v reflect.Value) {
	n := v.Elem()
	if f.cause == "" {
		f.later(n.FieldByName("handle").Addr(), "nodes of other arrays")
	} else {
		f.note(n.FieldByName("handle").Addr().Pointer())
	}
	for _, name := range []string{"in", "few", "attrs", "traces"} {
		f.later(n.FieldByName(name), "nodes of other arrays")
	}
	home, _ := n.Type().FieldByName("home")
	handle, _ := n.Type().FieldByName("handle")
	for i := range n.FieldByName("out").Len() {
		owner := n.FieldByName("out").Index(i).FieldByName("data").FieldByName("owner")
		if at := owner.Pointer() - home.Offset + handle.Offset; !owner.IsNil() && f.cause != "" {
			f.note(at)
		} else if !owner.IsNil() {
			f.shared = append(f.shared, at)
		}
	}
}

func (f *search) elements(v reflect.Value, slack string) {
	switch v.Type().Elem().Kind() {
	case reflect.Interface, reflect.Pointer, reflect.Struct, reflect.Slice, reflect.Map:
	default:
		return
	}
	for i := range v.Len() {
		f.value(v.Index(i))
	}
	for all, i := v.Slice(0, v.Cap()), v.Len(); i < v.Cap(); i++ {
		f.later(all.Index(i), slack)
	}
}

func (f *search) fields(v reflect.Value) {
	switch t := v.Type(); t.Name() {
	case "registry":
		all, top := v.FieldByName("array"), int(v.FieldByName("top").Int())
		for i := range all.Len() {
			if i < top {
				f.value(all.Index(i))
			} else {
				f.later(all.Index(i), "registers above the top")
			}
		}
	case "fixedCallFrameStack":
		all, top := v.FieldByName("array"), int(v.FieldByName("sp").Int())
		for i := range all.Len() {
			if i < top {
				f.value(all.Index(i))
			} else {
				f.later(all.Index(i), "frames that were popped")
			}
		}
	case "autoGrowingCallFrameStack", "callFrameStackSegment":
		f.later(v.Field(0), "frames that were popped")
	case "LState":
		f.thread(v)
	case "LTable":
		for i := range t.NumField() {
			switch t.Field(i).Name {
			case "array":
				f.elements(v.Field(i), "slack after elements that were removed")
			case "keys", "k2i": // what is not removed is in a map too
				f.later(v.Field(i), "keys that were removed")
			default:
				f.value(v.Field(i))
			}
		}
	default:
		for i := range t.NumField() {
			f.value(v.Field(i))
		}
	}
}

// thread is a thread's fields. One that has ended keeps its registers; nobody reads them.
func (f *search) thread(v reflect.Value) {
	for i := range v.NumField() {
		switch v.Type().Field(i).Name {
		case "reg", "stack", "currentFrame", "uvcache":
			if v.FieldByName("Dead").Bool() {
				f.later(v.Field(i), "threads that have ended")
				continue
			}
		}
		f.value(v.Field(i))
	}
}

// plan evaluates a graph of n nodes whose values are all kept, so that nodes of earlier plans leave the scratch memory
// of the stream.
func plan(n int) error {
	xs := []*tensor.Array{ops.Number(1, tensor.Float32)}
	for range n {
		x := xs[len(xs)-1]
		xs = append(xs, ops.Sin(ops.Sum(ops.Add(x, xs[0]), nil, true)))
	}
	return tensor.Eval(context.Background(), xs...)
}

// overwriting is a program that goes as deep as any, and leaves numbers in the registers and frames it has used.
const overwriting = `
	local function deep(n, a, b, c, d, e, f, g, h)
		local i, j, k, l, m, o, p, q
		if n > 0 then return 1 + deep(n - 1, 0, 0, 0, 0, 0, 0, 0, 0) end
		return 0
	end
	return deep(180), pcall(deep, 180), coroutine.wrap(function() return deep(180) end)()`

// survivors runs a program, looks, collects, and says what keeps the arrays that a look has found unreachable and that
// are still there.
func survivors(text string) (found map[string]int, missed int, err error) {
	found = map[string]int{}
	var made []weak.Pointer[tensor.Array]
	see := func(x *tensor.Array) { made = append(made, weak.Make(x)) }
	_, err = runProgram(text, 2, func(s *State) { s.looks.now() }, see, func(s *State) {
		runtime.GC() // what the Go program was given and has dropped is reached by looks until then
		if !s.looks.now() {
			missed++
			return
		}
		if err := plan(400); err != nil {
			panic(err)
		}
		runtime.GC()
		runtime.GC()
		at := causes(s)
		var unnamed []weak.Pointer[tensor.Array]
		for _, w := range made {
			x := w.Value()
			if x == nil || x.State() == tensor.Failed { // a look has buried it: it keeps nothing else
				continue
			}
			// Waiting for it says so, and adds no node that reads it.
			if err := x.Wait(context.Background()); err == nil || !strings.Contains(err.Error(), "unreachable") {
				continue
			}
			switch cause, ok := at[reflect.ValueOf(x).Pointer()]; {
			case !ok:
				unnamed = append(unnamed, w)
			case cause == "":
				found["what a script can come to"]++
			default:
				found[cause]++
			}
		}
		at = nil
		if len(unnamed) == 0 {
			return
		}
		_, err := s.Run(context.Background(), strings.NewReader(overwriting), "overwriting.lua")
		if err != nil {
			panic(err)
		}
		for range 3 { // a pool gives up what it holds in the second one
			runtime.GC()
		}
		for _, w := range unnamed {
			if w.Value() == nil {
				found["frames that gopher-lua pools"]++
			} else {
				found["nothing that was found"]++
			}
		}
	})
	return found, missed, err
}

// TestSurvivors: what a look finds unreachable and Go's collector does not is kept by places in gopher-lua that nothing
// has cleared, and by nothing of ours.
func TestSurvivors(t *testing.T) {
	onlyMemory(t)
	withDevice(t, metal.DeviceOptions{})
	n := *programs / 10 // going over the whole state takes as long as ten programs
	if testing.Short() {
		n /= 3
	}
	total := map[string]int{}
	for seed := range n {
		text := newProgram(uint64(seed))
		found, missed, err := survivors(text)
		require.NoError(t, err, text)
		require.Zero(t, missed)
		for cause, n := range found {
			total[cause] += n
			switch cause {
			case "registers above the top", "frames that were popped", "keys that were removed", "threads that have ended",
				"slack after elements that were removed", "nodes of other arrays", "storage that views share",
				"frames that gopher-lua pools":
			default:
				t.Errorf("seed %d: %d arrays are kept by %s", seed, n, cause)
			}
		}
	}
	t.Log(total)
}
